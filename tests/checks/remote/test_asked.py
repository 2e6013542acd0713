"""`memory` and `fs` on nodes: which are asked, and what each kind of answer means."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.filesystems.limits import SpaceLimits
from sentinel.checks.fs.check import FsCheck
from sentinel.checks.memory import MemoryCheck
from sentinel.core.cluster import Job, JobEnd, JobRun, Node
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Report, Status
from sentinel.core.node_answers import Answer, Unreachable, Unreached
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.nodes.probe import Disk, NodeIdentity, NodeMount, NodeProbe, ProbeRequest, Unread
from sentinel.nodes.probe import NodeMemory as NodeMemory
from sentinel.testing import FixedSlurm, context
from tests.kinds import looks

GB = 10**9
HALF = Disk(type="tmpfs", total=100 * GB, free=50 * GB, available=50 * GB, inodes=10, inodes_free=5)
WELL = NodeProbe(
    identity=NodeIdentity(
        hostname="n1", kernel="6.1", boot="boot-1", uptime=100.0, time=1_800_000_000, uid=0
    ),
    memory=NodeMemory(total=100 * GB, available=50 * GB, swap_total=0, swap_free=0, oom_kills=3),
    mounts=(NodeMount(device="tmpfs", point="/tmp", type="tmpfs", options=frozenset({"rw"})),),
    disks={"/tmp": HALF},
)


class Told:
    """core.remote.Remote that answers what it was given, and keeps whom it asked."""

    def __init__(self, answers: Mapping[str, NodeProbe | Unreached]) -> None:
        self.answers, self.asked = answers, list[Sequence[str]]()

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        raise NotImplementedError

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        self.asked.append(tuple(nodes))
        return {node: self.answers[node] for node in nodes}


def node(name: str, state: str = "IDLE", *flags: str) -> Node:
    return Node(name=name, state=state, flags=frozenset(flags))


def job(name: str, nodes: str, state: str = "RUNNING", user: str = "root", number: int = 7) -> Job:
    return Job(
        str(number), str(number), "", "", name, user, "prod", state, "", nodes, 1, "",
        None, None, None, None,
    )  # fmt: skip


def look(
    check: Any, answers: Mapping[str, Any], slurm: FixedSlurm | None = None, **more: Any
) -> Report:
    report: Report = check.run(context(slurm, remote=Told(answers), **more))
    return report


def only(report: Report) -> Finding:
    (finding,) = report.findings
    return finding


def fs(**settings: Any) -> FsCheck:
    return FsCheck(**{"nodes": "n1", "paths": [FilePath("/tmp")], **settings})


def test_all_are_those_that_slurm_hears_from() -> None:
    """A node that is down or powered off has been told of by Slurm already."""
    slurm = FixedSlurm(
        nodes=[
            node("n1"), node("n2", "DOWN"), node("n3", "IDLE", "NOT_RESPONDING"),
            node("n4", "IDLE", "POWERED_DOWN"), node("n5", "MIXED", "DRAIN"),
        ]
    )  # fmt: skip
    report = look(MemoryCheck(nodes="all"), dict.fromkeys(["n1", "n5"], WELL), slurm)
    assert [f.subject for f in report.findings] == ["n1", "n5"]


def test_a_job_is_looked_at_where_it_runs() -> None:
    """By name or id, its elements together; pending ones have no nodes; other users' are not meant;
    a flag (SIGNALING) that hides the word RUNNING takes no nodes away."""
    jobs = [
        job("train", "n[1-2]"), job("train", "n3", "SIGNALING", number=8), job("train", "", "PENDING", number=9),
        job("other", "n4", number=10), job("train", "n5", user="mallory", number=11),
    ]  # fmt: skip
    slurm = FixedSlurm(jobs=jobs)
    answers = dict.fromkeys(["n1", "n2", "n3"], WELL)
    named = look(MemoryCheck(job="train", users=["root"]), answers, slurm)
    assert [f.subject for f in named.findings] == ["n1", "n2", "n3"]
    numbered = look(MemoryCheck(job="8", users=["root"]), answers, slurm)
    assert [f.subject for f in numbered.findings] == ["n3"]
    assert look(MemoryCheck(job="ended", users=["root"]), answers, slurm).findings == ()


@pytest.mark.parametrize("check", [MemoryCheck, fs])
def test_a_list_of_nodes_that_became_shorter_is_not_believed_the_first_time(check: Any) -> None:
    """It may be cut at a whole node. A second list without it is: somebody has removed it."""
    whole = FixedSlurm(nodes=[node("n1"), node("n2"), node("n3", "IDLE", "POWERED_DOWN")])
    cut = FixedSlurm(nodes=[node("n1"), node("n3", "IDLE", "POWERED_DOWN")])
    answers = dict.fromkeys(["n1", "n2"], WELL)
    first = look(check(nodes="all"), answers, whole)
    second = look(check(nodes="all"), answers, cut, memory=first.memory)
    third = look(check(nodes="all"), answers, cut, memory=second.memory)
    assert [r.status for r in (first, second, third)] == [Status.OK, Status.UNKNOWN, Status.OK]
    assert second.coverage.unseen == ("n2",)


def test_no_node_at_all_is_no_list_of_before() -> None:
    """All sleep, and then all are there."""
    asleep = FixedSlurm(nodes=[node("n1", "IDLE", "POWERED_DOWN")])
    first = look(MemoryCheck(nodes="all"), {}, asleep)
    second = look(
        MemoryCheck(nodes="all"), {"n1": WELL}, FixedSlurm(nodes=[node("n1")]), memory=first.memory
    )
    assert [r.status for r in (first, second)] == [Status.OK, Status.OK]


def runs(*numbers: int) -> dict[str, JobEnd]:
    """What Slurm has of all jobs: these run."""
    return {
        str(n): JobRun(
            job_id=str(n), id=str(n), name="train", user="root", state="RUNNING", source="squeue"
        )
        for n in numbers
    }


LISTS = [
    ("none, at the first look", [], [7], None, True),
    ("one of two, at the first look", [7], [7, 8], None, True),
    ("one of two that ran at the last", [7], [7, 8], [7, 8], True),
    ("what ran at the last has ended", [7], [7], [7, 8], False),
    ("none, as at the last look", [], [7], [], False),
]  # fmt: skip


@pytest.mark.parametrize("check", [MemoryCheck, fs])
@pytest.mark.parametrize(
    ("listed", "running", "before", "refused"),
    [row[1:] for row in LISTS],
    ids=[r[0] for r in LISTS],
)
def test_a_list_of_jobs_that_became_shorter_is_not_believed_the_first_time(
    check: Any, listed: list[int], running: list[int], before: list[int] | None, refused: bool
) -> None:
    """Slurm is asked once more: what runs, and is not in the list, was cut off it."""
    jobs = [job("train", f"n{n}", number=n) for n in listed]
    slurm = FixedSlurm(jobs=jobs, ends=runs(*running))
    answers = {f"n{n}": WELL for n in listed}
    memory = {} if before is None else {"asked": {"jobs": " ".join(map(str, before))}}
    one = check(nodes="", job="train", users=["root"])
    if refused:
        with pytest.raises(CannotTell, match="the list is not whole"):
            look(one, answers, slurm, memory=memory)
        return
    report = look(one, answers, slurm, memory=memory)
    assert report.memory is not None
    assert report.memory["asked"] == {"jobs": " ".join(map(str, listed))}


@pytest.mark.parametrize(
    "check", [MemoryCheck(job="train", users=["root"]), MemoryCheck(nodes="all")]
)
def test_a_blind_slurm_is_not_an_empty_one(check: MemoryCheck) -> None:
    """Where nobody can say which nodes are meant, the check is blind."""
    with pytest.raises(CannotTell):
        look(check, {})


def test_without_a_way_to_nodes_the_check_is_blind() -> None:
    """Nothing is asked of this host in the nodes' place."""
    with pytest.raises(CannotTell, match="no way to nodes"):
        MemoryCheck(nodes="n1").run(context())


