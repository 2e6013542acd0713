"""Nodes that can work against those needed; the others by reason, and those that come and go."""

from typing import Any

import pytest

from sentinel.checks.nodes import NodesCheck, group_by_reason, is_available, judge_count
from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Report, Status
from sentinel.core.values import Rate, Share, since_text
from sentinel.testing import START, FixedSlurm, context, shift_instant

NOW = START.wall // 1_000_000
SINCE = since_text(NOW - 7200, NOW)


def node(number: int, state: str = "IDLE", *flags: str, **more: Any) -> Node:
    told = {"partitions": ("prod",), "reason_time": NOW - 7200 if more.get("reason") else None}
    return Node(name=f"n{number}", state=state, flags=frozenset(flags), **{**told, **more})


def run(check: NodesCheck, nodes: list[Node], **more: Any) -> Report:
    return check.run(context(FixedSlurm(nodes=nodes), **more))


def by_subject(report: Report) -> dict[str, Finding]:
    return {finding.subject: finding for finding in report.findings}


@pytest.mark.parametrize(
    ("state", "flags", "can"),
    [
        ("IDLE", (), True),
        ("MIXED", (), True),
        ("ALLOCATED", ("COMPLETING",), True),
        ("IDLE", ("COMPLETING", "DRAIN"), False),
        ("IDLE", ("POWERED_DOWN", "CLOUD"), True),
        ("IDLE", ("POWERING_DOWN",), True),
        ("IDLE", ("PLANNED",), True),
        ("IDLE", ("DRAIN",), False),
        ("MIXED", ("DRAIN",), False),
        ("IDLE", ("NOT_RESPONDING",), False),
        ("IDLE", ("MAINTENANCE",), False),
        ("IDLE", ("REBOOT_REQUESTED",), False),
        ("DOWN", (), False),
        ("UNKNOWN", (), False),
    ],
)
def test_which_nodes_can_work(state: str, flags: tuple[str, ...], can: bool) -> None:
    """Busy ones can, and those that power saving put to sleep."""
    assert is_available(node(1, state, *flags)) is can


@pytest.mark.parametrize(
    ("fit", "need", "spare", "status"),
    [
        (0, None, 0, Status.CRITICAL),
        (1, None, 0, Status.OK),
        (63, 64, 0, Status.CRITICAL),
        (64, 64, 0, Status.OK),
        (64, 64, 5, Status.WARNING),
        (67, 64, 5, Status.WARNING),
        (68, 64, 5, Status.OK),
        (1, 1, 1, Status.WARNING),
        (2, 1, 1, Status.OK),
    ],
)
def test_needed_and_spare(fit: int, need: int | None, spare: float, status: Status) -> None:
    """Critical below what is needed, warning below the spare, which is rounded up."""
    assert judge_count(fit, need, Share(spare))[0] is status


def test_a_name_that_only_slurm_takes_ends_no_check() -> None:
    """Nodes are told of by their names, the odd one too."""
    odd = Node(name="-oProxy=x", state="DOWN", partitions=("prod",), reason="Not responding")
    told = by_subject(run(NodesCheck(partition="prod"), [node(1), node(2, "DOWN"), odd]))["prod"]
    assert "-oProxy=x: Not responding (DOWN)" in told.details


def test_the_message_says_what_is_out_and_why() -> None:
    """By reason, the largest group first, and since when it has been so."""
    nodes = [node(1), node(2), node(3, "IDLE", "DRAIN", reason="Kill task failed")]
    nodes += [node(i, "DOWN", reason="Not responding") for i in (4, 5)]
    told = by_subject(run(NodesCheck(partition="prod", need=3), nodes))["prod"]
    assert told.status is Status.CRITICAL
    assert told.summary == (
        "2 of 5 nodes can work, 3 are needed; "
        f"out of service: n[4-5]: Not responding (DOWN) {SINCE} and 1 more reasons"
    )
    assert told.details.splitlines()[1] == f"n3: Kill task failed (IDLE+DRAIN) {SINCE}"
    assert told.values == {"available": 2, "nodes": 5, "need": 3}


