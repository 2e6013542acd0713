"""The status page of a made-up cluster: 64 nodes, four trainings, a node that went down under one."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from datetime import timezone
from io import StringIO
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.cli.status import print_status
from sentinel.config.settings import Settings
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Node
from sentinel.core.model import Alert, Batch, CheckRun, Key, Sample, Status, Transition
from sentinel.engine.engine import Engine
from sentinel.status import last_seen
from sentinel.status.collect import StatusSettings, read_status_inputs
from sentinel.status.last_seen import CheckLook, NodeLook, PlacedJob, ShownFinding, group_nodes
from sentinel.status.view_model import build_facts
from sentinel.store.memory import MemoryStore
from sentinel.testing import START, ManualClock
from sentinel.web.auth import Gate
from sentinel.web.server import WebServer
from sentinel.web.site import Site
from sentinel.web.snapshot_cache import LiveFacts
from tests.engine.worlds import Book, Says, world
from tests.lab.loops import LoopThread
from tests.web.scenery import around

CLUSTER = "h100"
CHECKS = {"training": "job", "progress": "log", "storage": "fs", "capacity": "nodes"}
DIED_S = 360.0
"""Seconds ago; the node went down a minute before."""

DEAD = "llama-70b"
TRAININGS = {
    # name: user, job, first and last of its nodes, step, steps a minute
    DEAD: ("alice", 48213, 1, 16, 81_240, 5.2),
    "moe-8x22b": ("bob", 48190, 17, 40, 412_600, 21.0),
    "vision-7b": ("carol", 48207, 41, 48, 96_310, 44.0),
    "speech-2b": ("dave", 48211, 49, 52, 1_204_800, 130.0),
}
LOST = "gpu-013"
LAST_WORDS = ("1 of 4 trainings does not run", "3 of 3 advance", "/scratch: 87.4% used",
              "62 of 64 nodes can work")  # fmt: skip
DEATH = (
    "job 48213 ended because one of its nodes failed (NODE_FAIL) among gpu-[001-016] at 07:54 UTC "
    "after running for 11h 20m; not running and nothing is queued (alice, 128 GPUs on 16 nodes); "
    "9m of work since checkpoint step_81200 at risk"
)


@contextmanager
def served_page() -> Iterator[str]:
    """Its address, until the block ends."""
    with LoopThread() as thread:
        engine, server = thread.run(_serve(_make_state()))
        try:
            yield f"http://127.0.0.1:{server.listen_port}"
        finally:
            thread.run(server.stop_server())
            thread.run(engine.close())


def render_status(width: int) -> str:
    """What `sentinel status` prints of it on a terminal so wide."""
    state = _make_state()
    state.take_lead("mgmt pid 1871", START)
    facts = build_facts(read_status_inputs(state, _describe_file(), START))
    asked: Any = SimpleNamespace(
        zone=timezone.utc,
        settings=Settings(path="/etc/sentinel/sentinel.yaml", state="/var/lib/sentinel"),
    )
    printed = StringIO()
    with redirect_stdout(printed), patch.dict(os.environ, COLUMNS=str(width), FORCE_COLOR="1"):
        print_status(facts, asked)
    return printed.getvalue()


def _describe_file() -> StatusSettings:
    return replace(around(CHECKS), cluster=CLUSTER)


async def _serve(state: MemoryStore) -> tuple[Engine, WebServer]:
    clock = ManualClock(START)
    made = world({name: Says() for name in CHECKS}, {"oncall": Book()})
    engine = Engine(replace(made, plan=replace(made.plan, cluster=CLUSTER)), state, clock)
    await engine.start_leading("mgmt pid 1871")
    server = WebServer(engine, clock, None, Site(LiveFacts(engine, clock, _describe_file), Gate()))
    await server.start_server("127.0.0.1", 0)
    return engine, server


def _make_state() -> MemoryStore:
    """What each check saw last, two days of numbers, and the alerts."""
    state = MemoryStore()
    state.take_lead("mgmt pid 1871", START)
    for minutes in range(2 * 24 * 60, 0, -5):
        at = shift_instant(START, -60.0 * minutes)
        state.commit(Batch(at=at, samples=_sample(minutes)))
    alerts = _list_alerts()
    memory = {
        last_seen.make_check_key(name): to_builtins(CheckLook(at=START, findings=found))
        for name, found in _list_findings().items()
    }
    memory[last_seen.NODES_KEY] = to_builtins(_look_at_nodes())
    runs = tuple(
        CheckRun(
            check=name,
            kind=kind,
            at=START,
            duration=0.04,
            summary=said,
            status=max(
                (a.status for a in alerts if a.key.check == name),
                key=lambda status: status.rank,
                default=Status.OK,
            ),
        )
        for (name, kind), said in zip(CHECKS.items(), LAST_WORDS, strict=True)
    )
    fired = tuple(_fire(alert) for alert in alerts)
    state.commit(Batch(at=START, alerts=alerts, transitions=fired, runs=runs, memory=memory))
    state.release_lead()
    return state


def _sample(minutes: int) -> Mapping[str, tuple[Sample, ...]]:
    """The numbers of so many minutes ago; a dead training has none."""
    steps = []
    for name, (_, _, _, _, step, pace) in TRAININGS.items():
        if name != DEAD or 60.0 * minutes > DIED_S:
            steps.append(Sample(name, "progress", step - pace * minutes))
            steps.append(Sample(name, "loss", 1.9 + minutes / 9000 + (minutes * 7 % 11) / 400))
    used = Sample("/scratch", "used_percent", 87.4 - minutes / 600)
    return {"progress": tuple(steps), "storage": (used,)}


def _list_findings() -> dict[str, tuple[ShownFinding, ...]]:
    jobs, logs = [], []
    for name, (user, job, first, last, step, _) in TRAININGS.items():
        where, dead = f"gpu-[{first:03}-{last:03}]", name == DEAD
        count, labels = last - first + 1, {"user": user}
        says = DEATH if dead else f"running: job {job} on {count} nodes ({where}) for 11h 32m"
        status = Status.CRITICAL if dead else Status.OK
        values = {"running": int(not dead), "queued": 0, "job": str(job)}
        jobs.append(ShownFinding(subject=name, status=status, summary=says, values=values,
                                 labels=labels))  # fmt: skip
        if not dead:
            known = {"progress": float(step), "quiet_seconds": 9.0, "limit_seconds": 1200.0}
            logs.append(ShownFinding(subject=name, status=Status.OK, labels=labels,
                                     summary=f"at iteration {step}, advancing", values=known))  # fmt: skip
    disks = []
    for path, size, used in (("/scratch", 2e15, 87.4), ("/home", 2e14, 51.0)):
        values = {"used_percent": used, "free_bytes": size * (100 - used) / 100, "size_bytes": size,
                  "inodes_used_percent": 34.0}  # fmt: skip
        if path == "/scratch":
            values |= {"full_in_s": 5.2 * 86_400, "full_in_early_s": 4.4 * 86_400,
                       "full_in_late_s": 6.6 * 86_400}  # fmt: skip
        status = Status.WARNING if used > 85 else Status.OK
        disks.append(
            ShownFinding(subject=path, status=status, summary=f"{used}% used", values=values)
        )
    return {"training": tuple(jobs), "progress": tuple(logs), "storage": tuple(disks)}


def _look_at_nodes() -> NodeLook:
    nodes, now = [], START.wall // 1_000_000
    for number in range(1, 65):
        name = f"gpu-{number:03}"
        node = Node(name=name, state="ALLOCATED" if 17 <= number <= 52 else "IDLE")
        if name == LOST:
            node = replace(node, state="DOWN", flags=frozenset({"NOT_RESPONDING"}),
                           reason="Not responding", reason_time=now - int(DIED_S) - 60)  # fmt: skip
        elif number == 58:
            node = replace(node, flags=frozenset({"DRAIN"}), reason="Kill task failed",
                           reason_user="root", reason_time=now - 5400)  # fmt: skip
        nodes.append(node)
    work = tuple(
        PlacedJob(id=str(job), name=name, user=user, nodes=f"gpu-[{first:03}-{last:03}]")
        for name, (user, job, first, last, _, _) in TRAININGS.items()
        if name != DEAD
    )
    return NodeLook(at=START, groups=group_nodes(nodes), jobs={"RUNNING": 3, "PENDING": 12},
                    gpus={"8": "gpu-[001-064]"}, work=work)  # fmt: skip


def _list_alerts() -> tuple[Alert, ...]:
    """One incident of a node and its training, and a disk that fills."""
    one = "3f9c2a71b0"
    return (
        _alert("7be01d44c2", "capacity", LOST, Status.WARNING, DIED_S + 60,
               "down: Not responding", incident="7be01d44c2", labels={"node": LOST}),
        _alert(one, "training", DEAD, Status.CRITICAL, DIED_S, DEATH, incident="7be01d44c2",
               labels={"user": "alice", "job": DEAD, "node": LOST},
               details="last lines of /gpfs/alice/llama-70b/48213.out:\niteration 81240 | lm loss 1.904\n"
               "slurmstepd: error: *** JOB 48213 CANCELLED DUE TO NODE FAILURE ***"),
        _alert("c05d8e1f93", "storage", "/scratch", Status.WARNING, 7200.0,
               "87.4% used, 252 TB free; full in 5 days", incident="c05d8e1f93"),
    )  # fmt: skip


def _alert(
    number: str, check: str, subject: str, status: Status, ago: float, summary: str, **more: object
) -> Alert:
    began = shift_instant(START, -ago)
    return Alert(id=number, key=Key(CLUSTER, check, subject), kind=CHECKS[check], status=status,
                 severity=status, summary=summary, since=began, last=START, firing=True,
                 fired=began, **more)  # type: ignore[arg-type]  # fmt: skip


def _fire(a: Alert) -> Transition:
    return Transition(id=f"{a.id}-1", alert=a.id, key=a.key, kind=a.kind, reason="firing",
                      status=a.status, severity=a.severity, summary=a.summary, at=a.since,
                      since=a.since)  # fmt: skip
