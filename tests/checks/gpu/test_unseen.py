"""GPUs and nodes that cannot be seen, lie, or fail all together."""

from dataclasses import replace

import pytest

from sentinel.checks.gpu import GpuCheck
from sentinel.core.cluster import Node
from sentinel.nodes.probe import Unread
from tests.checks.gpu.world import World, job
from tests.lab.gpus import gpus_of

LATE = Unread(kind="late", why="no answer within 5 s; it was ended")


def world(*names: str) -> World:
    return World(GpuCheck(nodes="all", drain=True), names or ("n1",))


@pytest.mark.parametrize("how", ["silent", "smi hangs", "down"])
def test_trouble_of_a_node_that_cannot_be_seen_now_does_not_end(how: str) -> None:
    """Unknown, not gone: nobody has mended the GPU; seen again and well, it ends."""
    here = world("n1", "n2")
    node = here.nodes["n1"]
    node.gpus[3] = replace(node.gpus[3], failed=True)
    bad = node.gpus[3].uuid
    assert here.bad()[bad].status.value == "critical"
    if how == "down":
        here.listed["n1"] = Node(name="n1", state="DOWN", gres="gpu:8")
    node.gone, node.smi = how == "silent", LATE if how == "smi hangs" else None
    for _ in range(2):
        found = here.bad()
        assert found[bad].status.value == "unknown"
        assert found[bad].labels == {"node": "n1"}
        assert "GPUs of n1 cannot be seen now" in found[bad].summary
    here.listed["n1"] = Node(name="n1", state="IDLE", gres="gpu:8")
    node.gone, node.smi = False, None
    node.gpus[3] = replace(node.gpus[3], failed=False)
    assert here.bad() == {}


def test_a_node_that_was_only_silent_leaves_nothing_behind() -> None:
    """Nothing bad was ever seen of it: once it is down it is Slurm's trouble."""
    here = world("n1", "n2")
    here.nodes["n1"].gone = True
    assert list(here.bad()) == ["n1"]
    here.listed["n1"] = Node(name="n1", state="DOWN", gres="gpu:8")
    assert here.bad() == {}


def test_trouble_of_a_node_that_is_no_more_ends() -> None:
    """Slurm knows it no longer."""
    here = world("n1", "n2")
    here.nodes["n1"].gpus.pop()
    assert here.bad()
    del here.listed["n1"]
    assert here.bad() == {}


def test_a_lemon_that_turned_up_elsewhere_is_not_waited_for_where_it_was() -> None:
    """Its old place is silent, and it is known to be empty of it."""
    here = world("n1", "n2")
    lemon = here.nodes["n1"].gpus[0]
    assert here.gpus is not None
    here.look()
    here.gpus.set_mark(lemon.uuid, "lemon", "bad", "ann", here.clock.now())
    assert f"{lemon.uuid}@n1" in here.bad()
    here.nodes["n1"].gone = True
    assert here.bad()[f"{lemon.uuid}@n1"].status.value == "unknown"
    here.nodes["n2"].gpus[0] = lemon
    assert {s for s in here.bad() if "@" in s} == {f"{lemon.uuid}@n2"}


def test_another_node_in_its_place_is_not_believed() -> None:
    """A name that leads to the wrong host must not move GPUs in the ledger, nor drain a node for
    the lemon of another."""
    here = world("n1", "n2")
    lemon = here.nodes["n2"].gpus[0]
    assert here.gpus is not None
    here.look()
    here.gpus.set_mark(lemon.uuid, "lemon", "bad", "ann", here.clock.now())
    here.nodes["n1"].gpus, here.nodes["n1"].hostname = here.nodes["n2"].gpus, "n2.cluster"
    report = here.look()
    assert [r.target for r in report.requests] == ["n2"]
    [n1] = [f for f in report.findings if f.subject == "n1"]
    assert n1.status.value == "unknown"
    assert "n2.cluster answered in its place" in n1.summary
    entry = here.gpus.read_entry(lemon.uuid)
    assert entry is not None
    assert entry.node == "n2"


