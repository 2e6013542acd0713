"""A run in a period, beside the period before, with what would have saved most. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.run_ledger import LedgerRow
from sentinel.report.gpu_time import CLASSES, TimeClass
from sentinel.report.run_account import RunAccount, account_run
from sentinel.report.savings import Saving, find_savings

EARLIER_US = 7 * 86_400 * 10**6
"""Time of the ledger that is read from before a period: its rows know the last checkpoint."""

MIN_GROWTH_PERCENT = 1
"""A loss that grew by a smaller share of the GPU-hours held did not grow."""

LOSSES: tuple[TimeClass, ...] = tuple(
    name for name in CLASSES if name not in ("useful", "provisional", "unknown")
)

RunKey = tuple[str, str]
"""Cluster and name of a run."""


class RunReport(Struct, frozen=True, kw_only=True):
    """What is said of a run.

    before: The account of the period before, of the same length. None: nothing was held then.
    """

    account: RunAccount
    before: RunAccount | None = None
    savings: tuple[Saving, ...] = ()

    @property
    def grown(self) -> TimeClass | None:
        """The loss whose share of what was held grew most since the period before. None where none
        grew, or where most of the time before is not known."""
        now, before = self.account, self.before
        if before is None or not now.held or before.parts["unknown"] * 2 > before.held:
            return None
        growths = {name: compare_shares(now, before, name) for name in LOSSES}
        name = max(LOSSES, key=lambda one: growths[one])
        return name if growths[name] * 100 >= now.held * before.held * MIN_GROWTH_PERCENT else None


def compare_shares(now: RunAccount, before: RunAccount, name: TimeClass) -> int:
    """By how much the share of a part grew, in units of one by what was held now and before."""
    return now.parts[name] * before.held - before.parts[name] * now.held


def get_read_start(since: int, until: int) -> int:
    """From which moment on (µs UTC) the ledger is read for a report of this period."""
    return since - (until - since) - EARLIER_US


def group_runs(rows: Iterable[LedgerRow]) -> dict[RunKey, list[LedgerRow]]:
    """The rows of each run."""
    found = dict[RunKey, list[LedgerRow]]()
    for row in rows:
        found.setdefault((row.cluster, row.run), []).append(row)
    return found


def report_runs(
    grouped: Mapping[RunKey, Sequence[LedgerRow]], since: int, until: int, *, empty: bool = False
) -> list[RunReport]:
    """The runs that held something, those that held most first; with `empty` the others too."""
    found = [_report_run(key, rows, since, until) for key, rows in grouped.items()]
    shown = [one for one in found if one.account.calendar.held or empty]
    return sorted(shown, key=lambda one: (-one.account.held, one.account.run))


def _report_run(key: RunKey, rows: Sequence[LedgerRow], since: int, until: int) -> RunReport:
    cluster, run = key
    recent = [row for row in rows if row.ended >= since - EARLIER_US]
    account = replace(account_run(run, recent, since, until), cluster=cluster)
    earliest = 2 * since - until
    has_before = any(
        row.kind == "held" and row.began < since and row.ended > earliest for row in rows
    )
    before = account_run(run, rows, earliest, since) if has_before else None
    return RunReport(
        account=account,
        before=before if before and before.held else None,
        savings=find_savings(account, recent, since, until),
    )
