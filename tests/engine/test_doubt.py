"""An answer that leaves in doubt whether a message was taken loses no alert, and repeats none for
ever."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from sentinel.alerting.settings import Route
from sentinel.core.model import Notification, Receipt, Status
from sentinel.core.settings import ChannelCommon
from sentinel.engine.engine import RuntimeConfig
from tests.engine.worlds import Book, Grouped, Says, Scene, play, world

HOUR = 3600.0


class Doubtful(Book):
    """A channel whose answers say nothing, until `sure`."""

    sure = False

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        receipt = await super().send(notifications)
        return receipt if self.sure else Receipt(receipt.text, doubt="200 hm")


class DoubtfulGroup(Doubtful, Grouped):
    """The same, with many alerts in a message."""


class Archive(Book):
    """A channel that nobody reads at night."""

    reaches = False


def routed(disk: Says, to: list[str], **channels: Book) -> RuntimeConfig:
    """A world whose alerts go to these channels only."""
    a_world = world({"disk": disk}, dict(channels))
    a_world.plan = replace(a_world.plan, routes=[Route(to=to)])
    return a_world


async def hours(scene: Scene, count: int = 1) -> None:
    """Deliver, and again after each hour."""
    await scene.engine.deliver_due()
    for _ in range(count):
        scene.clock.advance(HOUR)
        await scene.engine.deliver_due()


def test_an_alert_goes_by_the_other_channels_too_once() -> None:
    """Not to an archive. The copy says why; the end goes where the beginning went."""
    disk, chat, mail, sms, book = Says(Status.CRITICAL), Doubtful(), Book(), Book(), Archive()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await hours(scene, 3)
        disk.status = Status.OK
        await scene.engine.run_check("disk")
        await hours(scene, 3)
        assert scene.store.read_outbox() == []

    play(story, routed(disk, ["chat"], chat=chat, mail=mail, sms=sms, book=book))
    assert chat.reasons == mail.reasons == sms.reasons == ["firing", "resolved"]
    assert book.reasons == []
    assert "not known whether chat accepted it" in mail.got[0].note


def test_a_sure_answer_goes_nowhere_else() -> None:
    """The control."""
    chat, mail = Doubtful(), Book()
    chat.sure = True

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await hours(scene, 3)

    play(story, routed(Says(Status.CRITICAL), ["chat"], chat=chat, mail=mail))
    assert (chat.reasons, mail.reasons) == (["firing"], [])


def test_who_has_the_alert_anyway_gets_no_copy() -> None:
    """The route names both."""
    chat, mail = Doubtful(), Book()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await hours(scene, 3)

    play(story, routed(Says(Status.CRITICAL), ["chat", "mail"], chat=chat, mail=mail))
    assert chat.reasons == mail.reasons == ["firing"]


def test_the_fallback_comes_first() -> None:
    """Nobody else is disturbed."""
    chat, mail, sms = Doubtful(), Book(), Book()
    a_world = routed(Says(Status.CRITICAL), ["chat"], chat=chat, mail=mail, sms=sms)
    a_world.common = {"chat": ChannelCommon(kind="slack", fallback="sms")}

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await hours(scene, 3)

    play(story, a_world)
    assert (chat.reasons, mail.reasons, sms.reasons) == (["firing"], [], ["firing"])


@pytest.mark.parametrize("channel", [Doubtful, DoubtfulGroup])
def test_the_only_channel_gets_it_twice_more(channel: type[Doubtful]) -> None:
    """Then it counts as sent. What comes later does not wait for it."""
    chat = channel()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        assert len(scene.store.read_outbox()) == 1
        await hours(scene, 40)
        assert [r for r in scene.store.read_outbox() if r.notification.check == "disk"] == []

    play(story, routed(Says(Status.CRITICAL), ["chat"], chat=chat))
    assert [r for r in chat.reasons if r != "repeat"] == ["firing"] * 3


def test_two_doubtful_channels_do_not_send_to_each_other_for_ever() -> None:
    """Each gets it, and one of them twice more."""
    one, two = Doubtful(), Doubtful()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await hours(scene, 20)
        assert [r for r in scene.store.read_outbox() if r.notification.check == "disk"] == []

    play(story, routed(Says(Status.CRITICAL), ["one"], one=one, two=two))
    assert (one.reasons, two.reasons) == (["firing"], ["firing"] * 3)


def test_a_doubtful_fallback_makes_no_loop() -> None:
    """It was given the message once."""
    chat, sms = Doubtful(), Doubtful()
    a_world = routed(Says(Status.CRITICAL), ["chat"], chat=chat, sms=sms)
    a_world.common = {"chat": ChannelCommon(kind="slack", fallback="sms")}

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await hours(scene, 20)
        assert [r for r in scene.store.read_outbox() if r.notification.check == "disk"] == []

    play(story, a_world)
    assert (chat.reasons, sms.reasons) == (["firing"], ["firing"] * 3)


def test_an_answer_that_is_sure_later_ends_the_waiting() -> None:
    """The second attempt is taken, and there is no third. Its end follows."""
    disk, chat = Says(Status.CRITICAL), Doubtful()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        chat.sure = True
        await hours(scene, 3)
        disk.status = Status.OK
        await scene.engine.run_check("disk")
        await hours(scene)
        assert scene.store.read_outbox() == []

    play(story, routed(disk, ["chat"], chat=chat))
    assert chat.reasons == ["firing", "firing", "resolved"]


def test_the_doubt_is_told() -> None:
    """By the other channel, as a trouble of the first."""
    chat, mail = Doubtful(), Book()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        await scene.engine.check_self()
        await scene.engine.deliver_due()

    play(story, world({"disk": Says(Status.CRITICAL)}, {"chat": chat, "mail": mail}))
    assert any("200 hm" in n.summary and n.subject == "channel chat" for n in mail.got)


def test_who_delivers_by_hand_makes_no_loop() -> None:
    """`sentinel deliver` ends all waits, each time."""
    chat = Doubtful()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        for _ in range(9):
            await scene.engine.deliver_due()
            rows = scene.store.read_outbox()
            scene.store.failed([replace(row, wait=0.0) for row in rows])
            scene.clock.advance(1)

    play(story, routed(Says(Status.CRITICAL), ["chat"], chat=chat))
    assert chat.reasons == ["firing"] * 3
