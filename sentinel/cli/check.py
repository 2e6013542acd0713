"""`sentinel check`: one look, nothing sent, nothing changed, no state needed."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from sentinel.alerting.observations import RunOutcome
from sentinel.cli import EXIT_USAGE, add_json_option, startup
from sentinel.core.declared import ANY
from sentinel.core.errors import SentinelError
from sentinel.core.model import Status
from sentinel.core.settings import CheckConfig
from sentinel.wiring import app
from sentinel.wiring.app import UsageError

NAGIOS_EXIT_CODES = {Status.OK: 0, Status.WARNING: 1, Status.CRITICAL: 2, Status.UNKNOWN: 3}
"""The Nagios convention: https://nagios-plugins.org/doc/guidelines.html#AEN78."""


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser(
        "check",
        help="run one check now; it sends nothing and changes nothing",
        description="NAME is a configured check; KIND with options needs no configuration.",
        epilog="Options of a kind: sentinel check KIND --help. "
        "Exit codes: 0 ok, 1 warning, 2 critical, 3 unknown.",
        add_help=False,
        allow_abbrev=False,  # a kind's --time is not our --timeout
    )
    parser.add_argument("target", nargs="?", metavar="NAME|KIND")
    parser.add_argument(
        "-c", "--config", metavar="FILE", help="the configuration file that defines NAME"
    )
    parser.add_argument("--timeout", metavar="TIME", help="end the run after this time, e.g. 10s")
    add_json_option(parser)
    parser.add_argument("--nagios", action="store_true", help="print like a Nagios plugin")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the history and forecast of disks into this SVG file"
    )
    parser.add_argument(
        "-h", "--help", action="store_true", help="show this help, or the options of a kind"
    )
    parser.set_defaults(call=call_check, takes_options=True, parser=parser)


def call_check(args: argparse.Namespace) -> int:
    """Exit code by the worst finding; with --nagios wrong calls are 3, too."""
    try:
        return _run_target(args)
    except SentinelError as error:
        if not args.nagios:
            raise
        print(f"UNKNOWN - {str(error).splitlines()[0]}")
        return 3


def _run_target(args: argparse.Namespace) -> int:
    if args.nagios and not (args.target or args.help):
        raise UsageError("name a configured check or a kind")
    if args.help or not args.target:
        return _print_check_help(args)
    if args.json and args.nagios:
        raise UsageError("--json and --nagios are two answers to one question; choose one")
    check, settings = _resolve_target(args)
    outcome = app.run_check_once(check, settings)
    _print_outcome(outcome, check, args)
    return NAGIOS_EXIT_CODES[Status(_find_worst_status(outcome))]


def _resolve_target(args: argparse.Namespace) -> tuple[CheckConfig, Any]:
    settings = _load_target_settings(args) if _needs_config(args) else None
    named = [c for c in settings.checks if c.name == args.target] if settings else []
    if named and args.rest:
        raise UsageError(
            f"{args.target} is a configured check and takes no options: {args.rest[0]}"
        )
    if named:
        return _apply_timeout(named[0], args.timeout), settings
    check = app.make_one_shot_check(
        args.target,
        _parse_kind_options(args.rest),
        [c.name for c in settings.checks] if settings else [],
    )
    return _apply_timeout(check, args.timeout), settings


def _needs_config(args: argparse.Namespace) -> bool:
    """Whether the file is needed: a kind with options is one of its `checks_from`, or needs none."""
    return not args.rest or args.config or args.target not in app.CHECKS


def _load_target_settings(args: argparse.Namespace) -> Any:
    """A kind needs none; any other word may be a name of the one that cannot be read."""
    if args.target in app.CHECKS.kind_names():
        return app.load_readable_settings(args.config, quiet=args.nagios)
    return app.find_settings(args.config, quiet=args.nagios)


def _apply_timeout(check: CheckConfig, timeout: str | None) -> CheckConfig:
    if timeout is None:
        return check
    from msgspec.structs import replace

    from sentinel.cli.common import parse_seconds
    from sentinel.core.values import Duration

    limit = Duration(parse_seconds(timeout, "--timeout"))
    if limit <= 0:
        raise UsageError("--timeout: must be longer than 0s")
    return replace(check, common=replace(check.common, timeout=limit))


def _parse_kind_options(words: Sequence[str]) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {}
    queue = list(words)
    while queue:
        word = queue.pop(0)
        if not word.startswith("--"):
            raise UsageError(f"unexpected argument {word!r}; options look like --path /scratch")
        name, equals, value = word[2:].partition("=")
        if not equals:
            value = queue.pop(0) if queue and not queue[0].startswith("--") else ""
        options.setdefault(name, []).append(value)
    return options


def _print_check_help(args: argparse.Namespace) -> int:
    if not args.target:
        args.parser.print_help(sys.stdout if args.help else sys.stderr)
        return 0 if args.help else EXIT_USAGE
    if args.config or args.target not in app.CHECKS:
        app.load_configured_kinds(args.config)
    for line in app.describe_options(args.target, min(startup.get_terminal_columns() - 2, 100)):
        print(line)
    return 0


def _find_worst_status(outcome: RunOutcome) -> Status:
    return max((f.status for f in outcome.findings), key=lambda s: s.rank)


def _print_outcome(outcome: RunOutcome, check: CheckConfig, args: argparse.Namespace) -> None:
    from sentinel.cli import outcome_formats

    if args.plot:
        _write_plot(outcome, args)
    if args.json:
        print(outcome_formats.render_outcome_json(outcome))
    elif args.nagios:
        print(outcome_formats.render_nagios_output(outcome))
    elif sys.stdout.isatty() and check.plugin.PANEL == "disks":
        from sentinel.cli import disks
        from sentinel.cli import history as past

        with past.open_sample_history(outcome, args.config) as (history, now):
            disks.print_disk_table(disks.build_disk_rows(outcome, history, now))
    elif sys.stdout.isatty():
        from sentinel.cli import tables

        tables.print_check_outcome(outcome)
    else:
        print(outcome_formats.render_outcome_lines(outcome))
    if not (args.json or args.nagios or type(check.plugin).__module__.startswith("sentinel.")):
        _warn_unused_metrics(outcome, check)


def _warn_unused_metrics(outcome: RunOutcome, check: CheckConfig) -> None:
    """Say which metric a third party's kind declares in vain: a kind of sentinel's own has numbers
    that only some findings have, and tests of them."""
    from sentinel.config.problems import did_you_mean

    keys = {key for f in outcome.findings if f.status is not Status.UNKNOWN for key in f.values}
    seen = any(f.status is not Status.UNKNOWN for f in outcome.findings)
    for metric in check.plugin.METRICS if seen else ():
        if metric.value not in (*keys, ANY):
            meant = did_you_mean(metric.value, keys, "they have")
            print(
                f"note: METRICS: no finding has the value `{metric.value}`{meant}; so"
                f" sentinel_{metric.name} is never exported",
                file=sys.stderr,
            )


def _write_plot(outcome: RunOutcome, args: argparse.Namespace) -> None:
    from sentinel.cli import disks
    from sentinel.cli import history as past

    with past.open_sample_history(outcome, args.config) as (history, now):
        picture = disks.draw_disk_plot(disks.build_disk_rows(outcome, history, now), now)
    try:
        with open(args.plot, "w", encoding="utf-8") as file:
            file.write(picture)
    except OSError as error:
        raise UsageError(f"--plot {args.plot}: {error.strerror}") from error
