"""What is shown of a run of the ledger, from its account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from sentinel.core.clock import SECOND
from sentinel.core.run_ledger import LedgerRow
from sentinel.core.text import visible
from sentinel.report.documents import HOUR_US
from sentinel.report.gpu_time import CLASSES
from sentinel.report.run_account import RunAccount, account_run
from sentinel.report.run_report import RunKey, group_runs
from sentinel.report.strip import StripSpan, make_strip
from sentinel.report.text_lines import LABELS, format_hours, format_share, render_sentence
from sentinel.status.types import PartFact, RunFact, StepLine, StripFact

MAX_RUNS = 50
"""Runs that are shown, those that held most: in metrics too, so no user can create series."""


def build_run_facts(
    known: Sequence[LedgerRow], cluster: str, since: int, until: int
) -> tuple[RunFact, ...]:
    """The runs that held something in that time, those that held most first. `cluster`: the local
    one."""
    grouped = group_runs(known)
    found = list[tuple[RunAccount, list[StripSpan]]]()
    for of_cluster, run in select_largest_runs(grouped, since, until):
        rows = grouped[of_cluster, run]
        spans = list[StripSpan]()
        account = replace(account_run(run, rows, since, until, spans), cluster=of_cluster)
        if account.calendar.held:
            found.append((account, make_strip(spans, rows, since, until)))
    found.sort(key=lambda one: (-one[0].held, one[0].run))
    return tuple(
        _make_run_fact(account, strip, grouped[account.cluster, account.run], cluster)
        for account, strip in found
    )


def select_largest_runs(
    grouped: Mapping[RunKey, Sequence[LedgerRow]], since: int, until: int
) -> list[RunKey]:
    """The MAX_RUNS runs that held most GPU-time between these moments. Only these get an account, which
    takes long: one user may run thousands of jobs of different names."""
    held = {key: time for key, rows in grouped.items() if (time := _sum_held(rows, since, until))}
    return sorted(held, key=lambda key: (*(-time for time in held[key]), key[1]))[:MAX_RUNS]


def _sum_held(rows: Sequence[LedgerRow], since: int, until: int) -> tuple[int, int] | None:
    """The GPU-time, and the time of all jobs. None if no job held anything."""
    starts = {(row.job, row.attempt): row for row in rows if row.kind == "held"}
    times = [(min(r.ended, until) - max(r.began, since), r.gpus) for r in starts.values()]
    total = sum(time for time, _ in times if time > 0)
    return (sum(time * gpus for time, gpus in times if time > 0), total) if total else None


def _make_run_fact(
    account: RunAccount, strip: Sequence[StripSpan], rows: Sequence[LedgerRow], cluster: str
) -> RunFact:
    return RunFact(
        run=visible(account.run),
        elsewhere=visible(account.cluster) if account.cluster != cluster else "",
        sentence=render_sentence(account),
        goodput=None if account.goodput is None else float(account.goodput),
        gpu_seconds={name: account.parts[name] / SECOND for name in CLASSES},
        parts=tuple(
            PartFact(
                label=LABELS[name],
                percent=100 * account.parts[name] / account.held,
                share=format_share(account.parts[name], account.held),
                hours=format_hours(account.parts[name] / HOUR_US),
            )
            for name in CLASSES
            if account.parts[name]
        ),
        strip=tuple(StripFact(s.began / SECOND, s.ended / SECOND, s.kind) for s in strip),
        steps=tuple(
            StepLine(row.began / SECOND, row.ended / SECOND, row.first_step, row.last_step)
            for row in rows
            if row.kind == "steps" and row.first_step is not None and row.last_step is not None
        ),
    )
