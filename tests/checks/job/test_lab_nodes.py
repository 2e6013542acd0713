"""What a real Slurm does to the nodes of a running job, and the messages that its owner gets. sentinel's
clock is moved on by hand, so that three minutes take none."""

import re
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.job import JobCheck
from sentinel.clock import SystemClock
from sentinel.core.model import Receipt
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.testing import ManualClock
from tests.engine.worlds import Book, Scene, play, world
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.lab

LOOK_S = 100.0
"""Seconds between two looks: after two of them a drain has not lasted three minutes, after three it has, and
the engine never waits for a second look, which it would by the real clock."""

XID = "GPU has fallen off the bus (Xid 79)"


class Mail(Book):
    """A channel that tells each user of their own jobs."""

    groups = True
    personal = True

    async def send(self, notifications: Any) -> Receipt:
        return await super().send(notifications)


class Night:
    """An engine that watches the lab's trainings, and what their owner was told."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.mail, self.clock = lab, Mail(), ManualClock(SystemClock().now())
        check = JobCheck(match=re.compile("train.*"), users=["*"], node_warnings=True)
        self.runtime = world({"jobs": check}, {"mail": self.mail})
        client = SlurmClient(environ=lab.env)
        slurm = SlurmSnapshot(client, self.clock, users=None, max_age=1.0)
        plan = replace(self.runtime.plan, personal=["mail"])
        self.runtime = replace(self.runtime, slurm=slurm, plan=plan)

    def play(self, story: Callable[["Night", Scene], Awaitable[None]]) -> None:
        play(lambda scene: story(self, scene), self.runtime, clock=self.clock)

    async def look(self, scene: Scene, after: float = LOOK_S) -> list[str]:
        """What the owner is told by a look so many seconds later."""
        before = len(self.mail.got)
        self.clock.advance(after)
        await scene.engine.run_check("jobs")
        await scene.engine.deliver_due()
        return [f"{n.reason}: {n.summary}" for n in self.mail.got[before:]]

    def change_node(self, *words: str) -> None:
        self.lab.ask(["scontrol", "update", *words])


@pytest.fixture
def night(fresh: Lab) -> Iterator[Night]:
    yield Night(fresh)
    fresh.run(["scontrol", "delete", "ReservationName=winter"])


def start_training(lab: Lab, nodes: int = 2, **options: object) -> str:
    """A job on the first nodes, with a limit of ten hours."""
    job = lab.sbatch("exec sleep 900", name="train", nodes=nodes, time="600", **options)
    lab.wait_state(job, "RUNNING")
    return job


def test_a_reboot_asap_lets_the_job_finish(night: Night) -> None:
    """Slurm waits for the job, so nobody is told; the node takes no other."""
    job = start_training(night.lab)

    async def story(night: Night, scene: Scene) -> None:
        assert await night.look(scene) == []
        night.lab.ask(["scontrol", "reboot", "ASAP", "node-0"])
        night.lab.wait_node("node-0", "DRAIN")  # the reboot is a word here, and `@` before 21.08
        assert [await night.look(scene, 300) for _ in range(3)] == [[], [], []]
        assert night.lab.states(job) == ["RUNNING"]
        night.lab.ask(["scontrol", "cancel_reboot", "node-0"])

    night.play(story)


def test_a_drain_for_the_hardware_is_told_once_and_its_end_once(night: Night) -> None:
    """One that is undone within three minutes is told to nobody, and the wait begins anew."""
    start_training(night.lab)
    drain = ("NodeName=node-[0-1]", "State=DRAIN", f"Reason={XID}")

    async def story(night: Night, scene: Scene) -> None:
        assert await night.look(scene) == []
        for _ in range(3):
            night.change_node(*drain)
            assert [await night.look(scene) for _ in range(2)] == [[], []]
            night.change_node("NodeName=node-[0-1]", "State=RESUME")
            assert await night.look(scene) == []
        night.change_node(*drain)
        told = [await night.look(scene) for _ in range(6)]
        assert [len(one) for one in told] == [0, 0, 1, 0, 0, 0]
        (said,) = told[2]
        assert said.startswith("firing: node-[0-1] of job ")
        assert said.endswith(f" are drained for a hardware fault ({XID})")
        night.change_node("NodeName=node-[0-1]", "State=RESUME")
        assert await night.look(scene) == [
            "resolved: no node of its running jobs is at stake any more"
        ]
        assert await night.look(scene) == []

    night.play(story)


def reserve(lab: Lab, verb: str, starts_in_s: int, **more: str) -> None:
    starts = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + starts_in_s))
    given = {"ReservationName": "winter", "StartTime": starts, **more}
    lab.ask(["scontrol", verb, "reservation", *(f"{k}={v}" for k, v in given.items())])


NEW = {"Duration": "60", "Users": "root", "Nodes": "node-0", "Flags": "MAINT,IGNORE_JOBS"}


def test_a_maintenance_is_told_at_once_and_a_moved_one_is_no_second_message(night: Night) -> None:
    """It begins in two hours, then in three. Moved behind the job's time limit it is over."""
    job = start_training(night.lab, user=night.lab.user("alice"))

    async def story(night: Night, scene: Scene) -> None:
        assert await night.look(scene) == []
        reserve(night.lab, "create", 7200, **NEW)
        (said,) = await night.look(scene)
        assert said.startswith(f"firing: node-0 of job {job} is taken by maintenance (winter) ")
        assert re.search(r", in 1h 5\dm", said), said
        assert "; its time limit comes " in said
        reserve(night.lab, "update", 10800)
        assert await night.look(scene) == []
        (alert,) = await scene.engine.alerts()
        assert re.search(r", in 2h 5\dm", alert.summary), alert.summary
        reserve(night.lab, "update", 20 * 3600)
        (said,) = await night.look(scene)
        assert said.startswith("resolved: ")

    night.play(story)


def test_what_becomes_of_the_job_when_its_reservations_begin(night: Night) -> None:
    """Slurm ends no job of others for that: the warning is of what people do then."""
    job = start_training(night.lab, user=night.lab.user("alice"))
    reserve(night.lab, "create", 3, **NEW)

    def active() -> bool:
        return "State=ACTIVE" in night.lab.ask(["scontrol", "show", "reservation", "winter"])

    wait_until(active, "the reservation", 60)
    assert night.lab.states(job) == ["RUNNING"]
