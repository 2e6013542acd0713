"""What sentinel hears from Slurm and from services, and what it does with it."""

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from sentinel.alerting.settings import Route
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Node, Reservation
from sentinel.core.errors import CannotTell, ChannelError
from sentinel.core.model import Status
from sentinel.core.values import Duration
from sentinel.engine.external_events import MAX_ASKED_ALERTS
from sentinel.testing import START
from tests.engine.test_lives import Nodes
from tests.engine.worlds import Book, Says, Scene, play, world


class Planned:
    """A calendar that says what it was given, and is blind on None."""

    def __init__(self, *told: Reservation) -> None:
        self.told: Sequence[Reservation] | None = told

    def reservations(self) -> Sequence[Reservation]:
        if self.told is None:
            raise CannotTell("slurmctld does not answer")
        return self.told

    def nodes(self) -> Sequence[Node]:
        return [Node(name="n0", state="IDLE"), Node(name="n1", state="IDLE")]


NOW = START.wall // SECOND
ALL = Reservation(
    name="move", starts=NOW, ends=NOW + 3600, nodes=frozenset(["n0", "n1"]), flags=frozenset(["MAINT"])
)  # fmt: skip


def test_a_maintenance_in_slurm_silences_until_its_end() -> None:
    """Also while slurmctld no longer answers: what was heard stays."""
    disk, book, slurm = Says(Status.CRITICAL), Book(), Planned(ALL)
    a_world = world({"disk": disk}, {"book": book})
    a_world.calendar = slurm

    async def story(scene: Scene) -> None:
        await scene.engine.poll_external_events()
        slurm.told = None
        await scene.engine.run_check("disk")
        for seconds in (3599, 1):
            await scene.engine.deliver_due()
            assert book.reasons == []
            scene.clock.advance(seconds)
            await scene.engine.poll_external_events()
            await scene.engine.review_alerts()
        await scene.engine.deliver_due()

    play(story, a_world)
    assert book.reasons == ["firing"]


def test_a_maintenance_that_is_called_off_ends_at_once() -> None:
    """What fires is told in the same round; the message of an end names a silence's end."""
    disk, book, slurm = Says(Status.CRITICAL), Book(), Planned(ALL)
    a_world = world({"disk": disk}, {"book": book})
    a_world.calendar = slurm

    async def story(scene: Scene) -> None:
        await scene.engine.poll_external_events()
        await scene.engine.run_check("disk")
        slurm.told = ()
        scene.clock.advance(60)
        await scene.engine.poll_external_events()
        await scene.engine.deliver_due()
        assert book.reasons == ["firing"]
        slurm.told = (replace(ALL, name="again"),)
        await scene.engine.poll_external_events()
        disk.status = Status.OK
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()

    play(story, a_world)
    assert book.reasons == ["firing", "resolved"]
    assert "by Slurm: maintenance reservation again" in book.got[1].note


class Pager(Book):
    """A channel at whose service people acknowledge."""

    listens = True

    def __init__(self) -> None:
        super().__init__()
        self.acks: dict[str, str] = {}
        self.others: dict[str, str] = {}
        self.asked: list[str] = []
        self.deaf: Exception | None = None

    async def acknowledged(self, alerts: Sequence[str]) -> dict[str, str]:
        if self.deaf is not None:
            raise self.deaf
        self.asked += alerts
        return self.others | {alert: who for alert, who in self.acks.items() if alert in alerts}


def test_an_acknowledgement_given_elsewhere_counts_here(caplog: pytest.LogCaptureFixture) -> None:
    """No repeats any more, and the others hear who has it; nothing is asked about it again."""
    caplog.set_level("INFO", "sentinel")
    disk, pager, book = Says(Status.CRITICAL), Pager(), Book()
    a_world = world({"disk": disk}, {"pager": pager, "book": book})
    route = Route(to=["pager", "book"], repeat=Duration(3600))
    a_world.plan = replace(a_world.plan, routes=[route])

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.poll_external_events()
        await scene.engine.deliver_due()
        [alert] = [a.id for a in scene.store.read_alerts() if a.firing]
        pager.acks = {alert: "Ann at PagerDuty"}
        pager.others = {"none-of-ours": "Bob"}
        for _ in range(3):
            scene.clock.advance(7200)
            await scene.engine.poll_external_events()
            await scene.engine.review_alerts()
            await scene.engine.deliver_due()
        assert pager.asked == [alert, alert]

    play(story, a_world)
    assert book.reasons == ["firing", "ack"]
    assert book.got[1].note == "acknowledged by Ann at PagerDuty"
    found = [r.fields for r in caplog.records if hasattr(r, "fields") and "how" in r.fields]
    assert [(f["event"], f["who"], f["how"]) for f in found] == [
        ("ack", "Ann at PagerDuty", "pager")
    ]


def test_a_service_that_does_not_answer_disturbs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged when it begins, and asked again."""
    disk, pager = Says(Status.CRITICAL), Pager()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        pager.deaf = ChannelError("https://api.pagerduty.com answered 503")
        for _ in range(3):
            await scene.engine.poll_external_events()
        pager.deaf = None
        await scene.engine.poll_external_events()

    play(story, world({"disk": disk}, {"pager": pager}))
    assert len([r for r in caplog.records if "acknowledgements" in r.getMessage()]) == 1
    assert len(pager.asked) == 1


def test_very_many_alerts_have_their_turns() -> None:
    """A round asks about so many at most; all are asked about in the end."""
    nodes, pager = (
        Nodes({f"n{i}": Status.CRITICAL for i in range(2 * MAX_ASKED_ALERTS + 1)}),
        Pager(),
    )

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("nodes")
        await scene.engine.poll_external_events()
        assert len(pager.asked) == MAX_ASKED_ALERTS
        for _ in range(3):
            await scene.engine.poll_external_events()

    play(story, world({"nodes": nodes}, {"pager": pager}))
    assert len(set(pager.asked)) == 2 * MAX_ASKED_ALERTS + 1


def test_a_channel_that_hangs_is_left_alone_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round has its own end, whoever is asked."""
    monkeypatch.setattr("sentinel.engine.engine.HEARING_TIMEOUT_S", 0.05)
    disk, pager = Says(Status.CRITICAL), Pager()

    async def never(alerts: Sequence[str]) -> dict[str, str]:
        await asyncio.sleep(3600)
        return {}

    pager.acknowledged = never  # type: ignore[method-assign]

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.poll_external_events()

    play(story, world({"disk": disk}, {"pager": pager}))