@pytest.mark.parametrize("check", [MemoryCheck(nodes="n1"), fs()])
def test_a_silent_node_is_unknown(check: Any) -> None:
    """Neither well nor bad; the reason is told."""
    finding = only(look(check, {"n1": Unreachable("No route to host")}))
    assert finding.status is Status.UNKNOWN
    assert finding.summary == "unreachable: No route to host"
    assert finding.subject == ("n1" if isinstance(check, MemoryCheck) else "n1:/tmp")
    assert finding.labels == {"node": "n1"}


def test_a_node_that_falls_silent_ends_no_alert_about_its_paths() -> None:
    """They keep their subjects: what a report leaves out is taken for gone."""
    full = replace(WELL, disks={"/tmp": replace(HALF, available=0, free=0)})
    before = {f.subject for f in look(fs(), {"n1": full}).findings if f.status.bad}
    after = look(fs(), {"n1": Unreachable("No route to host")}).findings
    assert {f.subject for f in after} == before
    assert {f.status for f in after} == {Status.UNKNOWN}


def test_a_node_that_was_not_asked_for_a_while_keeps_its_mounts() -> None:
    """It was down, and came back without them."""
    memory = look(fs(), {"n1": WELL}).memory
    memory = look(fs(nodes="n2"), {"n2": WELL}, memory=memory).memory
    lost = only(look(fs(), {"n1": replace(WELL, mounts=())}, memory=memory))
    assert (lost.status, lost.summary) == (Status.CRITICAL, "is not mounted")


