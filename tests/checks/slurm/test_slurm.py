"""Rules of the slurm check: that slurmctld does not answer is the finding, not a doubt."""

import shutil
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.slurm import LatencyLimits, SlurmCheck
from sentinel.clock import SystemClock
from sentinel.core.cluster import Controller
from sentinel.core.errors import CannotAsk, CannotTell, Invalid
from sentinel.core.model import Status
from sentinel.core.values import Duration
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.control import FIRST_HTTP, parse_release
from sentinel.slurm.controllers import ControllerProbe
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.testing import FixedSlurm, context
from tests.lab.cluster import Lab

WELL = Controller(primary="ctl1", primary_up=True, latency=0.01, cluster="c", version="22.05.8")
MUNGE = 'scontrol: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2"'


def look(controller: Controller, **settings: Any) -> list[tuple[str, Status, str]]:
    report = SlurmCheck(**settings).run(context(FixedSlurm(controller=controller)))
    return [(f.subject, f.status, f.summary) for f in report.findings]


@pytest.mark.parametrize(
    ("controller", "findings"),
    [
        pytest.param(WELL, [("ctl1", Status.OK, "slurmctld answers in 10ms")], id="up"),
        pytest.param(
            replace(WELL, latency=2.0),
            [("ctl1", Status.WARNING, "slurmctld on ctl1 took 2s to answer (warning from 2s)")],
            id="slow from the limit on",
        ),
        pytest.param(
            replace(WELL, latency=1.99),
            [("ctl1", Status.OK, "slurmctld answers in 1s")],
            id="and not before",
        ),
        pytest.param(
            replace(WELL, latency=10.0),
            [("ctl1", Status.CRITICAL, "slurmctld on ctl1 took 10s to answer (critical from 10s)")],
            id="very slow",
        ),
        pytest.param(
            replace(WELL, primary_up=False),
            [("ctl1", Status.CRITICAL, "slurmctld does not answer")],
            id="down",
        ),
        pytest.param(
            replace(WELL, backups=(("ctl2", True), ("ctl3", False))),
            [
                ("ctl1", Status.OK, "slurmctld answers in 10ms"),
                ("ctl2", Status.OK, "the backup slurmctld answers"),
                ("ctl3", Status.WARNING, "the backup slurmctld does not answer"),
            ],
            id="a backup that is down is a warning",
        ),
        pytest.param(
            replace(WELL, primary_up=False, backups=(("ctl2", True),)),
            [
                (
                    "ctl1",
                    Status.WARNING,
                    "slurmctld does not answer; the backup ctl2 answers in its place, jobs go on",
                ),
                ("ctl2", Status.OK, "the backup slurmctld answers"),
            ],
            id="a backup has taken over",
        ),
        pytest.param(
            replace(WELL, primary_up=False, backups=(("ctl2", False),)),
            [
                ("ctl1", Status.CRITICAL, "slurmctld does not answer"),
                ("ctl2", Status.WARNING, "the backup slurmctld does not answer"),
            ],
            id="nobody answers",
        ),
        pytest.param(
            replace(WELL, primary_up=False, trouble=MUNGE),
            [
                (
                    "ctl1",
                    Status.CRITICAL,
                    f"slurmctld cannot be asked, munge on this host fails: {MUNGE}",
                )
            ],
            id="munge is told as munge",
        ),
        pytest.param(
            replace(WELL, primary_up=False, backups=(("ctl2", True),), trouble=MUNGE),
            [
                (
                    "ctl1",
                    Status.WARNING,
                    f"slurmctld does not answer; the backup ctl2 answers in its place, jobs go on: {MUNGE}",
                ),
                ("ctl2", Status.OK, "the backup slurmctld answers"),
            ],
            id="munge is well where a backup believes it",
        ),
    ],
)
def test_each_controller_is_a_subject_of_its_own(
    controller: Controller, findings: list[tuple[str, Status, str]]
) -> None:
    """Critical only when nobody answers, or far too slowly."""
    assert look(controller) == findings


class Failing(FixedSlurm):
    """A Slurm whose controller question fails with this."""

    def __init__(self, error: CannotTell) -> None:
        super().__init__()
        self._error = error

    def controller(self) -> Controller:
        raise self._error


HANG = "scontrol: no answer within 20s, it was ended (slurmctld, munge or the network hangs)"


def test_no_answer_at_all_is_critical_too() -> None:
    """The alert stays about the controller that answered last."""
    failing = Failing(CannotTell(HANG))
    report = SlurmCheck().run(context(failing, memory={"primary": "ctl1"}))
    (finding,) = report.findings
    assert (finding.subject, finding.status) == ("ctl1", Status.CRITICAL)
    assert finding.summary == f"slurmctld does not answer: {HANG}"
    assert report.memory is None
    assert SlurmCheck().run(context(failing)).findings[0].subject == "slurmctld"


def test_where_nobody_can_ask_nothing_is_said_about_slurmctld() -> None:
    """No client commands on this host: cannot tell, whatever the words."""
    with pytest.raises(CannotAsk, match="no scontrol here"):
        SlurmCheck().run(context(Failing(CannotAsk("no scontrol here"))))


