"""Doctor on nodes: rights and ways, each trouble with its remedy; nothing is changed."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sentinel.clock import SystemClock
from sentinel.core.cluster import Node
from sentinel.core.model import Status
from sentinel.core.node_answers import Answer, Answered, Refused, Unreachable, Unreached
from sentinel.doctor.nodes import SUDOERS_LINES, check_node_access, check_node_changes
from sentinel.nodes.probe import NodeProbe, ProbeRequest
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from tests.slurm.stand_ins import StandIns

NODES = [Node(name=f"n{i}", state="IDLE") for i in range(1, 6)]


class Ways:
    """core.remote.Remote that says what it was given, and keeps what it was asked."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._answers = answers
        self.asked: list[tuple[list[str], list[str]]] = []

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        self.asked.append((list(nodes), list(argv)))
        return {n: self._answers.get(n, Answered(code=0)) for n in nodes}

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        raise NotImplementedError


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    folder = tmp_path / "bin"
    folder.mkdir()
    return StandIns(folder)


def test_who_may_not_is_told_how(stand_ins: StandIns) -> None:
    """Administrator, root, SlurmUser, or the lines for sudo with the key that uses them."""
    stand_ins.says("id", "uid=7(eve)")
    stand_ins.says("scontrol", "ClusterName = c\nSLURM_VERSION = 22.05.8\nSlurmUser = slurm(1)\n")
    snapshot = SlurmSnapshot(
        SlurmClient(environ=stand_ins.env), SystemClock(), users=(), max_age=5.0
    )
    item = check_node_changes(snapshot, (), who="eve")
    assert item.status is Status.WARNING
    for part in ("adminlevel=Administrator", "eve ALL=(root)", "change_prefix: [sudo, -n]"):
        assert part in item.remedy


def test_who_only_watches_is_not_told_to_get_rights(stand_ins: StandIns) -> None:
    """No lines for sudo to somebody who has no root, and no warning that never goes away."""
    stand_ins.says("id", "uid=7(eve)")
    stand_ins.says("scontrol", "ClusterName = c\nSLURM_VERSION = 22.05.8\nSlurmUser = slurm(1)\n")
    snapshot = SlurmSnapshot(
        SlurmClient(environ=stand_ins.env), SystemClock(), users=(), max_age=5.0
    )
    item = check_node_changes(snapshot, (), wanted=False)
    assert item.status is Status.OK
    assert item.text.startswith("not needed, as nothing here changes nodes: eve is neither root")
    assert item.remedy == ""


def test_the_lines_for_sudo_allow_what_sentinel_runs_and_nothing_else() -> None:
    """Where visudo is installed it must take them; the expressions are tried in any case."""
    visudo = shutil.which("visudo", path="/usr/sbin:/usr/bin")
    if visudo:
        subprocess.run([visudo, "-c", "-f", "-"], input=SUDOERS_LINES + "\n", text=True, check=True)
    allowed = [re.compile(found) for found in re.findall(r"scontrol (\^.*?\$)", SUDOERS_LINES)]

    def may(*words: str) -> bool:
        return any(pattern.search(" ".join(words)) for pattern in allowed)

    assert may("update", "NodeName=gpu-01", "State=UNDRAIN")
    assert may("update", "NodeName=gpu-01", "State=DRAIN", "Reason=sentinel: bad GPU")
    assert not may("update", "NodeName=gpu-01", "State=DOWN", "Reason=x", "State=UNDRAIN")
    assert not may("update", "NodeName=gpu-01", "State=DRAIN", "Reason=sentinel: x", "State=DOWN")
    assert not may("update", "NodeName=gpu-[01-99]", "State=UNDRAIN")
    assert not may("update", "NodeName=gpu-01", "State=UNDRAIN", "Weight=1")
    assert not may("shutdown")


def test_a_few_nodes_are_asked_something_harmless() -> None:
    """Only nodes that are up, three of them."""
    down = [
        Node(name="n0", state="DOWN"),
        Node(name="n1", state="IDLE", flags=frozenset({"NOT_RESPONDING"})),
    ]
    ways = Ways({})
    [item] = check_node_access([*down, *NODES[1:]], ways, 10.0)
    assert item.status is Status.OK
    assert ways.asked == [(["n2", "n3", "n4"], ["true"])]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Unreachable("No route to host"), "n2: Unreachable: No route to host"),
        (Refused("Permission denied (publickey)"), "n2: Refused: Permission denied (publickey)"),
        (Answered(code=255), "n2: Answered: exit code 255"),
    ],
)
def test_a_way_that_is_closed(answer: Answer, says: str) -> None:
    """Which node, why, and what to try."""
    [item] = check_node_access(NODES, Ways({"n2": answer}), 10.0)
    assert item.status is Status.WARNING
    assert says in item.text
    assert "ssh -o BatchMode=yes n2 true" in item.remedy


def test_no_node_to_ask_is_not_a_way() -> None:
    """Unknown, not ok."""
    [item] = check_node_access([Node(name="n0", state="DOWN")], Ways({}), 10.0)
    assert item.status is Status.UNKNOWN