# slurm.conf(5), State of a partition. AWS ParallelCluster sets INACTIVE in its protected mode.
@pytest.mark.parametrize(
    ("check", "states", "status", "words"),
    [
        (NodesCheck(partition="prod", need=2), {"prod": "UP"}, Status.OK, "2 of 2 nodes"),
        (
            NodesCheck(partition="prod", need=2),
            {"prod": "INACTIVE"},
            Status.CRITICAL,
            "0 of 2 nodes can work, 2 are needed; partition prod is INACTIVE: no job starts there",
        ),
        (NodesCheck(partition="prod"), {"prod": "DOWN"}, Status.CRITICAL, "prod is DOWN"),
        (NodesCheck(partition="prod"), {"prod": "DRAIN"}, Status.WARNING, "takes no new job"),
        (NodesCheck(partition="prod"), {"prod": "NEW"}, Status.UNKNOWN, "is NEW"),
        (NodesCheck(partition="prod"), {"debug": "DOWN"}, Status.OK, "2 of 2 nodes"),
        # of all nodes those count that have no other partition
        (NodesCheck(need=2), {"prod": "DOWN"}, Status.CRITICAL, "1 of 2 nodes"),
        (NodesCheck(need=2), {"debug": "DOWN"}, Status.OK, "2 of 2 nodes can work (2 needed)"),
        (
            NodesCheck(need=1, spare=Share(10)),
            {"debug": "DOWN"},
            Status.OK,
            "(1 needed and 1 to spare)",
        ),
    ],
)
def test_a_partition_that_starts_no_job_has_no_node_that_can_work(
    check: NodesCheck, states: dict[str, str], status: Status, words: str
) -> None:
    """Its nodes are idle all the while."""
    nodes = [node(1), node(2, partitions=("prod", "debug"))]
    slurm = FixedSlurm(nodes=nodes, partition_states=states)
    found = check.run(context(slurm)).findings[0]
    assert (found.status, words in found.summary) == (status, True), found.summary


def test_a_partition_whose_state_nobody_tells_is_unknown() -> None:
    """The nodes alone do not say that jobs start there."""

    class Silent(FixedSlurm):
        def partition_states(self) -> dict[str, str]:
            raise CannotTell("Socket timed out")

    slurm = Silent(nodes=[node(1), node(2)])
    found = NodesCheck(partition="prod", need=2).run(context(slurm)).findings[0]
    assert (found.status, "Socket timed out" in found.summary) == (Status.UNKNOWN, True)
    few = NodesCheck(partition="prod", need=3).run(context(slurm)).findings[0]
    assert few.status is Status.CRITICAL


def test_a_partition_that_scontrol_does_not_list_is_unknown() -> None:
    """PrivateData may hide it. It did count as UP."""

    class Hiding(FixedSlurm):
        def partition_states(self) -> dict[str, str]:
            return {"debug": "UP"}

    slurm = Hiding(nodes=[node(1), node(2, partitions=("debug",))])
    hidden = NodesCheck(partition="prod").run(context(slurm)).findings[0]
    assert (hidden.status, "not listed" in hidden.summary) == (Status.UNKNOWN, True)
    listed = NodesCheck(partition="debug").run(context(slurm)).findings[0]
    assert listed.status is Status.OK


def test_nodes_by_name_and_by_partition() -> None:
    """Others do not count."""
    nodes = [node(1), node(2), node(3, partitions=("debug",)), node(4, partitions=("debug",))]
    assert run(NodesCheck(partition="debug", need=2), nodes).status is Status.OK
    assert run(NodesCheck(nodes="n[1,3]", need=2), nodes).status is Status.OK


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (NodesCheck(partition="nosuch"), "no partition nosuch; there are: prod"),
        (NodesCheck(nodes="n[1-9]"), "Slurm knows no n[3-9] here"),
    ],
)
def test_what_slurm_does_not_know_cannot_be_told(check: NodesCheck, says: str) -> None:
    """Not an empty partition: nobody can tell."""
    with pytest.raises(CannotTell) as blind:
        run(check, [node(1), node(2)])
    assert says in str(blind.value)


def test_a_slurmctld_that_has_just_started_knows_nothing_yet() -> None:
    """For seconds all nodes are UNKNOWN; half of them is the most that is believed."""
    unknown = [node(i, "UNKNOWN") for i in (1, 2)]
    with pytest.raises(CannotTell):
        run(NodesCheck(), [*unknown, node(3)])
    assert run(NodesCheck(), [*unknown, node(3), node(4)]).findings
    with pytest.raises(CannotTell):
        run(NodesCheck(), [])


