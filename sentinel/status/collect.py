"""What facts are made of, read from the state; the one place that knows how it is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from msgspec import Struct

from sentinel.alerting.settings import Window
from sentinel.alerting.silences import Orders
from sentinel.alerting.state import Store
from sentinel.core.actions import ActionRecord
from sentinel.core.clock import SECOND, Instant
from sentinel.core.model import Alert, Outgoing, Run
from sentinel.core.ports import Logbook
from sentinel.core.settings import CheckConfig
from sentinel.status import last_seen
from sentinel.status.last_seen import CheckLook, NodeLook

if TYPE_CHECKING:
    from sentinel.core.gpu_ledger import Entry, Gpus, Standing
    from sentinel.status.types import ClusterFact

NextRun = Callable[[CheckConfig, Instant | None, Instant, tzinfo], datetime]
RECENT = 50
"""Records of the audit log that are shown at once."""

PACE = 1800.0
"""Seconds of samples from which the speed of a training is reckoned."""

MOST_PACES = 100


class Surroundings(Struct, frozen=True, kw_only=True):
    """What the configuration says of what is shown. `next_run`: as the schedule reckons it;
    `evidence`: the folder in which stacks are kept; `clusters`: those of other sentinels."""

    checks: tuple[CheckConfig, ...]
    cluster: str
    zone: tzinfo
    next_run: NextRun
    windows: tuple[Window, ...] = ()
    logbook: Logbook | None = None
    gpus: Gpus | None = None
    evidence: str = ""
    clusters: tuple[ClusterFact, ...] = ()
    pass_every: float = 0.0
    """Seconds between the passes of a chain or crontab; they come at multiples of it since 1970.
    0: a service looks at all times, or nothing is known to call sentinel."""


class Material(Struct, frozen=True, kw_only=True):
    """All of one moment. `paces`: a number over time, by check, subject and its name."""

    now: Instant
    around: Surroundings
    leader: str
    alerts: tuple[Alert, ...] = ()
    runs: Mapping[str, Run] = {}
    orders: Orders = Orders()
    outbox: tuple[Outgoing, ...] = ()
    records: tuple[ActionRecord, ...] = ()
    looks: Mapping[str, CheckLook] = {}
    nodes: NodeLook | None = None
    paces: Mapping[tuple[str, str, str], tuple[tuple[Instant, float], ...]] = {}
    standings: Mapping[str, Standing] = {}
    entries: Mapping[str, Entry] = {}
    notices: tuple[str, ...] = ()


def gather(store: Store, around: Surroundings, now: Instant) -> Material:
    """Read it all; raises StoreError."""
    seen = _looks(store, around)
    standings, entries = _gpus(around, now)
    return Material(
        now=now,
        around=around,
        leader=store.leader(),
        alerts=tuple(store.alerts()),
        runs={r.check: r for r in store.runs()},
        orders=store.orders(),
        outbox=tuple(store.outbox()),
        records=tuple(around.logbook.records(limit=RECENT)) if around.logbook else (),
        looks=seen,
        nodes=last_seen.node_look(store.memory(last_seen.NODES)),
        paces=_paces(store, around, seen, now),
        standings=standings,
        entries=entries,
    )


def _looks(store: Store, around: Surroundings) -> dict[str, CheckLook]:
    names = [check.name for check in around.checks]
    found = {name: last_seen.recalled(store.memory(last_seen.key(name))) for name in names}
    return {name: look for name, look in found.items() if look is not None}


def _paces(
    store: Store, around: Surroundings, seen: Mapping[str, CheckLook], now: Instant
) -> dict[tuple[str, str, str], tuple[tuple[Instant, float], ...]]:
    since = now.wall - int(PACE * SECOND)
    moving = [
        (check.name, finding.subject, metric.value)
        for check in around.checks
        for metric in check.plugin.METRICS
        if metric.moves == "rate" and check.name in seen
        for finding in seen[check.name].findings
        if finding.values.get(metric.value) is not None
    ]
    return {one: tuple(store.samples(*one, since)) for one in moving[:MOST_PACES]}


def _gpus(around: Surroundings, now: Instant) -> tuple[Mapping[str, Standing], dict[str, Entry]]:
    if around.gpus is None:
        return {}, {}
    standings = around.gpus.standings(now)
    found = ((subject, around.gpus.entry(subject)) for subject in standings)
    return standings, {subject: entry for subject, entry in found if entry is not None}
