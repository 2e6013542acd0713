"""Nodes that wake, go to sleep, reboot or end a job: out only beyond what Slurm allows."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sentinel.checks.nodes import NodesCheck, is_available
from sentinel.core.cluster import Node, Timeouts
from sentinel.core.model import Finding, Report, Status
from sentinel.core.node_answers import Unreachable, Unreached
from sentinel.core.values import Duration, Rate
from sentinel.nodes.history import is_out
from sentinel.nodes.probe import (
    FileWait,
    NodeIdentity,
    NodeMount,
    NodeProbe,
    NodeProcess,
    ProbeRequest,
    StepProcess,
    StepTraces,
    UninterruptibleThread,
    Unread,
)
from sentinel.testing import START, FixedSlurm, context, shift_instant
from tests.checks.nodes.test_nodes import by_subject, node

UP = node(1)
WAKING = node(1, "MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP")
ASLEEP = node(1, "IDLE", "CLOUD", "POWERED_DOWN")
LEAVING = node(1, "IDLE", "CLOUD", "NOT_RESPONDING", "POWERING_DOWN")
BOOTING = node(1, "DOWN", "DRAIN", "REBOOT_ISSUED", reason="update : reboot issued")
ENDING = node(1, "IDLE", "COMPLETING")
OTHER = node(2)
ALLOWED = Timeouts(resume=600, suspend=120)


class Life:
    """One check that looks every so often; each look may show another state of n1."""

    def __init__(self, check: NodesCheck | None = None, **more: Any) -> None:
        self.check, self.now, self.memory = check or NodesCheck(), START, {}
        self.more = {"timeouts": ALLOWED, **more}
        self.remote = self.more.pop("remote", None)

    def look(self, *states: Node, after: float = 60.0) -> Finding:
        """The last finding about n1."""
        report = self.report(*states, after=after)
        return by_subject(report)["n1"]

    def report(self, *states: Node, after: float = 60.0) -> Report:
        assert states
        for state in states:
            self.now = shift_instant(self.now, after)
            slurm = FixedSlurm(nodes=[state, OTHER], **self.more)
            report = self.check.run(
                context(slurm, self.now, memory=self.memory, remote=self.remote)
            )
            self.memory = dict(report.memory or {})
        return report


@pytest.mark.parametrize("state", [WAKING, ASLEEP, LEAVING, BOOTING, ENDING])
def test_a_state_that_passes_is_not_out(state: Node) -> None:
    """Neither told, nor counted as an absence, nor in the ledger."""
    life = Life(NodesCheck(flapping=Rate("1 in 1d")))
    for _ in range(4):
        assert life.look(UP, state).status is Status.OK
    assert not is_out(state)
    assert "left" not in life.look(UP).summary


@pytest.mark.parametrize(
    ("state", "can"),
    [(WAKING, True), (ASLEEP, True), (LEAVING, True), (BOOTING, False), (ENDING, True)],
)
def test_power_saving_takes_no_nodes_away(state: Node, can: bool) -> None:
    """Slurm wakes them for the job that needs them; a reboot has to end first."""
    assert is_available(state) is can


@pytest.mark.parametrize(
    "state",
    [
        node(1, "IDLE", "DRAIN", "POWERED_DOWN", reason="RMA"),
        node(1, "DOWN", "POWERED_DOWN", reason="ResumeTimeout reached"),
        node(1, "IDLE", "NOT_RESPONDING"),
        node(1, "IDLE", "DRAIN", "REBOOT_REQUESTED", reason="RMA"),
        node(1, "DOWN", reason="reboot timed out"),
    ],
)
def test_what_is_wrong_stays_wrong(state: Node) -> None:
    """A drained node sleeps too; Slurm's own time-outs are absences."""
    assert Life().look(UP, state).status is Status.WARNING


