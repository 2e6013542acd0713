"""Facts about a made-up cluster: a little of everything, or very much of it."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.alerting.state import Store
from sentinel.core.actions import ActionOutcome, ActionRecord
from sentinel.core.clock import Instant, shift_instant
from sentinel.core.cluster import Node
from sentinel.core.gpu_ledger import GpuEvent, GpuSighting
from sentinel.core.model import (
    Alert,
    Batch,
    CheckRun,
    Key,
    Notification,
    Outgoing,
    Sample,
    Status,
    Transition,
)
from sentinel.core.run_ledger import LedgerKind, LedgerRow
from sentinel.core.settings import CheckCommon, CheckConfig
from sentinel.status import last_seen
from sentinel.status.collect import StatusSettings, read_status_inputs
from sentinel.status.last_seen import CheckLook, NodeLook, PlacedJob, ShownFinding, group_nodes
from sentinel.status.types import Facts
from sentinel.store.memory import MemoryStore
from sentinel.testing import START
from sentinel.wiring.app import CHECKS
from tests.store.gpu_memory import MemoryGpus

KINDS = {"scratch": "fs", "training": "job", "progress": "log", "drained": "drained"}
HOUR = 3600.0


class Records:
    """A log of actions that holds what it was given."""

    def __init__(self, *records: ActionRecord) -> None:
        self._records = records

    def records(self, target: str = "", limit: int = 100) -> Sequence[ActionRecord]:
        return [r for r in self._records if target in ("", r.target)][:limit]

    def readings(self, node: str, limit: int = 100) -> Sequence[Any]:
        return []


def config(name: str, kind: str, every: float = 60.0) -> CheckConfig:
    return CheckConfig(name=name, common=CheckCommon(kind=kind), plugin=CHECKS.load_kind(kind))


def next_run(check: CheckConfig, last: Instant | None, now: Instant, zone: Any) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    return epoch + timedelta(microseconds=(last or now).wall, seconds=60)


def ledger() -> MemoryGpus:
    """A GPU that fell off the bus and failed its diagnosis, one that moved there, a bad node."""
    made, began = MemoryGpus(), shift_instant(START, -HOUR)
    for slot, node in ((0, "gpu00003"), (1, "gpu00003"), (0, "gpu00007")):
        uuid, model = f"GPU-{slot}-{node}", "NVIDIA H100 80GB HBM3"
        made.record_sightings(
            [GpuSighting(uuid=uuid, node=node, slot=f"0000:{slot}a:00.0", model=model)], began
        )
    for number, (subject, what, text) in enumerate(HAPPENED):
        node, at = "gpu00003", shift_instant(START, 60.0 * number - HOUR)
        if what == "drained":
            at = shift_instant(at, -3 * 86_400.0)
        made.add_events(
            [GpuEvent(id=str(number), subject=subject, what=what, at=at, node=node, text=text)]
        )
    return made


HAPPENED = (
    ("GPU-0-gpu00003", "xid 79", "GPU has fallen off the bus"),
    ("GPU-0-gpu00003", "xid 79", "GPU has fallen off the bus, once more"),
    ("GPU-0-gpu00003", "diag fail", "level 2: memory: 3 errors"),
    ("node:gpu00003", "diag fail", "level 2: pcie: the bandwidth is 3 GB/s, below 10"),
    ("node:gpu00003", "drained", "bad dimm (by root)"),
)


def around(kinds: Mapping[str, str] = KINDS, *records: ActionRecord, **more: Any) -> StatusSettings:
    return StatusSettings(
        checks=tuple(config(n, k) for n, k in kinds.items()),
        cluster="h100-prod",
        zone=timezone.utc,
        next_run=next_run,
        logbook=Records(*records),
        **more,
    )


def alert(number: int, subject: str, status: Status = Status.CRITICAL, **more: Any) -> Alert:
    began = shift_instant(START, -60.0 * (number + 1))
    known: dict[str, Any] = {
        "key": Key("h100-prod", "drained", subject),
        "kind": "drained",
        "summary": f"drained for {number + 1} minutes: Kill task failed",
        "labels": {"node": subject},
    }
    return Alert(
        id=f"{number:08x}",
        status=status,
        severity=status if status.bad else Status.WARNING,
        since=began,
        last=START,
        firing=True,
        fired=began,
        **{**known, **more},
    )


def night() -> list[Alert]:
    """Three hundred alerts: 20 nodes with 10 effects each, 62 drained ones, and 18 trainings that are
    dead, the youngest of all."""
    made = list[Alert]()
    for n in range(20):
        node, of = f"gpu{n:05}", f"{400 - 11 * n:08x}"
        on: dict[str, Any] = {"labels": {"node": node}, "incident": of}
        down = alert(400 - 11 * n, node, Status.WARNING, summary=f"{node} is out", **on)
        lost = [
            alert(399 - 11 * n - g, f"GPU-{n}-{g}", summary=f"lost {g}", **on) for g in range(10)
        ]
        made += [down, *lost]
    made += [alert(500 + n, f"gpu{n + 100:05}", Status.WARNING, summary="swap") for n in range(62)]
    for n in range(18):
        key = Key("h100-prod", "training", f"user{n}/llm")
        words = "job 4242 FAILED (exit 1) after 3 restarts on gpu00001, see its log"
        made.append(alert(n, "", key=key, kind="job", summary=words, labels={"user": f"user{n}"}))
    return made


def disk() -> ShownFinding:
    values = {
        "used_percent": 87.5,
        "free_bytes": 12e12,
        "size_bytes": 100e12,
        "inodes_used_percent": 12.25,
        "full_in_s": 36_000.0,
        "full_in_early_s": 30_000.0,
        "full_in_late_s": 50_000.0,
    }
    return ShownFinding(
        subject="/scratch", status=Status.WARNING, summary="87.5% used", values=values
    )


def training() -> ShownFinding:
    values = {"running": 1, "queued": 2}
    return ShownFinding(subject="llm-10b", status=Status.OK, summary="runs", values=values)


def progress() -> ShownFinding:
    values = {"progress": 79_400.0, "quiet_seconds": 12.0, "limit_seconds": 1200.0, "job": "4711"}
    summary = "step 79400, 12s ago"
    return ShownFinding(subject="llm-10b", status=Status.OK, summary=summary, values=values)


def nodes(count: int = 40) -> list[Node]:
    """Mostly busy, some idle, a few out of service."""
    return [_node(n, count) for n in range(count)]


def _node(number: int, count: int) -> Node:
    name = f"gpu{number:05}"
    if number % 97 == 3:
        return Node(
            name=name,
            state="IDLE",
            flags=frozenset({"DRAIN"}),
            reason="Kill task failed",
            reason_user="root",
            reason_time=1_799_999_000,
        )
    if number % 211 == 7:
        flags = frozenset({"NOT_RESPONDING"})
        return Node(name=name, state="DOWN", flags=flags, reason="Not responding")
    return Node(name=name, state="ALLOCATED" if number < count * 0.8 else "IDLE")


def record(number: int = 0, node: str = "gpu00003") -> ActionRecord:
    return ActionRecord(
        id=f"act-{number}",
        action="undrain",
        target=node,
        reason="its processes have ended",
        by="drained",
        at=shift_instant(START, -600),
        outcome=ActionOutcome.DONE,
        commands=(("scontrol", "update", f"NodeName={node}", "State=UNDRAIN"),),
        evidence={"processes": "none"},
    )


def stacks() -> ActionRecord:
    return ActionRecord(
        id="act-stacks",
        action="stacks",
        target="4711",
        reason="hang: no new step for 20m",
        by="progress",
        at=shift_instant(START, -300),
        outcome=ActionOutcome.DONE,
        detail="rank 37 (gpu00007) in load_batch (train.py:11); 63 ranks in all_reduce",
    )


def store(
    alerts: Sequence[Alert], count: int = 40, jobs: Mapping[str, int] | None = None
) -> MemoryStore:
    """A state in memory with all that was seen last and the last hour of samples."""
    made = MemoryStore()
    fill(made, alerts, count, jobs)
    made.take_lead("lab pid 1", START)
    return made


def fill(
    made: Store, alerts: Sequence[Alert], count: int, jobs: Mapping[str, int] | None = None
) -> None:
    """Write it into any state."""
    made.take_lead("lab pid 1", START)
    seen = {"scratch": disk(), "training": training(), "progress": progress()}
    for minute in range(60):
        at = shift_instant(START, -60.0 * (60 - minute))
        samples = {
            "scratch": (
                Sample("/scratch", "used_percent", 80 + minute / 8),
                Sample("/scratch", "free_bytes", 20e12 - minute * 1e11),
            ),
            "progress": (Sample("llm-10b", "progress", 79_000.0 + minute * 6),),
        }
        made.commit(Batch(at=at, samples=samples))
    memory = {
        last_seen.make_check_key(name): to_builtins(CheckLook(at=START, findings=(f,)))
        for name, f in seen.items()
    }
    memory[last_seen.NODES_KEY] = to_builtins(
        NodeLook(
            at=START,
            groups=group_nodes(nodes(count)),
            jobs=jobs or {"RUNNING": 3, "PENDING": 4},
            gpus={"8": f"gpu[00000-{count - 1:05}]"},
            work=(PlacedJob(id="4711", name="llm-10b", user="ann", nodes="gpu[00000-00007]"),),
        )
    )
    made.commit(
        Batch(
            at=START,
            alerts=tuple(alerts),
            transitions=tuple(_fired(a) for a in alerts[:50]),
            runs=tuple(_run(n, k) for n, k in KINDS.items()),
            memory=memory,
            ledger=tuple(week()),
            outbox=(_outgoing(alerts[0]),) if alerts else (),
        )
    )
    made.release_lead()


def big() -> MemoryStore:
    """A site of 500 nodes with 3,000 GPUs at night: three hundred alerts, 18 trainings that are dead, ten
    file systems with what lies below one, and two weeks of numbers."""
    state = store(night(), 500)
    state.take_lead("lab pid 1", START)
    dead = [_dead(n) for n in range(18)]
    fill_up = [replace(disk(), subject=f"/scratch{n}") for n in range(1, 10)]
    below = [
        ShownFinding(
            subject=f"/scratch user user{n}",
            status=Status.OK,
            summary=f"{n + 1} TB used",
            values={"used_bytes": (n + 1) * 1e12},
        )
        for n in range(12)
    ]
    seen = {"training": dead, "scratch": [disk(), *fill_up, *below], "progress": [progress()]}
    memory = {
        last_seen.make_check_key(name): to_builtins(CheckLook(at=START, findings=tuple(found)))
        for name, found in seen.items()
    }
    work = tuple(
        PlacedJob(id=str(4700 + n), name=f"llm-{n}b", user=f"user{n}", nodes=f"gpu[{n * 8:05}-{n * 8 + 7:05}]")
        for n in range(50)
    )  # fmt: skip
    memory[last_seen.NODES_KEY] = to_builtins(
        NodeLook(
            at=START,
            groups=group_nodes(nodes(500)),
            jobs={"RUNNING": 50, "PENDING": 411},
            gpus={"6": "gpu[00000-00499]"},
            work=work,
            racks={f"r{r:02}": f"gpu[{r * 25:05}-{r * 25 + 24:05}]" for r in range(20)},
            private=(),
        )
    )
    state.commit(Batch(at=START, memory=memory))
    for n in reversed(range(1, 14 * 48)):
        back, step = 1800.0 * n + 1800.0, 79_400.0 - n * 100
        samples = {
            "scratch": (Sample("/scratch", "used_percent", 80 - n / 40),),
            "progress": (
                Sample("llm-10b", "progress", step),
                Sample("llm-10b", "loss", 2.1 + n / 900),
                Sample("llm-10b", "grad_norm", 0.4 + n % 7 / 30),
            ),
        }
        state.commit(Batch(at=shift_instant(START, -back), samples=samples))
    state.release_lead()
    return state


def _dead(number: int) -> ShownFinding:
    name, job = f"user{number}", str(4700 + number)
    words = f"job {job} FAILED (exit 1) after 3 restarts on gpu00001, see its log"
    values = {"running": 0, "queued": 0, "job": job}
    return ShownFinding(
        subject=f"{name}/llm",
        status=Status.CRITICAL,
        summary=words,
        values=values,
        labels={"user": name},
    )


def week(run: str = "llm-10b", cluster: str = "h100-prod") -> list[LedgerRow]:
    """The ledger of a training: a week of jobs that end by a node, hang, go slow, wait and are not
    there, until now."""
    rows = list[LedgerRow]()

    def add(kind: LedgerKind, began: float, ended: float, job: str = "", **more: Any) -> None:
        """In hours before now."""
        times = {"began": shift_instant(START, -began * HOUR).wall}
        times["ended"] = shift_instant(START, -ended * HOUR).wall
        row = LedgerRow(run=run, cluster=cluster, kind=kind, job=job, **times, **more)
        rows.append(row)

    for number, (began, ended) in enumerate(((160, 112), (108, 70), (66, 30), (26, 12), (9, 0))):
        job, step = str(4000 + number), number * 40_000
        cause = ("node", "gpu", "time_limit", "gpu", "")[number]
        nodes = "gpu00003" if cause == "gpu" else "gpu[00001-00008]"
        add("queued", began + 1, began)
        add("held", began, ended, job, gpus=64, cause=cause, nodes=nodes)
        add("startup", began, began - 0.4, job)
        hours = range(int(began - 1), int(ended) + 2, -1)
        for place, hour in enumerate((began - 0.4, *hours)):
            until = hours[place] if place < len(hours) else ended + 2
            made = 1000 * (0.6 if place in (5, 6) else 1.0) * (hour - until)
            more = {"first_step": step, "last_step": step + made, "checkpoint_us": 60_000_000}
            add("steps", hour, until, job, **more)
            step += round(made)
            add("saved", until + 0.7, until + 0.7, last_step=step - 700)
        add("blind" if cause == "time_limit" else "hung", ended + 2, ended + 0.5, job)
    return rows


def scene(alerts: Sequence[Alert] = (), count: int = 40) -> Facts:
    from sentinel.status.view_model import build_facts

    return build_facts(read_status_inputs(store(alerts, count), around(KINDS, record()), START))


def looked(found: Mapping[str, tuple[Any, Sequence[ShownFinding]]], after: float = 0.0) -> Facts:
    """Facts of what these checks saw so many seconds ago: by name the kind, and its findings."""
    from sentinel.status.view_model import build_facts

    state = MemoryStore()
    state.take_lead("x", START)
    looks = {
        last_seen.make_check_key(name): to_builtins(CheckLook(at=START, findings=tuple(findings)))
        for name, (_, findings) in found.items()
    }
    state.commit(Batch(at=START, memory=looks))
    checks = tuple(
        CheckConfig(name=name, common=CheckCommon(kind="x"), plugin=kind)
        for name, (kind, _) in found.items()
    )
    return build_facts(
        read_status_inputs(state, replace(around({}), checks=checks), shift_instant(START, after))
    )


def _fired(a: Alert) -> Transition:
    return Transition(
        id=f"{a.id}-1",
        alert=a.id,
        key=a.key,
        kind=a.kind,
        reason="firing",
        status=a.status,
        severity=a.severity,
        summary=a.summary,
        at=a.since,
        since=a.since,
    )


def _run(name: str, kind: str) -> CheckRun:
    return CheckRun(
        check=name, kind=kind, at=START, status=Status.OK, summary="all ok", duration=0.0125
    )


def _outgoing(a: Alert) -> Outgoing:
    note = Notification(
        at="", cluster=a.key.cluster, check=a.key.check, kind=a.kind, subject=a.key.subject,
        severity=a.severity, status=a.status, reason="firing", summary=a.summary, since="",
        key=f"{a.id}-1", alert=a.id,
    )  # fmt: skip
    created = shift_instant(START, -90)
    return Outgoing(
        seq=1, channel="oncall", notification=note, created=created, attempts=2, error="421 try"
    )