@pytest.mark.parametrize(
    ("disk", "inodes", "share"),
    [({"inodes_free": 2**64 - 1}, None, 50.0), ({"available": (2**64 - 5) * 4096}, 50.0, 100.0)],
)
def test_numbers_of_a_node_are_read_as_those_of_this_host(
    disk: dict[str, int], inodes: float | None, share: float
) -> None:
    """Inodes that nobody counts, and less than nothing free."""
    seen = replace(WELL, disks={"/tmp": replace(HALF, **disk)})
    values = only(look(fs(), {"n1": seen})).values
    assert (values["inodes_used_percent"], values["used_percent"]) == (inodes, share)


def test_a_part_that_was_not_read_is_unknown() -> None:
    """A node may answer and still not tell."""
    answer = replace(WELL, memory=Unread(kind="late", why="no answer within 5 s"))
    assert only(look(MemoryCheck(nodes="n1"), {"n1": answer})).status is Status.UNKNOWN


KILLS = [
    (["boot-1", 3], Status.OK, "none since"),
    (["boot-1", 2], Status.WARNING, "the kernel killed 1 process because memory ran out"),
    (["boot-1", 1], Status.WARNING, "the kernel killed 2 processes because memory ran out"),
    (["boot-0", 1], Status.OK, "another boot began anew"),
    (["boot-1", 9], Status.OK, "a counter does not run backwards"),
    (None, Status.OK, "the first look knows no before"),
]


@pytest.mark.parametrize(("before", "status", "why"), KILLS)
def test_what_the_kernel_killed_is_told(before: Any, status: Status, why: str) -> None:
    """By the counter of kills, within one boot."""
    memory = {"kills": {"n1": before}} if before else {}
    report = look(MemoryCheck(nodes="n1"), {"n1": WELL}, memory=memory)
    assert only(report).status is status
    assert (why in only(report).summary) is (status is not Status.OK)
    assert report.memory == {"kills": {"n1": ["boot-1", 3]}}


def test_a_silent_node_keeps_what_was_known_of_it() -> None:
    """Kills that happen while nobody can look are told at the next look."""
    memory = {"kills": {"n1": ["boot-1", 1]}}
    report = look(MemoryCheck(nodes="n1"), {"n1": Unreachable("x")}, memory=memory)
    assert report.memory == memory


def test_a_path_is_judged_by_the_usual_limits() -> None:
    """One finding per node and path, with a history of its own."""
    report = look(fs(), {"n1": WELL})
    finding = only(report)
    assert (finding.subject, finding.status) == ("n1:/tmp", Status.OK)
    assert finding.summary == "50% used, 50 GB free"
    assert {(s.subject, s.name) for s in report.samples} == {
        ("n1:/tmp", "used_percent"), ("n1:/tmp", "free_bytes"), ("n1:/tmp", "inodes_used_percent"),
    }  # fmt: skip


