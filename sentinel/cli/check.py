"""`sentinel check`: runs a check once. It sends nothing, changes nothing, and needs no state."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

from msgspec.structs import replace

from sentinel.alerting.observations import RunOutcome
from sentinel.cli import EXIT_USAGE, add_json_option, outcome_formats, startup
from sentinel.cli.plain_rows import format_status_word
from sentinel.config.near_misses import did_you_mean
from sentinel.config.options import PLAIN_WORD
from sentinel.core.declared import ANY
from sentinel.core.errors import SentinelError
from sentinel.core.model import Status
from sentinel.core.settings import CheckConfig
from sentinel.core.text import visible
from sentinel.core.values import Duration
from sentinel.wiring import app, one_shot
from sentinel.wiring.app import UsageError

NAGIOS_EXIT_CODES = {Status.OK: 0, Status.WARNING: 1, Status.CRITICAL: 2, Status.UNKNOWN: 3}
"""The Nagios convention: https://nagios-plugins.org/doc/guidelines.html#AEN78."""


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser(
        "check",
        help="run one check now; it sends nothing and changes nothing",
        description="NAME is a configured check; KIND with options or paths needs no configuration.",
        epilog="Options of a kind: sentinel check KIND --help. "
        "Exit codes: 0 ok, 1 warning, 2 critical, 3 unknown.",
        add_help=False,
        allow_abbrev=False,  # otherwise a kind's --time would be read as our --timeout
    )
    parser.add_argument("target", nargs="?", metavar="NAME|KIND")
    parser.add_argument(
        "-c", "--config", metavar="FILE", help="the configuration file that defines NAME"
    )
    parser.add_argument(
        "--all", action="store_true", help="run every configured check; the worst one counts"
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
    """Run a check. The exit code is that of the worst finding; with --nagios an invalid call is 3,
    too, and stderr stays empty: Icinga 2 shows it before the answer (lib/base/process.cpp)."""
    if not args.nagios:
        return _run_target(args)
    with redirect_stderr(StringIO()):
        try:
            return _run_target(args)
        except SentinelError as error:
            print(f"UNKNOWN - {str(error).splitlines()[0]}")
            return 3


def _run_target(args: argparse.Namespace) -> int:
    _refuse_plugin_thresholds(args)
    if args.json and args.nagios and not args.help:
        raise UsageError("--json and --nagios are two answers to one question; choose one")
    if args.all and not args.help:
        return _run_all(args)
    if args.nagios and not (args.target or args.help):
        raise UsageError("name a configured check or a kind")
    if args.help or not args.target:
        return _print_check_help(args)
    check, settings = _resolve_target(args)
    is_configured = settings is not None and check.name in {c.name for c in settings.checks}
    has_state = False
    if is_configured:
        # opens the state, which a kind with options does not need
        from sentinel.cli import check_state

        has_state = check_state.has_readable_state(settings)
        [outcome] = check_state.run_with_history([check], settings, has_state=has_state)
    else:
        outcome = one_shot.run_check_once(check, settings)
    _print_outcome(outcome, check, args)
    if has_state and not (args.json or args.nagios):
        check_state.say_last_run(outcome, args.config)
    return NAGIOS_EXIT_CODES[Status(_find_worst_status(outcome))]


def _refuse_plugin_thresholds(args: argparse.Namespace) -> None:
    """Refuse `-w 20% -c 10%`, the thresholds of Nagios' plugins: here -c names the configuration
    file."""
    if "-w" in args.rest or any(word.startswith("-w") for word in args.rest):
        raise UsageError(
            "-w and -c are not taken as thresholds: -c names the configuration file. Limits are "
            "options of the kind, for example: sentinel check fs --path / --warn free=20% "
            "--crit free=10% --nagios"
        )


def _run_all(args: argparse.Namespace) -> int:
    """Run every configured check, one after the other. The exit code is that of the worst."""
    if args.target or args.rest or args.plot:
        what = args.target or (args.rest[0] if args.rest else "--plot")
        raise UsageError(f"--all runs every configured check; leave out {what}")
    settings = app.find_settings(args.config)
    if settings is None or not settings.checks:
        raise UsageError("no checks are configured: sentinel init")
    from sentinel.cli import check_state

    checks = [_apply_timeout(check, args.timeout) for check in settings.checks]
    has_state = check_state.has_readable_state(settings)
    outcomes = check_state.run_with_history(checks, settings, has_state=has_state)
    if args.nagios:
        print(outcome_formats.render_nagios_summary(outcomes))
    elif args.json:
        documents = [outcome_formats.render_outcome_json(outcome) for outcome in outcomes]
        print(f"[{','.join(documents)}]")
    else:
        for outcome in outcomes:
            worst = _find_worst_status(outcome)
            print(f"{format_status_word(worst)}{outcome.check}: {visible(outcome.headline)}")
    return NAGIOS_EXIT_CODES[max(map(_find_worst_status, outcomes), key=lambda s: s.rank)]


def _resolve_target(args: argparse.Namespace) -> tuple[CheckConfig, Any]:
    settings = _load_target_settings(args) if _needs_config(args) else None
    named = [c for c in settings.checks if c.name == args.target] if settings else []
    if named and args.rest:
        raise UsageError(
            f"{args.target} is a configured check and takes no options: {args.rest[0]}"
        )
    if named:
        return _apply_timeout(named[0], args.timeout), settings
    check = one_shot.make_one_shot_check(
        args.target,
        _parse_kind_options(args.rest),
        [c.name for c in settings.checks] if settings else [],
    )
    return _apply_timeout(check, args.timeout), settings


def _needs_config(args: argparse.Namespace) -> bool:
    """Whether the configuration file is needed. A built-in kind with options does not need it."""
    return not args.rest or args.config or args.target not in app.CHECKS


def _load_target_settings(args: argparse.Namespace) -> Any:
    """Settings for the target. A kind does not need any; another word may be a name in a file that
    cannot be read, so that is an error."""
    if args.target in app.CHECKS.kind_names():
        return app.load_readable_settings(args.config)
    return app.find_settings(args.config)


def _apply_timeout(check: CheckConfig, timeout: str | None) -> CheckConfig:
    if timeout is None:
        return check
    from sentinel.cli.common import parse_seconds

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
            if word.startswith("-") and word != "-":
                raise UsageError(f"there is no option {word!r}; options look like --path /scratch")
            options.setdefault(PLAIN_WORD, []).append(word)
            continue
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
    for line in one_shot.describe_options(
        args.target, min(startup.get_terminal_columns() - 2, 100)
    ):
        print(line)
    return 0


def _find_worst_status(outcome: RunOutcome) -> Status:
    return max((f.status for f in outcome.findings), key=lambda s: s.rank)


def _print_outcome(outcome: RunOutcome, check: CheckConfig, args: argparse.Namespace) -> None:
    if args.plot:
        _write_plot(outcome, args)
    if args.json:
        print(outcome_formats.render_outcome_json(outcome))
    elif args.nagios:
        print(outcome_formats.render_nagios_output(outcome))
    elif sys.stdout.isatty():
        from sentinel.cli.history import print_outcome  # imports rich for tables

        print_outcome(outcome, check.plugin, args.config)
    else:
        print(outcome_formats.render_outcome_lines(outcome))
    if not (args.json or args.nagios or type(check.plugin).__module__.startswith("sentinel.")):
        _warn_unused_metrics(outcome, check)


def _warn_unused_metrics(outcome: RunOutcome, check: CheckConfig) -> None:
    """Warn about metrics that a third party's kind declares and never fills. Sentinel's own kinds
    are not checked here: tests do that, and some numbers are only in some findings."""
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
    from sentinel.cli.history import draw_disks
    from sentinel.proc.whole_files import write_output_file

    picture = draw_disks(outcome, args.config)
    try:
        write_output_file(args.plot, picture.encode())
    except OSError as error:
        raise UsageError(f"--plot {args.plot}: {error.strerror}") from error
