"""Ten thousand alerts in one pass: which explain which, who is told, and what people are shown.

    python -m benchmarks.bench_incidents

A thousand nodes die at once, of some racks all: of each the node, eight GPUs and a mount fire, and a
hundred trainings on them are dead. Without rules nothing explains anything: what that costs is the
price of telling alone.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timezone
from statistics import median
from typing import TypeVar

from benchmarks.measure import machine, row
from sentinel.alerting.incidents import Causes, assign_incidents
from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.processor import process_outcomes
from sentinel.alerting.silences import Orders
from sentinel.alerting.state_machine import AlertPolicy
from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core.clock import Instant, shift_instant
from sentinel.core.model import Alert, Coverage, Finding, Key, Report, Status
from sentinel.status.folding import fold_alerts
from sentinel.status.incidents import IncidentInputs, group_open_incidents
from sentinel.status.types import AlertFact
from sentinel.wiring import app

NODES, GPUS, RACK, TRAININGS = 1000, 8, 16, 100
LIMIT = 1.0
"""Seconds of processor time, whatever else the machine does: a pass that takes longer is late for a
dead training."""

ROUNDS = 5
START = Instant(wall=1_800_000_000_000_000)
KINDS = {"nodes": "nodes", "gpus": "gpu", "mounts": "fs", "training": "job"}
PLAN = NotificationPlan(
    cluster="bench", channels=["mail"], policies={n: AlertPolicy(kind=k) for n, k in KINDS.items()}
)
Result = TypeVar("Result")


def outcomes() -> list[RunOutcome]:
    """What the four checks have seen."""
    names = [f"n{n:04}" for n in range(NODES)]
    on = {
        name: {"node": name, "rack": f"r{n // RACK}"} if n < NODES - 100 else {"node": name}
        for n, name in enumerate(names)
    }
    racks = sorted({labels["rack"] for labels in on.values() if "rack" in labels})
    return [
        _saw("nodes", [_bad(f"rack {r}", "all are out", {"rack": r}) for r in racks]
             + [_bad(name, "DOWN", on[name]) for name in names]),
        _saw("gpus", [_bad(f"GPU-{n}-{g}", "Xid 79", {"node": n}) for n in names for g in range(GPUS)]),
        _saw("mounts", [_bad(f"{n}:/scratch", "does not answer", {"node": n}) for n in names]),
        _saw("training", [_bad(f"u{n}/llm", "NODE_FAIL", {"node": names[n]}) for n in range(TRAININGS)]),
    ]  # fmt: skip


def main() -> None:
    """Medians of a few rounds, against the limit."""
    print(machine())
    seen = outcomes()
    alerts, told = _first(seen)
    shown = [_fact(a) for a in alerts.values()]
    known = IncidentInputs(
        alerts=[*alerts.values()], history=(), orders=Orders(), now=START, zone=timezone.utc
    )
    row("alerts in one pass", f"{len(alerts):,}", f"{told:,} messages, all else with its cause")
    later = shift_instant(START, 60)
    timed = {
        "a pass in which all begin": lambda: process_outcomes(seen, {}, PLAN, START),
        "a pass in which all go on": lambda: process_outcomes(seen, alerts, PLAN, later),
        "which explain which": lambda: [*assign_incidents(alerts, Causes(alerts.values()))],
        "the same without rules": lambda: [*assign_incidents(alerts, Causes(alerts.values(), ()))],
        "incidents for people": lambda: group_open_incidents(known),
        "rows of the page": lambda: fold_alerts(shown),
    }
    for what, work in timed.items():
        seconds = _seconds(work)
        row(what, f"{seconds:.3f} s", f"{seconds / LIMIT:.2f} of the limit of {LIMIT:g} s")
    row("written to SQLite, once", f"{_written(seen):.3f} s")


def _first(seen: Sequence[RunOutcome]) -> tuple[dict[Key, Alert], int]:
    batch = process_outcomes(seen, {}, PLAN, START)
    return {a.key: a for a in batch.alerts}, len(batch.outbox)


def _written(seen: Sequence[RunOutcome]) -> float:
    """The first of these passes as one transaction."""
    with tempfile.TemporaryDirectory() as folder:
        store, _ = app.open_state(Settings(state=folder), SystemClock())
        store.take_lead("bench", START)
        batch, began = process_outcomes(seen, {}, PLAN, START), time.process_time()
        store.commit(batch)
        took = time.process_time() - began
        store.close()
    return took


def _seconds(work: Callable[[], Result]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return median(times)


def _bad(subject: str, words: str, labels: dict[str, str]) -> Finding:
    return Finding(subject=subject, status=Status.CRITICAL, summary=words, labels=labels)


def _saw(check: str, found: Sequence[Finding]) -> RunOutcome:
    report = Report(findings=tuple(found), coverage=Coverage(of="things", meant=len(found)))
    fine = Finding(subject="", status=Status.OK, summary="")
    return RunOutcome(check=check, kind=KINDS[check], seconds=1.0, report=report, itself=fine)


def _fact(a: Alert) -> AlertFact:
    return AlertFact(
        id=a.id, incident=a.incident, cluster="bench", check=a.key.check, kind=a.kind,
        subject=a.key.subject, status=a.status, severity=a.severity, state="firing",
        since=START.wall / 1e6, for_s=0.0, summary=a.summary, labels=a.labels,
    )  # fmt: skip


if __name__ == "__main__":
    main()