DISKS = [
    (Unread(kind="hung", why="pid=7"), Status.CRITICAL, "no answer"),
    (Unread(kind="late", why="no answer within 5 s"), Status.CRITICAL, "no answer"),
    (Unread(kind="failed", why="stat: '/tmp': No such file or directory"), Status.CRITICAL, "does not exist"),
    (Unread(kind="failed", why="stat: '/tmp': Stale file handle"), Status.CRITICAL, "Stale file handle"),
    (Unread(kind="failed", why="stat: '/tmp': Permission denied"), Status.UNKNOWN, "Permission denied"),
    (Unread(kind="garbage", why="2 lines"), Status.UNKNOWN, "not understood"),
    (Unread(kind="cut", why="broke off"), Status.UNKNOWN, "cut"),
]  # fmt: skip


@pytest.mark.parametrize(("disk", "status", "says"), DISKS)
def test_what_a_path_may_answer(disk: Unread, status: Status, says: str) -> None:
    """A hang or an error is the file system's; what could not be asked is unknown."""
    finding = only(look(fs(), {"n1": replace(WELL, disks={"/tmp": disk})}))
    assert finding.status is status
    assert says in finding.summary
    first = "grep -F /tmp /proc/mounts | cat -v"
    assert looks(finding)[:1] == ((f"ssh n1 {first}",) if status is Status.CRITICAL else ())


def test_what_was_a_mount_has_to_stay_one() -> None:
    """The numbers of the disk below are never taken for its own."""
    report = look(fs(), {"n1": WELL})
    bare = replace(WELL, mounts=())
    lost = only(look(fs(), {"n1": bare}, memory=report.memory))
    assert (lost.status, lost.summary, lost.values) == (Status.CRITICAL, "is not mounted", {})
    assert looks(lost)[0] == "ssh n1 ls -la /tmp | cat -v"
    assert "move it to another disk. Then `mount" in lost.guidance.todo
    assert only(look(fs(), {"n1": bare})).status is Status.OK
    assert only(look(fs(mounted=True), {"n1": bare})).status is Status.CRITICAL
    unknown = replace(WELL, mounts=Unread(kind="late"))
    assert only(look(fs(), {"n1": unknown}, memory=report.memory)).status is Status.UNKNOWN


def test_read_only_is_bad() -> None:
    """As on this host."""
    mounts = (NodeMount(device="d", point="/tmp", type="ext4", options=frozenset({"ro"})),)
    found = only(look(fs(), {"n1": replace(WELL, mounts=mounts)}))
    assert found.status is Status.CRITICAL
    assert found.guidance.todo == "Write to another disk meanwhile."


BAD = [
    ({"nodes": "n[3-1]"}, "runs backwards"),
    ({"nodes": "n1;reboot"}, "';' is in no node name"),
    ({"nodes": "n1", "job": "train"}, "remove one of them"),
]


@pytest.mark.parametrize(("settings", "says"), BAD)
@pytest.mark.parametrize("kind", [MemoryCheck, fs])
def test_what_is_no_choice_of_nodes_is_refused(kind: Any, settings: Any, says: str) -> None:
    """Before anything is asked."""
    with pytest.raises(Invalid, match=says):
        kind(**settings)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"write_probe": True}, "write_probe"),
        ({"measure": "statfs"}, "measure"),
        ({"headroom": "8 checkpoints"}, "headroom"),
        ({"warn": SpaceLimits(full_in=Duration(60))}, "warn"),
    ],
)
def test_what_is_not_asked_on_nodes_is_refused(settings: dict[str, Any], key: str) -> None:
    """Nobody shall think that it is watched there."""
    with pytest.raises(Invalid, match="on this host only") as refused:
        fs(**settings)
    assert refused.value.path[0] == key


def test_a_node_has_no_disks_of_its_own_to_list() -> None:
    """Without paths nobody knows what to ask there."""
    with pytest.raises(Invalid, match="name the paths"):
        FsCheck(nodes="n1")
