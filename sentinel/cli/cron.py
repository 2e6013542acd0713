"""`sentinel cron`: Slurm in place of cron."""

import argparse
import json
import os
import sys
from typing import Any

from sentinel.cli import add_config_option

OK, NOT_WELL = 0, 1


def register(commands: Any) -> None:
    """Add the parsers."""
    parser = commands.add_parser("cron", help="let Slurm, a timer or crontab call sentinel on time")
    parser.set_defaults(call=lambda _args: _print_usage(parser))
    sub = parser.add_subparsers(title="commands", metavar="COMMAND")
    _register_install(sub)
    for name, call, text in (
        (
            "status",
            call_cron_status,
            "show which passes wait, ran late or were missed; exit 1 when nothing will run",
        ),
        ("ensure", call_ensure, "repair a broken chain; you may call it as often as you like"),
        ("remove", call_remove, "remove the chain, timer or crontab line"),
    ):
        command = sub.add_parser(name, help=text)
        _add_location_options(command)
        command.set_defaults(call=call)
        if name == "status":
            command.add_argument("--json", action="store_true", help="one JSON document")
    run = sub.add_parser("run", help="submit the scripts of cron directories that are due")
    add_config_option(run)
    run.add_argument(
        "--base",
        action="append",
        metavar="DIR",
        help="the directory that holds cron.hourly and the like",
    )
    run.add_argument(
        "--trust", action="append", metavar="USER", help="run the scripts of this user too"
    )
    run.add_argument("--dry-run", action="store_true", help="say what would be submitted")
    run.set_defaults(call=call_cron_run)
    link = sub.add_parser("link", help="make one pass; each link, timer or crontab line calls this")
    _add_location_options(link)
    link.set_defaults(call=call_link)


def _register_install(sub: Any) -> None:
    install = sub.add_parser(
        "install", help="install a chain of jobs, a timer, or a line in crontab or scrontab"
    )
    _add_location_options(install)
    modes = ["chain", "relay", "scrontab", "systemd", "crontab"]
    install.add_argument(
        "--mode", choices=modes, default="chain", help="what calls sentinel on time; default: chain"
    )
    install.add_argument(
        "--every", default="10m", metavar="TIME", help="time between two passes (10m)"
    )
    install.add_argument("--time", default="", metavar="TIME", help="time limit of a job (2h)")
    install.add_argument(
        "--strands",
        type=int,
        default=3,
        help="jobs that wait at a time (3); take 1 where you may queue few",
    )
    for option in ("account", "partition", "qos"):
        install.add_argument(
            f"--{option}", default="", metavar="NAME", help=f"the {option} that the jobs run under"
        )
    install.add_argument(
        "--sbatch", action="append", default=[], metavar="OPTION", help="one more option of sbatch"
    )
    install.add_argument(
        "--no-deliver",
        action="store_true",
        help="send nothing from there: messages wait for `sentinel deliver` on another host",
    )
    install.add_argument(
        "--print", action="store_true", help="print what would be installed, and change nothing"
    )
    install.set_defaults(call=call_install)


def call_install(args: argparse.Namespace) -> int:
    """Raises a SentinelError with Slurm's or the host's words where it cannot be."""
    from sentinel.chain import install
    from sentinel.chain.timers import cron_runs
    from sentinel.wiring import app

    settings = app.load_settings(args.config)  # each pass will need the file
    folder, client = args.dir or app.get_chain_folder(settings), _make_slurm_client(settings)
    chain = install.plan_chain(_build_chain_request(args, settings), folder, client)
    print("\n".join(install.install_chain(chain, folder, client, show_only=args.print)))
    if chain.mode == "crontab" and not args.print and not cron_runs():
        text = "no cron daemon is seen on this host: nothing reads the crontab until one runs"
        print(f"sentinel cron: {text}", file=sys.stderr)
    return OK


def call_cron_status(args: argparse.Namespace) -> int:
    """1 when no pass will come by itself."""
    from sentinel.chain import status

    settings, folder = _load_chain_settings(args)
    facts = status.chain_facts(folder, _make_slurm_client(settings))
    print(json.dumps(facts, indent=1) if args.json else "\n".join(status.chain_lines(facts)))
    return OK if facts["well"] else NOT_WELL


def call_ensure(args: argparse.Namespace) -> int:
    """0 when the chain goes on, whether it had to be mended or not; nothing is printed then."""
    from sentinel.chain import install

    settings, folder = _load_chain_settings(args, quiet=True)
    for line in install.ensure_chain(folder, _make_slurm_client(settings)):
        print(f"sentinel cron: {line}", file=sys.stderr)
    return OK