@pytest.mark.parametrize(
    ("state", "limit", "says"),
    [
        (WAKING, 600, "out of service: waking for 11m, longer than ResumeTimeout allows (10m)"),
        (
            BOOTING,
            600,
            "out of service: rebooting for 11m, longer than ResumeTimeout allows (10m)",
        ),
        (
            LEAVING,
            120,
            "out of service: powering down for 3m, longer than SuspendTimeout allows (2m 30s)",
        ),
    ],
)
def test_longer_than_slurm_allows_is_out_once(state: Node, limit: int, says: str) -> None:
    """One alarm, one absence; nobody counts it as able to work."""
    life = Life(NodesCheck(flapping=Rate("2 in 1d")))
    quiet = life.look(UP, *[state] * (limit // 60 + 1))
    assert quiet.status is Status.OK
    told = life.look(state)
    assert (told.status, told.summary.partition(" (")[0]) == (
        Status.WARNING,
        says.partition(" (")[0],
    )
    assert says in told.summary
    assert life.look(state, state).values["left"] == 1
    together = by_subject(life.report(state))["all nodes"]
    assert together.values["available"] == 1


def test_a_partitions_own_time_counts_and_the_longest_of_several() -> None:
    """As Slurm itself takes it (power_save.c); a partition without one has slurm.conf's."""
    own = Timeouts(
        resume=60, suspend=30, partitions={"prod": (600.0, None), "debug": (120.0, None)}
    )
    assert own.node_timeout(("prod", "debug"), suspend=False) == 600
    assert own.node_timeout(("debug",), suspend=False) == 120
    assert own.node_timeout(("other",), suspend=False) == 60
    assert own.node_timeout(("prod",), suspend=True) == 30
    assert own.node_timeout((), suspend=True) == 30


@pytest.mark.parametrize("resume", [0, None])
def test_a_time_of_zero_is_none(resume: float | None) -> None:
    """No node wakes in no time: the default of slurm.conf(5) counts."""
    life = Life(timeouts=Timeouts(resume=resume))
    assert life.look(UP, WAKING, WAKING).status is Status.OK
    assert life.look(WAKING).status is Status.WARNING


def test_where_slurm_conf_cannot_be_read_nobody_can_tell() -> None:
    """Within the default of 60 s it is fine; then unknown, never out."""
    life = Life(NodesCheck(flapping=Rate("1 in 1d")), timeouts=None)
    assert life.look(UP, WAKING, WAKING).status is Status.OK
    told = life.look(WAKING)
    assert told.status is Status.UNKNOWN
    assert "ResumeTimeout could not be read (slurm_load_" in told.summary
    assert told.values["left"] == 0


def test_a_boot_of_seconds_is_not_slow_before_a_minute() -> None:
    """Virtual machines that wake at once: "waking for 3s, usually 0s" helps nobody."""
    life = Life()
    for _ in range(5):
        life.look(UP, WAKING)
    life.look(UP)
    life.memory["boots"] = {"prod": (1, 0, 1, 0, 1)}
    assert life.look(WAKING).status is Status.OK
    assert life.look(WAKING).status is Status.OK
    assert life.look(WAKING).status is Status.WARNING


def test_a_node_that_boots_slower_than_usual_is_told() -> None:
    """By the last boots of its partition; a wild one among them moves nothing."""
    life = Life()
    for minutes in (3, 3, 4, 3, 3):
        life.look(UP, *[WAKING] * minutes)
    life.look(UP)
    assert life.memory["boots"] == {"prod": (180, 180, 240, 180, 180)}
    assert life.look(*[WAKING] * 7).status is Status.OK
    told = life.look(WAKING)
    assert (told.status, told.summary.partition(" (")[0]) == (
        Status.WARNING,
        "waking for 7m, usually 3m in prod",
    )


def test_what_is_learnt_is_bounded_and_only_of_whole_boots() -> None:
    """Who was waking at the first look began nobody knows when; who failed did not boot."""
    life = Life()
    life.look(WAKING, UP)
    assert life.memory["boots"] == {}
    life.look(WAKING, node(1, "DOWN", reason="ResumeTimeout reached"), UP)
    assert life.memory["boots"] == {}
    for _ in range(30):
        life.look(WAKING, UP)
    assert len(life.memory["boots"]["prod"]) == 20
    assert life.memory["passing"] == {}


class Nodes_:
    """A way to n1, which answers as it was told."""

    def __init__(self, answer: NodeProbe | Unreached) -> None:
        self.answer, self.asked = answer, 0

    def run(self, *_: Any, **__: Any) -> Mapping[str, Any]:
        raise AssertionError("nothing is to be run")

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, Any]:
        self.asked += 1
        return dict.fromkeys(nodes, self.answer)


HANGS = NodeProbe(
    identity=NodeIdentity(hostname="n1", kernel="6", boot="b", uptime=1.0, time=1, uid=0),
    processes=(
        NodeProcess(pid=33, parent=1, uid=1000, user="alice", state="D", started=0, command="cat"),
    ),
    blocked=(
        UninterruptibleThread(
            pid=33, thread=33, name="cat", wait="request_wait_answer", kernel=False
        ),
    ),
    steps=StepTraces(processes=(StepProcess(pid=33, job="7", step="batch", witness="cgroup"),)),
    mounts=(
        NodeMount(device="x", point="/", type="ext4", options=frozenset()),
        NodeMount(device="x", point="/data", type="fuse.x", options=frozenset()),
    ),
    waits=(FileWait(pid=33, doing="opening", path="/data/model.pt"),),
)


def told_of(answer: NodeProbe | Unreached, **more: Any) -> str:
    life = Life(remote=Nodes_(answer), **more)
    life.look(UP, *[ENDING] * 11)
    assert life.remote.asked == 0
    told = life.look(ENDING)
    assert (told.status, life.remote.asked) == (Status.WARNING, 1)
    assert told.summary.startswith("completing for 11m (IDLE+COMPLETING): ")
    return told.summary.partition("): ")[2]


def test_a_node_that_ends_a_job_counts_until_it_takes_too_long() -> None:
    """A job on all nodes that ends is no lack of nodes; one that never ends is."""
    check, memory, seen = NodesCheck(need=1), dict[str, Any](), list[Status]()
    for minute, state in enumerate([UP, *[ENDING] * 12]):
        now = shift_instant(START, 60.0 * minute)
        report = check.run(context(FixedSlurm(nodes=[state]), now, memory=memory))
        memory = dict(report.memory or {})
        seen.append(report.findings[0].status)
    assert seen == [*[Status.OK] * 12, Status.CRITICAL]


def test_a_node_that_does_not_end_a_job_is_told_with_the_task_and_its_file_system() -> None:
    """From Slurm 25.11.7 on nobody else says so: no reason, no drain."""
    assert told_of(HANGS) == (
        "processes hang in the kernel (state D): job 7: cat (pid 33) of alice in request_wait_answer, "
        "opening /data/model.pt (fuse.x at /data)"
    )


def test_a_job_is_told_by_its_id_where_the_kernel_counts_it_by_its_sluid() -> None:
    """As Slurm 26.05 names cgroups; before the id that a task inherited, and only where it is known."""
    from msgspec.structs import replace

    sluid = "sDTDM8106N2P00"
    by_kernel = StepProcess(pid=33, job=sluid, step="batch", witness="cgroup")
    inherits = StepProcess(pid=33, job="8", step="", witness="environment")
    hangs = replace(HANGS, steps=StepTraces(processes=(by_kernel, inherits)))
    assert "job 7: cat (pid 33)" in told_of(hangs, sluids={sluid: "7"})
    assert f"job {sluid}: cat (pid 33)" in told_of(hangs, sluids={})
    assert f"job {sluid}: cat (pid 33)" in told_of(hangs)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"waits": Unread(kind="denied")}, "it is not known which file system it waits for"),
        ({"waits": ()}, "it is not known which file system it waits for"),
        ({"blocked": ()}, "no task is in state D; alive: job 7: cat (pid 33) of alice"),
        ({"blocked": (), "steps": StepTraces(processes=())}, "look at slurmd there"),
        ({"blocked": (), "steps": None}, "whether processes of a job are left was not seen"),
        ({"blocked": Unread(kind="denied", why="hidepid")}, "not known: hidepid"),
    ],
)
def test_what_was_not_seen_is_said(parts: dict[str, Any], says: str) -> None:
    """Never a guess."""
    from msgspec.structs import replace

    assert says in told_of(replace(HANGS, **parts))


def test_without_an_answer_it_is_told_all_the_same() -> None:
    """By Slurm alone: which task, nobody knows."""
    assert "which task hangs is not known: unreachable: no route" in told_of(
        Unreachable("no route")
    )
    life = Life(NodesCheck(need=1, completing=Duration(60)))
    told = life.look(UP, ENDING, ENDING, ENDING)
    assert told.status is Status.WARNING
    assert "without a way to nodes" in told.summary