def test_without_need_each_node_that_is_out_is_an_alert() -> None:
    """But for planned work; `each` decides otherwise where it is given."""
    nodes = [node(1), node(2, "IDLE", "DRAIN", reason="bad dimm")]
    nodes += [node(3, "IDLE", "DRAIN", reason="RMA 4711"), node(4, "IDLE", "MAINTENANCE")]
    told = by_subject(run(NodesCheck(ignore=["RMA"]), nodes))
    assert [told[n].status for n in ("n1", "n2", "n3", "n4")] == [
        Status.OK,
        Status.WARNING,
        Status.OK,
        Status.OK,
    ]
    assert told["n2"].summary == f"out of service: bad dimm (IDLE+DRAIN) {SINCE}"
    assert set(by_subject(run(NodesCheck(each=False), nodes))) == {"all nodes"}
    assert len(run(NodesCheck(need=1, each=True), nodes).findings) == 5
    assert len(run(NodesCheck(need=1), nodes).findings) == 1


def test_a_node_that_comes_and_goes_is_told_even_while_it_is_there() -> None:
    """Three times within a day by default; what is older is forgotten."""
    check, memory, at = NodesCheck(need=1, flapping=Rate("2 in 1h")), {}, START
    there, out = [node(1), node(2)], [node(1), node(2, "DOWN")]
    reports = []
    for nodes in (there, out, out, there, out, there):
        at = shift_instant(at, 60)
        reports.append(run(check, nodes, now=at, memory=memory))
        memory = reports[-1].memory or {}
    assert set(by_subject(reports[3])) == {"all nodes"}
    assert by_subject(reports[5])["n2"].status is Status.WARNING
    assert by_subject(reports[5])["n2"].summary == "is IDLE; left service 2 times within 1h"
    later = run(check, there, now=shift_instant(at, 3600), memory=memory)
    assert set(by_subject(later)) == {"all nodes"}


def test_what_is_out_at_the_first_look_has_not_just_left() -> None:
    """Nobody knows when it did."""
    check = NodesCheck(need=1, flapping=Rate("1 in 1h"))
    first = run(check, [node(1), node(2, "DOWN")])
    assert set(by_subject(first)) == {"all nodes"}
    gone = run(check, [node(1, "DOWN"), node(2, "DOWN")], memory=first.memory)
    assert "n1" in by_subject(gone)


def test_reasons_are_grouped() -> None:
    """A node without a reason counts under its state."""
    nodes = [node(i, "DOWN") for i in (1, 2)] + [node(3, "IDLE", "DRAIN", reason="x\x1b[31m")]
    assert group_by_reason(nodes, NOW) == [
        "n[1-2]: DOWN (DOWN)",
        f"n3: x\\x1b[31m (IDLE+DRAIN) {SINCE}",
    ]


@pytest.mark.parametrize(
    ("settings", "key"), [({"nodes": "n[1-"}, "nodes"), ({"spare": Share(5)}, "spare")]
)
def test_bad_settings(settings: dict[str, Any], key: str) -> None:
    """A share of what is not said is nothing."""
    with pytest.raises(Invalid) as refused:
        NodesCheck(**settings)
    assert refused.value.path == (key,)


def test_a_node_of_which_slurm_knows_nothing_yet_was_not_seen() -> None:
    """It can neither work nor not; the others are judged."""
    report = run(NodesCheck(), [node(1), node(2), node(3, "UNKNOWN")])
    seen = report.coverage
    assert (seen.words, seen.status) == ("saw 2 of 3 nodes: not n3", Status.UNKNOWN)
    found = {name: finding.status for name, finding in by_subject(report).items()}
    assert (found["n3"], found["n2"]) == (Status.UNKNOWN, Status.OK)  # its alert is not settled


def test_all_nodes_of_a_rack_are_told_as_one() -> None:
    """Only where all of several are out, and by what Slurm says of the topology now."""
    nodes = [node(1, "DOWN"), node(2, "DOWN"), node(3, "DOWN"), node(4), node(5, "DOWN")]
    topology = {"s0": "n[1-2]", "s1": "n[3-4]", "s2": "n5", "s3": "n[5-6]"}

    def told(topology: dict[str, str] | None) -> dict[str, Finding]:
        slurm = FixedSlurm(nodes=nodes, topology=topology)
        return by_subject(NodesCheck().run(context(slurm)))

    found = told(topology)
    assert [name for name in found if name.startswith("rack")] == ["rack s0"]
    assert found["rack s0"].summary.startswith("all 2 nodes of it are out: n[1-2]; ")
    assert [f.labels.get("rack") for n, f in found.items() if n in ("n1", "n2", "n3", "n5")] == [
        "s0", "s0", None, None,
    ]  # fmt: skip
    assert [name for name in told({**topology, "s0": "n[1-4]"}) if "rack" in name] == []
    assert [name for name in told(None) if "rack" in name] == []
    nodes[1] = node(2, "DOWN", "MAINTENANCE")
    assert [name for name in told(topology) if "rack" in name] == []
