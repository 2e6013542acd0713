"""What facts are made of, read from the state; the one place that knows how it is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from msgspec import Struct

from sentinel.alerting.settings import SilenceWindow
from sentinel.alerting.silences import Orders
from sentinel.alerting.state import Store
from sentinel.core.actions import ActionRecord
from sentinel.core.clock import SECOND, Instant
from sentinel.core.model import Alert, CheckRun, Outgoing
from sentinel.core.ports import Logbook
from sentinel.core.settings import CheckConfig
from sentinel.status import last_seen
from sentinel.status.last_seen import CheckLook, NodeLook
from sentinel.status.run_reader import RunReader
from sentinel.status.types import RunFact

if TYPE_CHECKING:
    from sentinel.core.gpu_ledger import GpuLedger, GpuStanding, LedgerEntry
    from sentinel.status.types import ClusterFact

NextRunFunction = Callable[[CheckConfig, Instant | None, Instant, tzinfo], datetime]
MAX_RECENT_RECORDS = 50
"""Records of the audit log that are shown at once."""

PACE_SAMPLES_S = 1800.0
"""Seconds of samples from which the speed of a training is reckoned."""

MAX_PACES = 100


class StatusSettings(Struct, frozen=True, kw_only=True):
    """What the configuration says of what is shown. `next_run`: as the schedule reckons it;
    `evidence`: the folder in which stacks are kept; `clusters`: those of other sentinels; `config`:
    the configuration that commands have to name, empty if they find it."""

    checks: tuple[CheckConfig, ...]
    cluster: str
    zone: tzinfo
    next_run: NextRunFunction
    windows: tuple[SilenceWindow, ...] = ()
    logbook: Logbook | None = None
    gpus: GpuLedger | None = None
    evidence: str = ""
    clusters: tuple[ClusterFact, ...] = ()
    config: str = ""
    pass_every: float = 0.0
    """Seconds between the passes of a chain or crontab; they come at multiples of it since 1970.
    0: a service looks at all times, or nothing is known to call sentinel."""


class StatusInputs(Struct, frozen=True, kw_only=True):
    """All of one moment. `paces`: a number over time, by check, subject and its name."""

    now: Instant
    around: StatusSettings
    leader: str
    alerts: tuple[Alert, ...] = ()
    runs: Mapping[str, CheckRun] = {}
    orders: Orders = Orders()
    outbox: tuple[Outgoing, ...] = ()
    records: tuple[ActionRecord, ...] = ()
    looks: Mapping[str, CheckLook] = {}
    nodes: NodeLook | None = None
    paces: Mapping[tuple[str, str, str], tuple[tuple[Instant, float], ...]] = {}
    standings: Mapping[str, GpuStanding] = {}
    entries: Mapping[str, LedgerEntry] = {}
    notices: tuple[str, ...] = ()
    ledger: tuple[RunFact, ...] = ()


def read_status_inputs(
    store: Store, around: StatusSettings, now: Instant, runs: RunReader | None = None
) -> StatusInputs:
    """Read it all; raises StoreError. Who reads again and again keeps `runs`."""
    seen = _read_check_looks(store, around)
    standings, entries = _read_gpu_standings(around, now)
    return StatusInputs(
        now=now,
        around=around,
        leader=store.read_leader(),
        alerts=tuple(store.read_alerts()),
        runs={r.check: r for r in store.read_runs()},
        orders=store.read_orders(),
        outbox=tuple(store.read_outbox()),
        records=tuple(around.logbook.records(limit=MAX_RECENT_RECORDS)) if around.logbook else (),
        looks=seen,
        nodes=last_seen.decode_node_look(store.read_memory(last_seen.NODES_KEY)),
        paces=_read_paces(store, around, seen, now),
        standings=standings,
        entries=entries,
        ledger=(runs or RunReader()).read_runs(store, around.cluster, now),
    )


def _read_check_looks(store: Store, around: StatusSettings) -> dict[str, CheckLook]:
    names = [check.name for check in around.checks]
    found = {
        name: last_seen.decode_check_look(store.read_memory(last_seen.make_check_key(name)))
        for name in names
    }
    return {name: look for name, look in found.items() if look is not None}


def _read_paces(
    store: Store, around: StatusSettings, seen: Mapping[str, CheckLook], now: Instant
) -> dict[tuple[str, str, str], tuple[tuple[Instant, float], ...]]:
    since = now.wall - int(PACE_SAMPLES_S * SECOND)
    moving = [
        (check.name, finding.subject, metric.value)
        for check in around.checks
        for metric in check.plugin.METRICS
        if metric.moves == "rate" and check.name in seen
        for finding in seen[check.name].findings
        if finding.values.get(metric.value) is not None
    ]
    return {one: tuple(store.read_samples(*one, since)) for one in moving[:MAX_PACES]}


def _read_gpu_standings(
    around: StatusSettings, now: Instant
) -> tuple[Mapping[str, GpuStanding], dict[str, LedgerEntry]]:
    if around.gpus is None:
        return {}, {}
    standings = around.gpus.read_standings(now)
    found = ((subject, around.gpus.read_entry(subject)) for subject in standings)
    return standings, {subject: entry for subject, entry in found if entry is not None}
