"""Nodes from scontrol's answer, in the form of every version from 20.11 to 26.05."""

from pathlib import Path

import pytest

from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell
from sentinel.slurm.nodes import read_nodes, read_state

FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = [
    "20.11",
    "21.08",
    "22.05",
    "23.02",
    "23.11",
    "24.05",
    "24.11",
    "25.05",
    "25.11",
    "26.05",
]

# name: state, flags, reason, who, when. What is true of all versions:
ALWAYS: dict[str, tuple[str, str, str, str, int | None]] = {
    "n0": ("IDLE", "", "", "", None),
    "n1": ("MIXED", "", "", "", None),
    "n3": ("DOWN", "NOT_RESPONDING", "Not responding", "slurm", 1790000001),
    "n6": (
        "DOWN",
        "DRAIN",
        "see State=IDLE Reason=none [root@1] Comment=fine",
        "root",
        1790000004,
    ),
    "n8": ("MIXED", "DRAIN REBOOT_REQUESTED", "kernel update", "alice", 1790000005),
    "n9": ("IDLE", "CLOUD POWERED_DOWN", "", "", None),
    "n11": ("IDLE", "DRAIN", "NHC: check_fs_mount: /scratch not mounted", "root", 1790000006),
    "n12": ("ALLOCATED", "", "", "", None),
    "n14": ("UNKNOWN", "NOT_RESPONDING", "", "", None),
}
# and from one version on:
SINCE: dict[str, dict[str, tuple[str, str, str, str, int | None]]] = {
    "20.11": {
        "n2": ("IDLE", "DRAIN", "Kill task failed", "root", 1790000000),
        "n4": ("MIXED", "DRAIN", "gpu fell off the bus", "alice", 1790000002),
        "n5": ("IDLE", "DRAIN", "Low RealMemory", "slurm", 1790000003),
        "n7": ("IDLE", "MAINTENANCE", "", "", None),
        "n10": ("IDLE", "RESERVED", "", "", None),
        "n13": (
            "UNKNOWN",
            "DRAIN NOT_RESPONDING REBOOT_REQUESTED",
            "firmware : reboot issued",
            "root",
            1790000007,
        ),
    },
    "21.08": {
        "n5": (
            "IDLE",
            "DRAIN INVALID_REG",
            "Low RealMemory (reported:24105 < 100.00% of configured:1000000)",
            "slurm",
            1790000003,
        ),
        "n7": ("IDLE", "MAINTENANCE RESERVED", "", "", None),
        "n10": ("IDLE", "PLANNED", "", "", None),
        "n13": (
            "DOWN",
            "DRAIN NOT_RESPONDING REBOOT_ISSUED",
            "firmware : reboot issued",
            "root",
            1790000007,
        ),
    },
    "23.02": {
        "n4": ("MIXED", "DRAIN", "gpu fell off the bus : Not responding", "slurm", 1790000002)
    },
    "24.05": {"n15": ("IDLE", "BLOCKED", "", "", None)},
    "25.05": {
        "n2": ("IDLE", "DRAIN", "Kill task failed (JobId=4711 StepId=batch)", "root", 1790000000),
        "n16": ("ALLOCATED", "EXTERNAL", "", "", None),
    },
}


def printed(version: str) -> bytes:
    return (FIXTURES / f"nodes-{version}.txt").read_bytes()


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes_of_every_version(version: str) -> None:
    """State, flags, reason, its user and time, in words that are the same for all versions."""
    expected = dict(ALWAYS)
    for since in VERSIONS[: VERSIONS.index(version) + 1]:
        expected |= SINCE.get(since, {})
    found = {
        n.name: (n.state, " ".join(sorted(n.flags)), n.reason, n.reason_user, n.reason_time)
        for n in read_nodes(printed(version))
    }
    assert found == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_the_other_fields_of_every_version(version: str) -> None:
    """Partitions, GPUs, CPUs, boot and slurmd's version stand at the same names."""
    nodes = {node.name: node for node in read_nodes(printed(version))}
    first = nodes["n0"]
    assert (first.partitions, first.gres) == (("main", "large"), "gpu:8(S:0-1)")
    assert first.features == "h100,ib"
    assert (first.cpus, first.boot_time) == (128, 1789000000)
    assert first.version.startswith(version)
    assert (nodes["n9"].gres, nodes["n9"].version, nodes["n9"].boot_time) == ("", "", None)
    assert nodes["n12"].partitions == ()


