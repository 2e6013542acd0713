"""On a real Slurm: a node that comes back is kept in a reservation, tested, and given back."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sentinel.actions.action_rules import ActionRules
from sentinel.actions.diag import DiagAction as DiagAction
from sentinel.actions.drain import DrainAction
from sentinel.actions.executor import ActionExecutor
from sentinel.actions.probation import ProbationAction, ReleaseAction
from sentinel.actions.service import ActionService
from sentinel.alerting.slurm_maintenance import maintenance_changes
from sentinel.checks.diag import DiagCheck
from sentinel.core.action_limits import BreakerSettings, GuardSettings
from sentinel.core.actions import Reply
from sentinel.core.cluster import Reservation
from sentinel.core.model import Finding, Report, Status
from sentinel.core.settings import CheckCommon, CheckConfig, FilePath
from sentinel.core.values import Duration, Share
from sentinel.slurm.change import SlurmHands
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.testing import ManualClock, context
from tests.actions.model import Crash
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until
from tests.store.book_memory import MemoryBooks
from tests.store.gpu_memory import MemoryGpus

pytestmark = pytest.mark.lab
KINDS_ = {
    "probation": ProbationAction(),
    "release": ReleaseAction(),
    "diag": DiagAction(),
    "drain": DrainAction(),
}
CALM = GuardSettings(breaker=BreakerSettings(nodes=1000, share=Share(100)))
NODE = "node-1"


class Hands(SlurmHands):
    """Slurm's own commands; sentinel is killed before or after the change that begins so."""

    kill: tuple[str, str] = ("", "")

    def change(self, argv: Sequence[str]) -> Reply:
        when, word = self.kill
        mine = word in argv[:2]
        if mine and when == "before":
            raise Crash
        reply = super().change(argv)
        if mine and when == "after":
            raise Crash
        return reply


class Ward:
    """A sentinel with one check, which a test can kill; a minute passes between its looks."""

    def __init__(self, lab: Lab, folder: Path, **settings: Any) -> None:
        how = {"test": "command", "command": ["/bin/true"], "keep": Duration(3600), **settings}
        self.check = DiagCheck(nodes="returned", archive=FilePath(str(folder)), **how)
        self.config = CheckConfig(name="back", common=CheckCommon(kind="diag"), plugin=self.check)
        self.lab, self.clock, self.books = lab, ManualClock(), MemoryBooks()
        self.memory: Any = {}
        self.seen: list[Finding] = []
        self.look()
        lab.ask(["scontrol", "update", f"nodename={NODE}", "state=drain", "reason=RMA"])
        self.look()
        lab.ask(["scontrol", "update", f"nodename={NODE}", "state=undrain"])
        wait_until(lambda: lab.node(NODE)["State"] == "IDLE", "the node is back", 20)

    def look(self, kill: tuple[str, str] = ("", "")) -> Report:
        """One pass: `kill` ("memory", "") before anything is asked for, else at a change."""
        snapshot = SlurmSnapshot(
            SlurmClient(environ=self.lab.env), self.clock, users=["root"], max_age=20.0
        )
        now = self.clock.advance(60)
        more = {"memory": self.memory, "logbook": self.books, "gpus": MemoryGpus()}
        report = self.check.run(context(snapshot, now, **more))  # type: ignore[arg-type]
        self.memory, self.seen = report.memory, [f for f in report.findings if f.subject == NODE]
        hands = Hands(snapshot)
        hands.kill = kill
        actor = ActionExecutor(ActionRules(kinds=KINDS_, guard=CALM), self.books, hands, self.clock)
        service = ActionService(actor, self.books, snapshot, self.clock)
        if kill[0] != "memory":
            with suppress(Crash):  # what it had written down is in the books
                service.act_for_check(self.config, report.requests)
        return report

    def reservations(self) -> list[Reservation]:
        client = SlurmClient(environ=self.lab.env)
        return [*SlurmSnapshot(client, self.clock, users=["root"], max_age=0.0).reservations()]

    def until(self, word: str, looks: int = 30) -> Finding:
        """Goes on until something is said of the node with this word."""
        for _ in range(looks):
            self.look()
            if self.seen and word in self.seen[0].summary:
                return self.seen[0]
            self.settle()
        raise AssertionError([f.summary for f in self.seen])

    def settle(self) -> None:
        """Until the test that was begun is over, also one that Slurm has yet to start."""
        out = ["squeue", "-h", "-t", "PD,CF,R,CG", "-o", "%j %T %R"]
        wait_until(lambda: not self.lab.ask(out), lambda: f"no job there; {self.lab.ask(out)}", 30)

    def free(self, looks: int = 20) -> None:
        """Goes on until no reservation is left."""
        for _ in range(looks):
            if not self.reservations():
                return
            self.look()
        raise AssertionError(self.reservations())

    def did(self) -> list[tuple[str, str]]:
        return [(r.action, r.outcome.value) for r in reversed(self.books.records())]


