"""`sentinel run` and `sentinel tick`."""

import argparse
import json
import logging
import signal
import sys
from collections.abc import Sequence
from typing import Any

from sentinel.cli import EXIT_TEMPFAIL, add_config_option, add_json_option
from sentinel.cli.logs import configure_logging
from sentinel.cli.plain_rows import format_status_word
from sentinel.cli.signals import EndedBySignal
from sentinel.core.errors import Fenced, StoreBusy, StoreError
from sentinel.core.model import CheckRun, Status, get_worst_status
from sentinel.core.text import visible
from sentinel.wiring import commands as running


def register(commands: Any) -> None:
    """Add the parsers."""
    run = commands.add_parser("run", help="the service: watches and tells until you end it")
    _add_common_options(run)
    run.add_argument(
        "--standby",
        action="store_true",
        help="while another sentinel leads, wait, and take over when it is gone",
    )
    run.set_defaults(call=call_run)
    tick = commands.add_parser("tick", help="one pass over the checks that are due, then exit")
    _add_common_options(tick)
    tick.add_argument(
        "--all", action="store_true", help="run every check, also those that are not due"
    )
    form = tick.add_mutually_exclusive_group()
    add_json_option(form)
    form.add_argument(
        "--quiet", action="store_true", help="print nothing unless the pass itself fails"
    )
    tick.add_argument(
        "--strict",
        action="store_true",
        help="exit with the code of the worst check: 0 ok to 3 unknown",
    )
    tick.add_argument(
        "--no-deliver",
        action="store_true",
        help="send nothing: messages wait for `sentinel deliver`",
    )
    tick.add_argument(
        "--spacing",
        type=int,
        default=0,
        # only a chain uses it: passes may also come from other hosts, this many seconds apart
        help=argparse.SUPPRESS,
    )
    tick.set_defaults(call=call_tick)
    deliver = commands.add_parser(
        "deliver", help="send the messages that wait, from a host that can send"
    )
    add_config_option(deliver)
    deliver.add_argument("-v", "--verbose", action="store_true", help="write more into the log")
    deliver.set_defaults(call=call_deliver)


def call_run(args: argparse.Namespace) -> int:
    """Run the service. Returns 0 after a clean stop; 75 if another sentinel leads on this state."""
    signal.signal(signal.SIGTERM, _exit_before_start)
    _configure_log(args.verbose)
    from sentinel.wiring.service import run_service  # a tick needs nothing of it

    try:
        run_service(args.config, dry_run=args.dry_run, standby=args.standby)
    except (StoreBusy, Fenced) as error:
        print(f"sentinel: {error}", file=sys.stderr)
        return EXIT_TEMPFAIL
    return 0


def _exit_before_start(*_: object) -> None:
    """End at a signal before the service has started: nothing is pending yet."""
    raise EndedBySignal(0)


def call_tick(args: argparse.Namespace) -> int:
    """Make one pass. Returns 0 unless --strict. A second tick at the same time says so, runs
    nothing and returns 0. Returns 74 if the results could not be kept, or the leader hangs."""
    _configure_log(args.verbose, quiet=args.quiet or (sys.stderr.isatty() and not args.json))
    try:
        runs, delivered, lost = running.run_tick(
            args.config,
            dry_run=args.dry_run,
            everything=args.all,
            delivering=not args.no_deliver,
            spacing=max(0, args.spacing),
            quiet=args.quiet,
        )
    except StoreBusy as error:
        print(f"sentinel: nothing run: {error}", file=sys.stderr)
        if args.json:
            print(json.dumps({"ran": False, "checks": []}))
        return 0
    if args.json:
        print(
            json.dumps(
                {"ran": True, "delivered": delivered, "checks": [_build_run_row(r) for r in runs]},
                indent=1,
            )
        )
    elif not args.quiet:
        for run in _select_unprinted_runs(runs):
            print(visible(f"{format_status_word(run.status)}{run.check}: {run.summary}"))
    if not delivered:
        print(
            "sentinel: some notifications are not delivered yet: sentinel status", file=sys.stderr
        )
    if lost:
        print(f"sentinel: what this pass saw could not be kept: {visible(lost)}", file=sys.stderr)
        return StoreError.exit_code
    codes = {Status.OK: 0, Status.WARNING: 1, Status.CRITICAL: 2, Status.UNKNOWN: 3}
    return codes[get_worst_status(r.status for r in runs)] if args.strict else 0


def _select_unprinted_runs(runs: Sequence[CheckRun]) -> list[CheckRun]:
    """On a terminal, the runs that the `console` channel has not just printed there."""
    console = sys.modules.get("sentinel.channels.console")
    if console is None or not sys.stdout.isatty():
        return list(runs)
    return [run for run in runs if run.check not in console.PRINTED]


def call_deliver(args: argparse.Namespace) -> int:
    """Send waiting messages. Returns 0 if none is left, 75 if one is; 0 beside a service, which
    sends them itself."""
    _configure_log(args.verbose)
    try:
        delivered = running.deliver_outbox(args.config)
    except StoreBusy as error:
        print(f"sentinel: nothing sent: {error}", file=sys.stderr)
        return 0
    if not delivered:
        print(
            "sentinel: some notifications are not delivered yet: sentinel status", file=sys.stderr
        )
    return 0 if delivered else EXIT_TEMPFAIL


def _add_common_options(parser: Any) -> None:
    add_config_option(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="change nothing on the cluster; say what would be done",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="write more into the log")


def _build_run_row(run: CheckRun) -> dict[str, object]:
    return {
        "check": run.check,
        "kind": run.kind,
        "status": run.status.value,
        "summary": run.summary,
        "duration_s": round(run.duration, 4),
    }


def _configure_log(verbose: bool, *, quiet: bool = False) -> None:
    """`quiet`: a person reads what is printed, so the log does not say the same again."""
    configure_logging(verbose)
    if quiet and not verbose:
        logging.getLogger("sentinel").setLevel(logging.WARNING)
