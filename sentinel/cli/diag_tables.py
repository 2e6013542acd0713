"""Output of `sentinel diag`: lines for people, plain data for programs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Any

from rich.text import Text

from sentinel.alerting.notifications import format_iso
from sentinel.checks.diag.runs import DiagRun, LastDiagVerdict
from sentinel.cli import node_tables
from sentinel.cli.tables import make_console, make_plain_table
from sentinel.core.actions import ActionOutcome, ActionRecord
from sentinel.core.clock import SECOND, Instant
from sentinel.core.text import visible


def is_dispatched(record: ActionRecord) -> bool:
    """Whether the run was submitted, or (in a dry run) would be."""
    return record.outcome in (ActionOutcome.DONE, ActionOutcome.INTENDED)


def print_dispatch_report(
    runs: Sequence[DiagRun], records: Sequence[ActionRecord], args: argparse.Namespace
) -> None:
    """Print the result of each request."""
    if args.json:
        rows = [
            {
                "node": run.node,
                "level": run.level,
                "file": run.out,
                "outcome": record.outcome.value,
                "why": visible(record.why),
                "detail": visible(record.detail),
                "dry_run": args.dry_run,
            }
            for run, record in zip(runs, records, strict=True)
        ]
        print(json.dumps(rows, indent=1))
        return
    for run, record in zip(runs, records, strict=True):
        told = node_tables.render_action_result(record, dry_run=args.dry_run)
        if is_dispatched(record) and not args.dry_run:
            told = [f"{run.node}: dcgmi diag -r {run.level} asked for; output: {run.out}"]
        print("\n".join(told), flush=True)


def render_diag_lines(last: LastDiagVerdict) -> Iterator[str]:
    """A verdict in lines, one for each fault."""
    yield visible(f"{last.node}: dcgmi diag -r {last.level}: {last.outcome}: {last.why}")
    for detail in last.details:
        yield visible(f"  {detail}")
    yield visible(f"  output: {last.file}")


def build_diag_row(last: LastDiagVerdict) -> dict[str, Any]:
    """A verdict as JSON."""
    return {
        "node": visible(last.node),
        "level": last.level,
        "outcome": last.outcome,
        "why": visible(last.why),
        "at": last.at // SECOND,
        "gpus": list(last.gpus),
        "details": [visible(d) for d in last.details],
        "file": visible(last.file),
    }


def print_diag_table(last: Sequence[LastDiagVerdict], zone: tzinfo) -> None:
    """Print a row for each verdict, by node and time."""
    table = make_plain_table("node", "level", "at", "verdict", "why")
    for one in sorted(last, key=lambda o: (o.node, o.at)):
        when = format_iso(Instant(wall=one.at), zone)[:16].replace("T", " ")
        cells = (one.node, str(one.level), when, one.outcome, one.why)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    make_console().print(table)