def test_a_primary_that_nobody_names_is_the_last_one_known() -> None:
    """While munge hangs scontrol says nothing at all."""
    nobody = FixedSlurm(controller=Controller(primary="", primary_up=False, trouble=MUNGE))
    report = SlurmCheck().run(context(nobody, memory={"primary": "ctl1"}))
    assert (report.findings[0].subject, report.memory) == ("ctl1", None)


def test_the_primary_is_remembered_and_its_latency_kept() -> None:
    """As memory and as a sample."""
    report = SlurmCheck().run(context(FixedSlurm(controller=WELL)))
    assert report.memory == {"primary": "ctl1"}
    assert [(s.subject, s.name, s.value) for s in report.samples] == [
        ("ctl1", "latency_seconds", 0.01)
    ]


def test_limits_can_be_set_and_have_to_be_in_order() -> None:
    """The warning comes first."""
    slow = replace(WELL, latency=5.0)
    assert look(slow, warn=LatencyLimits(), crit=LatencyLimits())[0][1] is Status.OK
    assert look(slow, crit=LatencyLimits(latency=Duration(5)))[0][1] is Status.CRITICAL
    with pytest.raises(Invalid, match="warns at 20s but is critical at 10s already") as error:
        SlurmCheck(warn=LatencyLimits(latency=Duration(20)))
    assert error.value.path == ("warn", "latency")


def port(lab: Lab) -> SlurmSnapshot:
    client, clock = SlurmClient(environ=lab.env, limit=5.0), SystemClock()
    probe = ControllerProbe(client, clock, readyz="http")
    return SlurmSnapshot(client, clock, users=None, max_age=0.0, controllers=probe)


def itself(slurm: SlurmSnapshot) -> str:
    """What a slurmctld that is well adds about itself: from 25.11 on it needs no munge for that."""
    http = parse_release(slurm.config().version) >= FIRST_HTTP and shutil.which("curl")
    said = "; slurmctld itself says that it is ready for requests (GET /readyz)"
    return said if http else ""


def asked(lab: Lab, slurm: SlurmSnapshot | None = None) -> list[tuple[str, Status, str]]:
    report = SlurmCheck().run(context(slurm or port(lab)))  # type: ignore[arg-type]
    return [(f.subject, f.status, f.summary) for f in report.findings]


def test_a_real_controller_that_is_killed_is_critical_until_it_is_back(fresh: Lab) -> None:
    """The subject is its host, before, during and after."""
    assert [f[:2] for f in asked(fresh)] == [("controller", Status.OK)]
    fresh.kill_controller()
    assert asked(fresh) == [("controller", Status.CRITICAL, "slurmctld does not answer")]
    fresh.start_controller()
    assert [f[:2] for f in asked(fresh)] == [("controller", Status.OK)]


def test_a_real_controller_that_hangs_is_critical(fresh: Lab) -> None:
    """Stopped, it takes connections and says nothing."""
    fresh.stop_controller()
    ((_, status, summary),) = asked(fresh)
    assert status is Status.CRITICAL
    assert summary.startswith("does not answer: scontrol: no answer within 5s")


def test_a_real_munged_that_is_killed_is_told_as_munge(fresh: Lab) -> None:
    """slurmctld is well: looking there would be looking in the wrong place."""
    slurm = port(fresh)
    asked(fresh, slurm)
    fresh.munge.kill()
    ((subject, status, summary),) = asked(fresh, slurm)
    assert (subject, status) == ("controller", Status.CRITICAL)
    assert summary.startswith("slurmctld cannot be asked, munge on this host fails: ")
    assert "Munge encode failed" in summary
    assert summary.endswith(itself(slurm))
    assert ("GET /readyz" in summary) == bool(itself(slurm))
    fresh.munge.start()
    assert [f[:2] for f in asked(fresh)] == [("controller", Status.OK)]


def test_a_real_munged_that_hangs_is_told_as_munge(fresh: Lab) -> None:
    """Stopped, it makes scontrol wait without a word; munge itself is asked then."""
    slurm = port(fresh)
    assert [f[:2] for f in asked(fresh, slurm)] == [("controller", Status.OK)]
    fresh.munge.stop()
    because = "munge: no answer within 3s, munged hangs"
    assert asked(fresh, slurm) == [
        (
            "controller",
            Status.CRITICAL,
            f"slurmctld cannot be asked, munge on this host fails: {because}{itself(slurm)}",
        )
    ]
    fresh.munge.cont()
    assert [f[:2] for f in asked(fresh, slurm)] == [("controller", Status.OK)]


def test_munge_is_not_blamed_for_a_controller_that_hangs(fresh: Lab) -> None:
    """It answers, so the silence is slurmctld's or the network's."""
    slurm = port(fresh)
    asked(fresh, slurm)
    fresh.stop_controller()
    ((_, status, summary),) = asked(fresh, slurm)
    assert status is Status.CRITICAL
    assert summary.startswith("does not answer: scontrol: no answer within 5s")
