"""A look at all nodes and jobs: what is kept, and when Slurm is asked."""

from collections.abc import Sequence

from sentinel.core.cluster import Job, Node
from sentinel.core.errors import CannotTell
from sentinel.engine.cluster_snapshot import ClusterPoller
from sentinel.status.last_seen import NodeLook, decode_node_look
from sentinel.testing import START

NODES = [
    Node(name="n1", state="IDLE"),
    Node(name="n2", state="IDLE"),
    Node(name="n3", state="DOWN", reason="Not responding", reason_time=5),
]
JOB = Job(
    "7_[0-3]", "7", "7", "", "train", "ann", "p", "PENDING", "Priority", "", 1, "", 1, None, None, None, 4
)  # fmt: skip


class Told:
    """A Slurm that remembers what it told; it answers with `nodes_now`, or is blind on None."""

    def __init__(self, nodes_now: Sequence[Node] | None, jobs: Sequence[Job] | None = ()) -> None:
        self.nodes_now, self.jobs, self.asked = nodes_now, jobs, 0
        self.told: Sequence[Node] | None = None
        self.racks: dict[str, str] | None = {"leaf1": "n[1-2]"}

    def nodes(self) -> Sequence[Node]:
        self.asked += 1
        if self.nodes_now is None:
            raise CannotTell("no answer")
        self.told = self.nodes_now
        return self.told

    def topology(self) -> dict[str, str]:
        if self.racks is None:
            raise CannotTell("no answer")
        return self.racks

    def private(self) -> frozenset[str]:
        if self.racks is None:
            raise CannotTell("no answer")
        return frozenset({"jobs"})

    def last(self) -> tuple[Sequence[Node] | None, Sequence[Job] | None]:
        return self.told, self.jobs


def seen(sight: ClusterPoller) -> NodeLook | None:
    found = sight.poll_nodes(START)
    return None if found is None else decode_node_look(found)


def test_nodes_are_kept_by_state_and_reason_and_jobs_are_counted() -> None:
    """As hostlists; an array counts its elements."""
    look = seen(ClusterPoller(Told(NODES, [JOB]), asks=True))
    assert look is not None
    assert [(g.state, g.nodes, g.reason) for g in look.groups] == [
        ("IDLE", "n[1-2]", ""),
        ("DOWN", "n3", "Not responding"),
    ]
    assert look.jobs == {"PENDING": 4}


def test_where_nobody_looks_slurm_is_not_asked() -> None:
    """What checks were told anyway is kept; what they were not is not asked for."""
    slurm = Told(NODES)
    sight = ClusterPoller(slurm, asks=False)
    assert seen(sight) is None
    slurm.told = NODES
    assert seen(sight) is not None
    assert slurm.asked == 0


def test_what_has_not_changed_is_not_written_again() -> None:
    """Every quarter of a minute, ten thousand nodes."""
    slurm = Told(NODES)
    sight = ClusterPoller(slurm, asks=True)
    assert seen(sight) is not None
    assert seen(sight) is None
    slurm.nodes_now = [*NODES]
    assert seen(sight) is not None


def test_while_slurm_is_blind_what_was_seen_stays_and_it_says_why() -> None:
    """No answer is not an empty cluster; nor are jobs gone because they are being asked for."""
    slurm = Told(NODES, [JOB])
    sight = ClusterPoller(slurm, asks=True)
    seen(sight)
    slurm.nodes_now, slurm.told, slurm.jobs = None, None, None
    look = seen(sight)
    assert look is not None
    assert look.trouble == "no answer"
    assert sum(g.count for g in look.groups) == 3
    assert look.jobs == {"PENDING": 4}


def test_where_jobs_run_and_how_nodes_stand_is_kept() -> None:
    """For the machine room: the largest jobs that run, GPUs and racks, which stay while Slurm is
    silent about them."""
    nodes = [Node(name="n1", state="IDLE", gres="gpu:h100:8(S:0-1)"), Node(name="n2", state="IDLE")]
    running = Job(
        "8", "8", "8", "", "llm", "ann", "p", "RUNNING", "None", "n[1-2]", 2, "", 1, 2, None, None
    )
    told = Told(nodes, [JOB, running])
    sight = ClusterPoller(told, asks=True)
    look = seen(sight)
    assert look is not None
    assert [(j.id, j.user, j.nodes) for j in look.work] == [("8", "ann", "n[1-2]")]
    assert look.gpus == {"8": "n1"}
    assert (look.racks, look.private) == ({"leaf1": "n[1-2]"}, ("jobs",))
    told.racks, told.jobs, told.nodes_now = None, [], [*nodes]
    look = seen(sight)
    assert look is not None
    assert (look.work, look.racks, look.private) == ((), {"leaf1": "n[1-2]"}, ("jobs",))