def test_lines_of_the_kernels_log_that_nobody_read_are_told() -> None:
    """There may have been an Xid among them: nobody knows."""
    here = world("n1", "n2")
    here.nodes["n1"].lost = 70
    [found] = here.bad().values()
    assert (found.subject, found.status.value) == ("n1", "unknown")
    assert found.summary == "70 lines of the kernel's log were overwritten unread, perhaps an Xid"


def test_a_gpu_that_does_not_tell_who_it_is() -> None:
    """Known by its slot where the ledger has seen it there; never by the complaint that stands in
    the place of its UUID: two of them would be one."""
    here = world("n1", "n2")
    here.look()
    for node in here.nodes.values():
        node.gpus[3] = replace(node.gpus[3], uuid="[GPU requires reset]", trouble="GPU is lost")
    found = here.bad()
    assert sorted(found) == [gpus_of(0)[3].uuid, gpus_of(1)[3].uuid]
    assert all("does not answer properly" in f.summary for f in found.values())
    assert here.gpus is not None
    assert len(here.gpus.read_entries()) == 16


def test_a_gpu_that_nobody_knows_and_that_tells_nothing() -> None:
    """It is its node's trouble, with its slot."""
    here = world()
    node = here.nodes["n1"]
    node.gpus[3] = replace(node.gpus[3], uuid="ERR!", trouble="ERR!")
    [found] = here.bad().values()
    assert (found.subject, found.status.value) == ("n1", "critical")
    assert f"the GPU at {node.gpus[3].address} does not tell its UUID" in found.summary


@pytest.mark.parametrize("with_ledger", [True, False])
def test_without_gres_as_many_as_before_have_to_be_there(with_ledger: bool) -> None:
    """With a ledger too."""
    here = world()
    here.gpus = here.gpus if with_ledger else None
    here.listed["n1"] = Node(name="n1", state="IDLE", gres="")
    here.look()
    lost = here.nodes["n1"].gpus.pop(5)
    for _ in range(2):
        assert list(here.bad()) == [lost.uuid]


@pytest.mark.parametrize(("many", "blamed"), [(1, 1), (2, 2), (3, 3), (4, 0), (8, 0)])
def test_what_hits_half_of_a_nodes_gpus_at_once_is_the_nodes(many: int, blamed: int) -> None:
    """A switch, a riser, a power supply: no GPU becomes a lemon for it."""
    here = world()
    node = here.nodes["n1"]
    for number in range(many):
        node.xid(74, number)
    node.gpus = [
        replace(gpu, recovery="Reset") if number < many else gpu
        for number, gpu in enumerate(node.gpus)
    ]
    here.bad()
    assert here.gpus is not None
    events = {gpu.uuid: {e.what for e in here.gpus.read_events(gpu.uuid)} for gpu in node.gpus}
    assert [len(v) for v in events.values()] == [2] * blamed + [0] * (8 - blamed)
    of_node = {e.what: e.text for e in here.gpus.read_events("node:n1")}
    assert sorted(of_node) == ([] if blamed else ["recovery Reset", "xid 74"])
    assert all(text.startswith(f"{many} GPUs at once") for text in of_node.values())


@pytest.mark.parametrize(("excluded", "counts"), [("n[1-4]", True), ("n[1-5]", False)])
def test_a_user_who_excludes_a_tenth_of_the_cluster_blames_no_node(
    excluded: str, counts: bool
) -> None:
    """A rack, or nodes of another kind: day by day they would become lemons."""
    here = world(*(f"n{i}" for i in range(1, 41)))
    here.jobs = [job("7", "n40", exclude=excluded)]
    here.look()
    assert here.gpus is not None
    assert bool(here.gpus.read_events("node:n1")) is counts


def test_what_hits_all_gpus_is_told_once() -> None:
    """Read again in the next pass it is the same event."""
    here = world()
    here.nodes["n1"].gpus = [replace(g, recovery="Reset") for g in here.nodes["n1"].gpus]
    here.look()
    here.look()
    assert here.gpus is not None
    assert len(here.gpus.read_events("node:n1")) == 1
