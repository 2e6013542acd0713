"""Who has come back, which jobs lack a node, and what a test of nodes leaves. See also test_probation_lab.py."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sentinel.actions.diag import NODE_TEST_PATH
from sentinel.actions.diag import DiagAction as DiagAction
from sentinel.actions.probation import ProbationAction
from sentinel.checks.diag import DiagCheck, archive
from sentinel.checks.diag.probation import find_returned, make_probation, request_probation
from sentinel.core.cluster import Node, Reservation
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.testing import START, job
from tests.checks.diag.test_check import Site, node

BOOT = 1_800_000_000


def at(state: str = "IDLE", *flags: str, boot: int = BOOT, reason: str = "") -> Node:
    return Node(name="n1", state=state, flags=frozenset(flags), boot_time=boot, reason=reason)


@pytest.mark.parametrize(
    ("course", "back"),
    [
        ([at("IDLE", "DRAIN"), at()], True),
        ([at("DOWN", reason="RMA"), at()], True),
        ([at("IDLE", "REBOOT_ISSUED"), at(boot=BOOT + 300)], True),
        ([at("IDLE", "NOT_RESPONDING"), at(boot=BOOT + 300)], True),
        ([at("DOWN", "NOT_RESPONDING", reason="Not responding"), at(boot=BOOT + 300)], True),
        ([at("IDLE", "NOT_RESPONDING"), at()], False),
        ([at("DOWN", "NOT_RESPONDING", reason="Not responding"), at(boot=BOOT + 1)], False),
        ([at("IDLE", "POWERED_DOWN", boot=0), at(boot=BOOT + 300)], False),
        ([at(), at()], False),
        ([at("IDLE", "DRAIN"), at("DOWN", "NOT_RESPONDING"), at(boot=BOOT)], True),
        ([at("IDLE", "DRAIN"), at("IDLE", "POWERING_UP"), at()], True),
        ([at("IDLE", "DRAIN"), at("IDLE", "COMPLETING")], False),
    ],
)
def test_who_has_come_back(course: list[Node], back: bool) -> None:
    """Who was kept out, or booted; who was only silent, or slept, has not been away."""
    out, found = {}, list[str]()
    for seen in course:
        found, out = find_returned(out, [seen])
    assert found == (["n1"] if back else [])


class Slurm:
    """The hands that an action on a reservation looks with."""

    def __init__(self, *, jobs: Any = (), reserved: Any = (), here: Node | None = None) -> None:
        self._jobs, self._reserved, self._node = jobs, reserved, here or node("n1")

    def node(self, name: str) -> Node | None:
        return self._node

    def waiting(self) -> Any:
        return self._jobs

    def reservations(self) -> Any:
        return self._reserved


WISH = request_probation(make_probation("n1", 3600, "root,sentinel", START))
OURS = Reservation(
    name=WISH.params["name"],
    starts=0,
    ends=3600,
    nodes=frozenset({"n1"}),
    flags=frozenset({"SPEC_NODES"}),
    users=frozenset({"root", "sentinel"}),
)


@pytest.mark.parametrize(
    ("partition", "reason", "more", "lacks"),
    [
        ("prod", "Resources", {}, True),
        ("prod", "Priority", {}, True),
        ("dev,prod", "None", {}, True),
        ("prod", "ReqNodeNotAvail, UnavailableNodes:n1", {}, True),
        ("prod", "a reason of a newer Slurm", {}, True),
        ("dev", "Resources", {}, False),
        ("prod", "JobHeldUser", {}, False),
        ("prod", "Dependency", {}, False),
        ("prod", "QOSMaxJobsPerUserLimit", {}, False),
        ("prod", "Resources", {"name": "sentinel-diag-n2-1", "user": "root"}, False),
        ("prod", "Resources", {"name": "sentinel-diag-n2-1", "user": "eve"}, True),
    ],
)
def test_which_jobs_lack_the_node(
    partition: str, reason: str, more: dict[str, Any], lacks: bool
) -> None:
    """In doubt a job does; tests of ours do not."""
    waiting = job(state="PENDING", reason=reason, **{"partition": partition, **more})
    look = ProbationAction().look(WISH, Slurm(jobs=[waiting]))  # type: ignore[arg-type]
    assert bool(look.not_ready) == lacks


@pytest.mark.parametrize(
    ("slurm", "why"),
    [
        (Slurm(here=node("n1", "ALLOCATED")), "jobs run there"),
        (Slurm(here=node("n1", "IDLE", "DRAIN")), "drained"),
        (Slurm(here=node("n1", "DOWN")), "DOWN"),
        (Slurm(reserved=[Reservation(name="x", starts=0, ends=9, nodes=frozenset({"n1"}))]), "x"),
    ],
)
def test_who_is_not_kept(slurm: Slurm, why: str) -> None:
    """A node that is busy, ill, or reserved by somebody else."""
    assert why in ProbationAction().look(WISH, slurm).not_ready  # type: ignore[arg-type]


def test_one_that_is_kept_already_is_not_kept_twice() -> None:
    """Also after a sentinel that was killed right after it."""
    look = ProbationAction().look(WISH, Slurm(reserved=[OURS]))  # type: ignore[arg-type]
    assert (look.done, look.not_ready) == (True, "")


def test_without_keep_a_node_that_came_back_is_only_tested(tmp_path: Path) -> None:
    """By a job as any other, and each time that it comes back."""
    site = Site(tmp_path, nodes="returned")
    idle = site.nodes
    for _ in range(2):
        site.nodes = [node("n0", "IDLE", "DRAIN"), *idle[1:]]
        assert site.asked(site.look()) == []
        site.nodes = idle
        report = site.look()
        assert [(r.action, r.target) for r in report.requests] == [("diag", "n0")]
        site.end(report, "n0", "{}", 1)
        site.look()


@pytest.mark.parametrize(
    "settings",
    [
        {"keep": Duration(2399)},
        {"keep": Duration(90_000)},
        {"test": "command"},
        {"command": ["/bin/true"]},
    ],
)
def test_what_cannot_be_kept_or_run_is_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    """The test has to fit into the time, and a command needs words."""
    with pytest.raises(Invalid):
        DiagCheck(nodes="returned", archive=FilePath(str(tmp_path)), **settings)


@pytest.mark.parametrize(
    ("command", "outcome", "why"),
    [
        (["echo", "fine\x1b[31m"], "pass", "fine\\x1b[31m"),
        (["sh", "-c", "echo bad DIMM; exit 3"], "fail", "exit code 3: bad DIMM"),
        (["/no/such"], "inconclusive", "/no/such: No such file or directory"),
    ],
)
def test_what_a_test_of_nodes_leaves(
    tmp_path: Path, command: list[str], outcome: str, why: str
) -> None:
    """Three answers; what was there before is not written over."""
    site = Site(tmp_path / "a", nodes="idle", test="command", command=command)
    (request,) = [r for r in site.look().requests if r.target == "n1"]
    (argv,) = DiagAction().commands(request)
    begins = argv.index(NODE_TEST_PATH)
    for _ in range(2):
        subprocess.run([sys.executable, *argv[begins:]], stderr=subprocess.DEVNULL, check=False)
    found = archive.read_test_verdict(request.params["out"])
    assert (found.outcome, found.why) == (outcome, why)