@pytest.mark.parametrize(
    ("word", "base", "flags"),
    [
        ("IDLE", "IDLE", ""),
        ("DOWN*+DRAIN", "DOWN", "DRAIN NOT_RESPONDING"),
        ("IDLE*+DRAIN", "IDLE", "DRAIN NOT_RESPONDING"),
        ("MIXED@+DRAIN", "MIXED", "DRAIN REBOOT_REQUESTED"),
        ("ALLOCATED$", "ALLOCATED", "MAINTENANCE"),
        ("ALLOCATED+COMPLETING", "ALLOCATED", "COMPLETING"),
        ("ALLOCATED+", "ALLOCATED", ""),
        ("MAINT*", "IDLE", "MAINTENANCE NOT_RESPONDING"),
        ("MAINT+DRAIN", "IDLE", "DRAIN MAINTENANCE"),
        ("RESERVED", "IDLE", "RESERVED"),
        ("REBOOT+DRAIN", "UNKNOWN", "DRAIN REBOOT_REQUESTED"),
        ("IDLE~+CLOUD+POWER", "IDLE", "CLOUD POWERED_DOWN"),
        ("IDLE#+CLOUD", "IDLE", "CLOUD POWERING_UP"),
        ("IDLE%+CLOUD+POWERING_DOWN", "IDLE", "CLOUD POWERING_DOWN"),
        ("DOWN+DRAIN+FAIL", "DOWN", "DRAIN FAIL"),
        ("IDLE+DYNAMIC_NORM", "IDLE", "DYNAMIC_NORM"),
        ("?", "UNKNOWN", "?"),
        ("INVALID", "UNKNOWN", "INVALID"),
        ("HIBERNATED+DRAIN", "UNKNOWN", "DRAIN HIBERNATED"),
    ],
)
def test_states_of_all_versions_become_a_base_and_flags(word: str, base: str, flags: str) -> None:
    """20.11's suffixes and words in place of the base, and words that are still to come."""
    assert read_state(word) == (base, frozenset(flags.split()))


def line(state: str = "IDLE", tail: str = "") -> str:
    return f"NodeName=n1 Arch=x86_64 CPUTot=4 State={state} ThreadsPerCore=1 {tail}\n"


def one(told: str) -> Node:
    [node] = read_nodes(told.encode("utf-8", "surrogateescape"))
    return node


@pytest.mark.parametrize(
    ("tail", "reason", "user", "time"),
    [
        ("AveWatts=n/a Reason=bad dimm [bob@1790000000]", "bad dimm", "bob", 1790000000),
        ("AveWatts=n/a Reason=no stamp", "no stamp", "", None),
        ("Reason=x [root@1] [root@17]", "x [root@1]", "root", 17),
        ("Reason=NodeName=n2 State=IDLE [a.b-c@17]", "NodeName=n2 State=IDLE", "a.b-c", 17),
        ("Reason= [root@17]", "", "root", 17),
        ("Reason=a [root@17]         b         c", "a b         c", "root", 17),
        ("Reason=a [root@17]         see [ops@example]", "a see [ops@example]", "root", 17),
        ("Reason=a [root@17]  Comment=(null)", "a", "root", 17),
        ("Reason=a [root@17] Comment=b [c] Extra=d", "a", "root", 17),
        ("Reason=a Comment=b [root@17]", "a Comment=b", "root", 17),
        ("Comment=see Reason=b [root@17]", "", "", None),
        ("Reason=a [root@Unknown]", "a", "root", None),
    ],
)
def test_a_reason_may_hold_anything(tail: str, reason: str, user: str, time: int | None) -> None:
    """State=, stamps and names of other fields in a reason are text; Slurm's stamp is the last."""
    node = one(line("DOWN+DRAIN", tail))
    assert (node.state, node.reason, node.reason_user, node.reason_time) == (
        "DOWN",
        reason,
        user,
        time,
    )


def test_a_line_end_in_a_comment_makes_no_node() -> None:
    """Slurm prints an administrator's comment raw; what follows still belongs to that node."""
    nodes = read_nodes((line(tail="Comment=one\ntwo State=DOWN") + line("DOWN")).encode())
    assert [node.state for node in nodes] == ["IDLE", "DOWN"]


def test_a_node_of_20_11_without_a_comment_has_none() -> None:
    """It prints `(null)`, which is not to be kept as somebody's; a wrapper's words behind are no comment."""
    (node,) = read_nodes(line(tail="Comment=(null)").encode())
    assert node.comment == ""
    with pytest.raises(CannotTell, match="'Welcome' is about no node"):
        read_nodes((line(tail="Comment=(null)") + "Welcome\n").encode())


def test_a_range_of_names_is_many_nodes() -> None:
    """Each name is a node of its own."""
    text = line().replace("n1", "n[08-10]")
    assert [node.name for node in read_nodes(text.encode())] == ["n08", "n09", "n10"]


def test_a_name_that_only_slurm_takes_blinds_no_other_node() -> None:
    """slurm.conf may hold it; nobody else would take it for a name."""
    text = line() + line().replace("n1", "-oProxyCommand=x")
    assert [node.name for node in read_nodes(text.encode())] == ["n1", "-oProxyCommand=x"]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        line()[:-1],
        line() + line()[:40],
        line() + "NodeName=n2 Arch=x86_64\n",
        "slurm_load_node error: something\n",
        line().replace("CPUTot=4", "CPUTot=four"),
        line(tail="BootTime=2026-11-21T01:28:53"),
    ],
)
def test_an_answer_in_another_form_is_cannot_tell(answer: str) -> None:
    """A cut line, a line without a state, a time in another form: never a shorter list."""
    with pytest.raises(CannotTell, match="answer about nodes is not understood"):
        read_nodes(answer.encode())
