"""What a storm of restarts asks for: a hold of what waits, where the settings say so."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.actions.runner import may_request_actions
from sentinel.checks.job.memory import Memory, dump_memory
from sentinel.core.actions import ActionOutcome
from sentinel.core.cluster import Job
from sentinel.core.errors import Invalid
from sentinel.core.model import Report
from sentinel.core.settings import CheckCommon, CheckConfig
from sentinel.testing import FixedSlurm, ManualClock, context
from tests.actions.test_jobs import ME, Desk
from tests.checks.job.making import NOW, check, job, pending
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until

HOLD = {"restarts": "2 in 1h", "on_storm": ["hold"]}
TRAIN = pending("11_[4-9%1]", elements=6)


class Storm:
    """A job that is started anew at each `again`, while TRAIN waits behind it."""

    def __init__(self, *waiting: Job, **settings: Any) -> None:
        self.check, self.clock = check(**{**HOLD, **settings}), ManualClock()
        self.memory: dict[str, Any] = {}
        self.starts, self.waiting = 0, waiting or (TRAIN,)

    def look(self) -> Report:
        jobs = (job(started=NOW + self.starts), *self.waiting)
        now = self.clock.advance(60)
        report = self.check.run(context(FixedSlurm(jobs=jobs), now, memory=self.memory))
        self.memory = dict(report.memory or {})
        return report

    def again(self) -> Report:
        self.starts += 1
        return self.look()


def test_a_storm_holds_what_waits_once_for_each_restart() -> None:
    """The array as a whole; what a person releases is let go until the next death."""
    storm = Storm()
    storm.look()
    assert storm.again().requests == ()
    (asked,) = storm.again().requests
    assert (asked.action, asked.target, asked.subject) == ("hold", "11", "train")
    assert asked.reason == "restart storm: restarted 2 times within 1h"
    assert asked.params["user"] == "alice"
    assert storm.look().requests == ()
    assert [r.target for r in storm.again().requests] == ["11"]


def test_what_is_held_already_is_not_asked_for() -> None:
    """Nothing would change."""
    storm = Storm(replace(TRAIN, reason="JobHeldUser"))
    assert [storm.again().requests for _ in range(4)] == [()] * 4


def test_without_consent_a_storm_is_only_told() -> None:
    """Off by default, and then no log of actions is kept for it."""
    storm = Storm(on_storm=[])
    assert [storm.again().requests for _ in range(4)] == [()] * 4
    assert (storm.check.grants(), check(**HOLD).grants()) == ({}, {"hold": None})
    configs = [
        CheckConfig(name="t", common=CheckCommon(kind="job"), plugin=plugin)
        for plugin in (storm.check, check(**HOLD))
    ]
    assert [may_request_actions(config) for config in configs] == [False, True]


def test_a_storm_needs_a_number() -> None:
    """Else it would never come."""
    with pytest.raises(Invalid, match="say how many"):
        check(on_storm=["hold"])


def test_an_array_in_a_storm_is_held_and_its_running_element_goes_on(
    fresh: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the guard, on a real queue."""
    monkeypatch.setenv("SLURM_CONF", fresh.env["SLURM_CONF"])
    desk = Desk(fresh, tmp_path)
    array = fresh.sbatch("sleep 600", name="train", array="0-4%1")
    wait_until(lambda: "RUNNING" in fresh.states(array), "the first element")
    now = desk.clock.now()
    rows = desk.hands.jobs(array)  # type: ignore[attr-defined]
    ctx = context(FixedSlurm(jobs=rows), now, memory=dump_memory(Memory(restarts=(now, now))))
    (request,) = check(users=["root"], **HOLD).run(ctx).requests
    assert desk.actor().execute_request(request, ME).outcome is ActionOutcome.DONE
    told = fresh.ask(["squeue", "-h", "-r", "-j", array, "-o", "%T %r"]).splitlines()
    assert [row for row in sorted(told) if "PENDING" in row] == ["PENDING JobHeldUser"] * 4
    assert fresh.states(array).count("RUNNING") == 1