def call_remove(args: argparse.Namespace) -> int:
    """Also of a chain that is broken; 0 where none is."""
    from sentinel.chain import install

    settings, folder = _load_chain_settings(args)
    print("\n".join(install.remove_chain(folder, _make_slurm_client(settings))))
    return OK


def call_link(args: argparse.Namespace) -> int:
    """0 when the chain goes on after this link; anything else makes its script care for that."""
    from sentinel.chain import work

    folder = args.dir or _load_chain_settings(args)[1]
    return OK if work.run_link(folder, lambda path: _load_settings_or_default(path)) else NOT_WELL


def call_cron_run(args: argparse.Namespace) -> int:
    """1 when a script that is due could not be submitted; the error of a directory as a whole
    once the others are through."""
    from sentinel.chain import scripts_run
    from sentinel.core.errors import SentinelError
    from sentinel.wiring import app

    settings = _load_settings_or_default(args.config)
    zone, snapshot, failures = app.get_time_zone(settings), app.make_snapshot(settings), 0
    errors: list[SentinelError] = []
    for kind in _select_cron_checks(args, settings):
        try:
            done = scripts_run.run_cron_check(kind, snapshot, zone, dry_run=args.dry_run)
        except SentinelError as error:
            errors.append(error)
            continue
        failures += done.failures
        for line in done.lines:
            print(line)
    for further in errors[1:]:
        print(f"sentinel: {further}", file=sys.stderr)
    if errors:
        raise errors[0]
    return NOT_WELL if failures else OK


def _select_cron_checks(args: argparse.Namespace, settings: Any) -> list[Any]:
    from sentinel.chain.scripts_run import NoCronDirectory
    from sentinel.checks.cron import CronCheck
    from sentinel.core.settings import FilePath

    if args.base:
        return [CronCheck(base=FilePath(base), trust=args.trust or []) for base in args.base]
    found = [c.plugin for c in settings.checks if c.common.kind == "cron"]
    if not found:
        raise NoCronDirectory(
            "no check of kind cron is configured; name a directory with --base DIR"
        )
    return found


def _build_chain_request(args: argparse.Namespace, settings: Any) -> Any:
    from sentinel.chain.install import InstallRequest

    return InstallRequest(
        mode=args.mode,
        every=_parse_interval(args.every, "--every"),
        time_limit=_parse_interval(args.time, "--time") if args.time else None,
        strands=args.strands,
        config=os.path.abspath(settings.path) if settings.path else "",
        options=(*_collect_sbatch_options(args), *args.sbatch),
        delivers=not args.no_deliver,
        owner=_get_state_path(settings),
    )


def _parse_interval(text: str, option: str) -> float:
    from sentinel.chain.install import BadInstallRequest
    from sentinel.core.errors import Invalid
    from sentinel.core.values import Duration

    try:
        return float(Duration.parse(text))
    except Invalid as error:
        raise BadInstallRequest(f"{option}: {error}") from error


def _collect_sbatch_options(args: argparse.Namespace) -> list[str]:
    """Given, or as the environment would have told sbatch, which links do not see."""
    found = []
    for name in ("account", "partition", "qos"):
        value = getattr(args, name) or os.environ.get(f"SBATCH_{name.upper()}", "")
        found += [f"--{name}={value}"] if value else []
    return found


def _load_chain_settings(args: argparse.Namespace, *, quiet: bool = False) -> tuple[Any, str]:
    from sentinel.wiring import app, last_good

    settings = last_good.load_as_far_as_valid(args.config, quiet=quiet)
    return settings, args.dir or app.get_chain_folder(settings)


def _load_settings_or_default(path: str | None, *, quiet: bool = False) -> Any:
    from sentinel.wiring import app

    return app.load_settings_or_default(path, quiet=quiet)


def _get_state_path(settings: Any) -> str:
    from sentinel.wiring import app

    return app.get_state_location(settings)


def _make_slurm_client(settings: Any) -> Any:
    from sentinel.slurm.client import SlurmClient

    return SlurmClient(limit=settings.slurm.timeout, prefix=settings.slurm.command_prefix)


def _add_location_options(parser: Any) -> None:
    add_config_option(parser)
    parser.add_argument(
        "--dir", default="", metavar="DIR", help="the folder of the chain; default: STATE/chain"
    )


def _print_usage(parser: Any) -> int:
    parser.print_help(sys.stderr)
    return 64
