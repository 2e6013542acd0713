"""`sentinel report [RUN]`: what trainings did with the GPUs that they held, and why the rest was
lost."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from fnmatch import fnmatchcase
from typing import Any, NamedTuple
from urllib.parse import urlencode

from sentinel.alerting.notifications import format_iso
from sentinel.cli import add_config_option, add_json_option
from sentinel.cli.common import parse_seconds
from sentinel.cli.plain_rows import is_piped
from sentinel.cli.state import OpenState
from sentinel.core.clock import SECOND, Instant
from sentinel.core.run_ledger import LedgerRow
from sentinel.core.text import visible
from sentinel.core.values import clock_text
from sentinel.report.documents import list_csv_rows, make_report_document
from sentinel.report.run_report import RunReport, get_read_start, group_runs, report_runs
from sentinel.report.text_lines import CHECK_HINTS, render_report, render_sentence
from sentinel.wiring.app import UsageError

LINK_SPAN_S = 3600
"""Seconds that the page of a run shows around an interruption."""

DEFAULT_SINCE = "7d"

MAX_WHOLE_RUNS = 3
"""Of more runs than this each has one sentence."""


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser(
        "report", help="how much of the GPU-hours of trainings was useful, and why the rest was not"
    )
    text = "the name of a training, or a pattern such as 'llm-*'; default: all"
    parser.add_argument("run", nargs="?", default="", metavar="RUN", help=text)
    add_config_option(parser)
    text = "how far to look back, for example 24h; default: 7d, with --from everything"
    parser.add_argument("--since", metavar="TIME", help=text)
    text = "report past jobs from their logs, in place of what checks wrote down; nothing is stored"
    parser.add_argument("--from", nargs="+", dest="past_files", metavar="GLOB", help=text)
    text = "with --from: ask accounting when these jobs ran, on how many GPUs, and how they ended"
    parser.add_argument("--sacct", action="store_true", help=text)
    text = "with --from: how many GPUs each job held, where nothing else tells"
    parser.add_argument("--gpus", type=int, metavar="N", help=text)
    form = parser.add_mutually_exclusive_group()
    add_json_option(form)
    text = "print a row for each run, with commas between the cells"
    form.add_argument("--csv", action="store_true", help=text)
    parser.set_defaults(call=call_report)


def call_report(args: argparse.Namespace) -> int:
    """Print the report. Returns 0."""
    length = parse_seconds(args.since or DEFAULT_SINCE, "--since")
    if args.past_files:
        return _report_past(args, length)
    for option, is_given in (("--gpus", args.gpus is not None), ("--sacct", args.sacct)):
        if is_given:
            raise UsageError(f"{option} is of jobs of the past; it needs --from")
    with OpenState(args.config) as state:
        until = state.now.wall
        since = until - int(length * SECOND)
        rows = state.store.read_ledger(get_read_start(since, until))
        zone, web = state.zone, state.settings.web
    reports = report_named_runs(rows, args.run, since, until)
    link = make_link(web.url) if web and web.url else None
    _print_report(args, _Period(since, until, zone), reports, link)
    return 0


def _report_past(args: argparse.Namespace, length: float) -> int:
    """Print the report about jobs of the past, from their files. Raises CannotTell if none of them says
    anything."""
    from sentinel.cli.report_past import PAST_HINTS, describe_past, read_past_ledger

    past = read_past_ledger(args)
    until = max(row.ended for row in past.ledger.rows) + 1
    since = min(row.began for row in past.ledger.rows)
    if args.since:
        until = past.now
        since = until - int(length * SECOND)
    reports = report_named_runs(past.ledger.rows, args.run, since, until)
    reports = [describe_past(one, past.ledger) for one in reports]
    _print_report(args, _Period(since, until, past.zone), reports, None, PAST_HINTS)
    return 0


class _Period(NamedTuple):
    since: int  # µs UTC
    until: int
    zone: tzinfo


def _print_report(
    args: argparse.Namespace,
    period: _Period,
    reports: Sequence[RunReport],
    link: Callable[[str, int], str] | None,
    hints: Mapping[str, str] = CHECK_HINTS,
) -> None:
    def format_moment(at: int) -> str:
        return format_iso(Instant(at), period.zone)

    if args.json:
        found = [make_report_document(one, format_moment, link) for one in reports]
        document = {
            "since": format_moment(period.since),
            "until": format_moment(period.until),
            "runs": found,
        }
        print(json.dumps(document, indent=1))
    elif args.csv:
        import csv  # only this form needs it

        csv.writer(sys.stdout, lineterminator="\n").writerows(
            list_csv_rows([one.account for one in reports])
        )
    else:
        _print_reports(reports, args.since or DEFAULT_SINCE, period.until, link, hints)


def make_link(url: str) -> Callable[[str, int], str]:
    """A function that gives the address of the page of a run around a moment (µs UTC)."""

    def link(run: str, at: int) -> str:
        query = urlencode({"subject": run, "at": at // SECOND, "span": LINK_SPAN_S})
        return f"{url.rstrip('/')}/jobs/one?{query}"

    return link


def report_named_runs(
    rows: Sequence[LedgerRow], wanted: str, since: int, until: int
) -> list[RunReport]:
    """The reports of the runs that held something, those that held most first. Raises UsageError
    if no run has that name."""
    by_run = group_runs(rows)
    named = {
        key: several
        for key, several in by_run.items()
        if not wanted or wanted == key[1] or fnmatchcase(key[1], wanted)
    }
    if wanted and not named:
        some = ", ".join(visible(run) for _, run in sorted(by_run)[:8])
        known = f"there are: {some}" if some else "the ledger of runs is empty"
        raise UsageError(f"no run of the name {wanted!r} held anything in that time; {known}")
    return report_runs(named, since, until, empty=bool(wanted))


def _print_reports(
    reports: Sequence[RunReport],
    since: str,
    now: int,
    link: Callable[[str, int], str] | None,
    hints: Mapping[str, str],
) -> None:
    if not reports:
        print(f"no training held anything in the last {since}; {hints['nothing']}")
    whole, bars = len(reports) <= MAX_WHOLE_RUNS, not is_piped()
    for number, report in enumerate(reports):
        if not whole:
            print(render_sentence(report.account, hints))
            continue
        if number:
            print()
        for line in render_report(
            report,
            lambda at: clock_text(at / SECOND, now / SECOND),
            bars=bars,
            link=link,
            hints=hints,
        ):
            print(line)
