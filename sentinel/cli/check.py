"""`sentinel check`: one look, nothing sent, nothing changed, no state needed."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from sentinel.alerting.observations import Outcome
from sentinel.cli import USAGE, json_option, startup
from sentinel.core.declared import ANY
from sentinel.core.errors import SentinelError
from sentinel.core.model import Status
from sentinel.core.settings import CheckConfig
from sentinel.wiring import app
from sentinel.wiring.app import BadCall

CODES = {Status.OK: 0, Status.WARNING: 1, Status.CRITICAL: 2, Status.UNKNOWN: 3}
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
    json_option(parser)
    parser.add_argument("--nagios", action="store_true", help="print like a Nagios plugin")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the history and forecast of disks into this SVG file"
    )
    parser.add_argument(
        "-h", "--help", action="store_true", help="show this help, or the options of a kind"
    )
    parser.set_defaults(call=call, takes_options=True, parser=parser)


def call(args: argparse.Namespace) -> int:
    """Exit code by the worst finding; with --nagios wrong calls are 3, too."""
    try:
        return _check(args)
    except SentinelError as error:
        if not args.nagios:
            raise
        print(f"UNKNOWN - {str(error).splitlines()[0]}")
        return 3


def _check(args: argparse.Namespace) -> int:
    if args.nagios and not (args.target or args.help):
        raise BadCall("name a configured check or a kind")
    if args.help or not args.target:
        return _help(args)
    if args.json and args.nagios:
        raise BadCall("--json and --nagios are two answers to one question; choose one")
    check, settings = _target(args)
    outcome = app.look(check, settings)
    _print(outcome, check, args)
    return CODES[Status(_status(outcome))]


def _target(args: argparse.Namespace) -> tuple[CheckConfig, Any]:
    settings = _settings(args) if _needed(args) else None
    named = [c for c in settings.checks if c.name == args.target] if settings else []
    if named and args.rest:
        raise BadCall(f"{args.target} is a configured check and takes no options: {args.rest[0]}")
    if named:
        return _limited(named[0], args.timeout), settings
    check = app.one_shot(
        args.target, _options(args.rest), [c.name for c in settings.checks] if settings else []
    )
    return _limited(check, args.timeout), settings


def _needed(args: argparse.Namespace) -> bool:
    """Whether the file is needed: a kind with options is one of its `checks_from`, or needs none."""
    return not args.rest or args.config or args.target not in app.CHECKS


def _settings(args: argparse.Namespace) -> Any:
    """A kind needs none; any other word may be a name of the one that cannot be read."""
    if args.target in app.CHECKS.names():
        return app.readable_settings(args.config, quiet=args.nagios)
    return app.find_settings(args.config, quiet=args.nagios)


def _limited(check: CheckConfig, timeout: str | None) -> CheckConfig:
    if timeout is None:
        return check
    from msgspec.structs import replace

    from sentinel.cli.common import seconds
    from sentinel.core.values import Duration

    limit = Duration(seconds(timeout, "--timeout"))
    if limit <= 0:
        raise BadCall("--timeout: must be longer than 0s")
    return replace(check, common=replace(check.common, timeout=limit))


def _options(words: Sequence[str]) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {}
    queue = list(words)
    while queue:
        word = queue.pop(0)
        if not word.startswith("--"):
            raise BadCall(f"unexpected argument {word!r}; options look like --path /scratch")
        name, equals, value = word[2:].partition("=")
        if not equals:
            value = queue.pop(0) if queue and not queue[0].startswith("--") else ""
        options.setdefault(name, []).append(value)
    return options


def _help(args: argparse.Namespace) -> int:
    if not args.target:
        args.parser.print_help(sys.stdout if args.help else sys.stderr)
        return 0 if args.help else USAGE
    if args.config or args.target not in app.CHECKS:
        app.find_kinds(args.config)
    for line in app.describe_options(args.target, min(startup.columns() - 2, 100)):
        print(line)
    return 0


def _status(outcome: Outcome) -> Status:
    return max((f.status for f in outcome.findings), key=lambda s: s.rank)


def _print(outcome: Outcome, check: CheckConfig, args: argparse.Namespace) -> None:
    from sentinel.cli import present

    if args.plot:
        _plot(outcome, args)
    if args.json:
        print(present.as_json(outcome))
    elif args.nagios:
        print(present.as_nagios(outcome))
    elif sys.stdout.isatty() and check.plugin.PANEL == "disks":
        from sentinel.cli import disks
        from sentinel.cli import history as past

        with past.remembered(outcome, args.config) as (history, now):
            disks.show(disks.rows(outcome, history, now))
    elif sys.stdout.isatty():
        from sentinel.cli import tables

        tables.show_check(outcome)
    else:
        print(present.as_lines(outcome))
    if not (args.json or args.nagios or type(check.plugin).__module__.startswith("sentinel.")):
        _without_number(outcome, check)


def _without_number(outcome: Outcome, check: CheckConfig) -> None:
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


def _plot(outcome: Outcome, args: argparse.Namespace) -> None:
    from sentinel.cli import disks
    from sentinel.cli import history as past

    with past.remembered(outcome, args.config) as (history, now):
        picture = disks.plot(disks.rows(outcome, history, now), now)
    try:
        with open(args.plot, "w", encoding="utf-8") as file:
            file.write(picture)
    except OSError as error:
        raise BadCall(f"--plot {args.plot}: {error.strerror}") from error