def test_a_node_that_comes_back_is_kept_tested_and_given_back(fresh: Lab, tmp_path: Path) -> None:
    """In a reservation that ends by itself, and that nobody reads as maintenance."""
    ward = Ward(fresh, tmp_path / "archive")
    ward.look()
    (found,) = ward.reservations()
    assert (found.nodes, found.ends - found.starts) == ({NODE}, 3600)
    assert not maintenance_changes([found], (), [], ward.clock.now())
    assert ward.until("passed").status is Status.OK
    ward.free()
    assert ward.did() == [("probation", "done"), ("diag", "done"), ("release", "done")]
    assert fresh.node(NODE)["State"] == "IDLE"


@pytest.mark.parametrize(
    ("when", "word", "told"),
    [
        ("memory", "create", "passed"),
        ("before", "create", ""),
        ("after", "create", "passed"),
        ("memory", "sbatch", "passed"),
        ("before", "sbatch", "its job never came into the queue"),
        ("after", "sbatch", "passed"),
        ("memory", "delete", "passed"),
        ("before", "delete", "passed"),
        ("after", "delete", "passed"),
    ],
)
@pytest.mark.long
def test_killed_at_any_step_it_goes_on(
    fresh: Lab, tmp_path: Path, when: str, word: str, told: str
) -> None:
    """The test is made, or people hear that it was not; no reservation stays."""
    ward = Ward(fresh, tmp_path / "archive")
    at = ["create", "sbatch", "delete"].index(word)
    for number in range(3):
        ward.look((when, word) if number == at else ("", ""))
        ward.settle()
    summaries = set[str]()
    for _ in range(20):
        summaries |= {finding.summary for finding in ward.seen}
        if not ward.memory["kept"]:
            break
        ward.look()
        ward.settle()
    assert not ward.reservations()
    assert ward.memory["kept"] == []
    assert any(told in summary for summary in summaries), summaries
    assert fresh.node(NODE)["State"] == "IDLE"


def test_a_reservation_that_is_taken_away_is_not_made_again(fresh: Lab, tmp_path: Path) -> None:
    """People hear that the node was not tested."""
    ward = Ward(fresh, tmp_path / "archive")
    ward.look()
    fresh.ask(["scontrol", "delete", f"ReservationName={ward.reservations()[0].name}"])
    found = ward.until("somebody has taken sentinel-node-1-")
    assert found.status is Status.WARNING
    for _ in range(3):
        ward.look()
    assert not ward.reservations()
    assert ward.did() == [("probation", "done")]


@pytest.mark.parametrize("change", ["Duration=120", "Users=root,daemon", "Flags=MAINT"])
def test_a_reservation_that_somebody_changes_is_theirs(
    fresh: Lab, tmp_path: Path, change: str
) -> None:
    """It is neither used nor deleted."""
    ward = Ward(fresh, tmp_path / "archive")
    ward.look()
    (before,) = ward.reservations()
    try:
        fresh.ask(["scontrol", "update", f"ReservationName={before.name}", change])
        assert ward.until("somebody has changed").status is Status.WARNING
        for _ in range(3):
            ward.look()
        assert [r.name for r in ward.reservations()] == [before.name]
        assert ward.did() == [("probation", "done")]
    finally:
        fresh.run(["scontrol", "delete", f"ReservationName={before.name}"])


def test_not_while_a_job_waits_for_the_whole_cluster(fresh: Lab, tmp_path: Path) -> None:
    """Nor is a node kept that somebody else has reserved."""
    fresh.sbatch("sleep 300", nodes=1, nodelist="node-0", exclusive=True)
    ward = Ward(fresh, tmp_path / "archive")
    fresh.sbatch("true", nodes=4, exclusive=True)
    ward.look()
    assert not ward.reservations()
    (record,) = ward.books.records()
    assert (record.outcome.value, record.rule) == ("refused", "state")
    assert "waits for nodes of" in record.why


def test_a_test_that_cannot_run_gives_the_node_back_and_tells(fresh: Lab, tmp_path: Path) -> None:
    """Slurm does not take its job."""
    ward = Ward(fresh, tmp_path / "archive")
    ward.look()
    assert len(ward.reservations()) == 1
    (partition,) = fresh.ask(["sinfo", "-h", "-o", "%R"]).split()
    fresh.ask(["scontrol", "update", f"PartitionName={partition}", "State=DRAIN"])
    try:
        found = ward.until("without its test")
    finally:
        fresh.ask(["scontrol", "update", f"PartitionName={partition}", "State=UP"])
    assert found.status is Status.WARNING
    assert "submission failed: Required partition not available" in found.summary
    ward.free()


@pytest.mark.parametrize("on_fail", ["tell", "drain"])
def test_a_node_that_fails_takes_no_jobs(fresh: Lab, tmp_path: Path, on_fail: str) -> None:
    """It is drained and given back, or kept to the end of its reservation."""
    ward = Ward(fresh, tmp_path / "archive", command=["/bin/false"], on_fail=on_fail)
    found = ward.until("test command failed")
    assert found.status is Status.CRITICAL
    assert "exit code 1" in found.summary
    for _ in range(4):
        ward.look()
    drained = "DRAIN" in fresh.node(NODE)["State"]
    assert (drained, len(ward.reservations())) == ((True, 0) if on_fail == "drain" else (False, 1))
    for left in ward.reservations():
        fresh.ask(["scontrol", "delete", f"ReservationName={left.name}"])
