"""`sentinel cron`: lets Slurm run sentinel and scripts in place of cron."""

import argparse
import json
import os
import sys
from typing import Any

from sentinel.chain import install, proofs, scripts_run, status, work
from sentinel.chain.folder import ChainFolder
from sentinel.chain.install import BadInstallRequest, InstallRequest
from sentinel.chain.scripts_run import NoCronDirectory
from sentinel.chain.timers import cron_runs
from sentinel.cli import add_config_option
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.slurm.client import SlurmClient
from sentinel.wiring import app, last_good

OK, NOT_WELL = 0, 1
DEFAULT_STRANDS = 3


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
    run.add_argument(
        "--trust-group",
        action="append",
        default=[],
        metavar="GROUP",
        help="run scripts that this group may write, too",
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
        default=None,
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
    """Install the passes. Raises a SentinelError with Slurm's or the host's words if that fails."""
    _refuse_unused_options(args)
    settings = app.load_settings(args.config)  # each pass will need the file
    folder, client = args.dir or app.get_chain_folder(settings), _make_slurm_client(settings)
    chain = install.plan_chain(_build_chain_request(args, settings), folder, client)
    print("\n".join(install.install_chain(chain, folder, client, show_only=args.print)))
    if chain.mode == "crontab" and not args.print and not cron_runs():
        text = "no cron daemon is seen on this host: nothing reads the crontab until one runs"
        print(f"sentinel cron: {text}", file=sys.stderr)
    return OK


def call_cron_status(args: argparse.Namespace) -> int:
    """Print the state of the passes. Returns 1 if no pass will run by itself."""
    settings, folder = _load_chain_settings(args)
    facts = status.chain_facts(folder, _make_slurm_client(settings))
    print(json.dumps(facts, indent=1) if args.json else "\n".join(status.chain_lines(facts)))
    return OK if facts["well"] else NOT_WELL


def call_ensure(args: argparse.Namespace) -> int:
    """Repair the chain. Returns 0 if it goes on. It prints only repairs, why no pass was made yet,
    and channels whose messages do not leave from its nodes."""
    settings, folder = _load_chain_settings(args, quiet=True)
    client = _make_slurm_client(settings)
    done = install.ensure_chain(folder, client)
    no_pass = status.first_pass_problems(folder, client)
    undelivered = proofs.read_problems(ChainFolder(folder), proofs.channels_to_prove(settings))
    for line in (*done, *no_pass, *undelivered):
        print(f"sentinel cron: {line}", file=sys.stderr)
    return OK


def call_remove(args: argparse.Namespace) -> int:
    """Remove the chain, even if it is broken. Returns 0 also if there is none."""
    settings, folder = _load_chain_settings(args)
    print("\n".join(install.remove_chain(folder, _make_slurm_client(settings))))
    return OK


def call_link(args: argparse.Namespace) -> int:
    """Run one link. Returns 0 if the chain goes on after it; after any other code its script
    repairs the chain."""
    folder = args.dir or _load_chain_settings(args)[1]
    return OK if work.run_link(folder, _load_settings_or_default, args.config) else NOT_WELL


def call_cron_run(args: argparse.Namespace) -> int:
    """Submit the scripts that are due. Returns 1 if one could not be submitted. An error of a whole
    directory is raised after all other directories."""
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
    # the kind `cron` may be missing in this installation
    from sentinel.checks.cron import CronCheck

    if args.base:
        trusted = {"trust": args.trust or [], "trust_groups": args.trust_group}
        return [CronCheck(base=FilePath(base), **trusted) for base in args.base]
    found = [c.plugin for c in settings.checks if c.common.kind == "cron"]
    if not found:
        raise NoCronDirectory(
            "no check of kind cron is configured; name a directory with --base DIR"
        )
    return found


def _build_chain_request(args: argparse.Namespace, settings: Any) -> Any:
    return InstallRequest(
        mode=args.mode,
        every=_parse_interval(args.every, "--every"),
        time_limit=_parse_interval(args.time, "--time") if args.time else None,
        strands=DEFAULT_STRANDS if args.strands is None else args.strands,
        config=os.path.abspath(settings.path) if settings.path else "",
        options=(*_collect_sbatch_options(args), *args.sbatch),
        delivers=not args.no_deliver,
        owner=_get_state_path(settings),
    )


def _refuse_unused_options(args: argparse.Namespace) -> None:
    """Refuse options that this mode would ignore: it submits no job to Slurm, or only one at a
    time."""
    jobless = args.mode in ("crontab", "systemd")
    unused = ("account", "partition", "qos", "sbatch") if jobless else ()
    given = [f"--{name}" for name in unused if getattr(args, name)]
    if args.mode != "chain" and args.strands is not None:
        given.append("--strands")
    if given:
        raise BadInstallRequest(
            f"{', '.join(given)}: changes nothing with --mode {args.mode}; leave it out"
        )


def _parse_interval(text: str, option: str) -> float:
    try:
        return float(Duration.parse(text))
    except Invalid as error:
        raise BadInstallRequest(f"{option}: {error}") from error


def _collect_sbatch_options(args: argparse.Namespace) -> list[str]:
    """sbatch options from the command line, or from sbatch's environment variables, which links do
    not see."""
    found = []
    for name in ("account", "partition", "qos"):
        value = getattr(args, name) or os.environ.get(f"SBATCH_{name.upper()}", "")
        found += [f"--{name}={value}"] if value else []
    return found


def _load_chain_settings(args: argparse.Namespace, *, quiet: bool = False) -> tuple[Any, str]:
    settings = last_good.load_as_far_as_valid(args.config, quiet=quiet)
    return settings, args.dir or app.get_chain_folder(settings)


def _load_settings_or_default(path: str | None, *, quiet: bool = False) -> Any:
    return app.load_settings_or_default(path, quiet=quiet)


def _get_state_path(settings: Any) -> str:
    return app.get_state_location(settings)


def _make_slurm_client(settings: Any) -> Any:
    return SlurmClient(limit=settings.slurm.timeout, prefix=settings.slurm.command_prefix)


def _add_location_options(parser: Any) -> None:
    add_config_option(parser)
    parser.add_argument(
        "--dir", default="", metavar="DIR", help="the folder of the chain; default: STATE/chain"
    )


def _print_usage(parser: Any) -> int:
    parser.print_help(sys.stderr)
    return 64
