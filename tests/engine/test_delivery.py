"""What delivery remembers of earlier messages, and whom a fallback has to tell the end."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from sentinel.alerting.settings import Match, Route
from sentinel.alerting.silences import Silence
from sentinel.core.clock import SECOND, shift_instant
from sentinel.core.errors import ChannelError
from sentinel.core.model import Batch, Notification, Receipt, Report, Sample, Status
from sentinel.core.ports import Context
from sentinel.core.settings import ChannelCommon
from sentinel.core.values import Duration
from sentinel.engine.engine import RuntimeConfig
from sentinel.plugin import Channel
from sentinel.store.memory import MemoryStore
from sentinel.testing import ManualClock
from tests.channels.test_email import email
from tests.engine.worlds import Book, Grouped, Says, Scene, play, world
from tests.lab.smtp import SmtpServer

DOWN = ChannelError("connection refused")
NEVER = ChannelError("550 no such user", permanent=True, reason="refused")


def capped(names: list[str], mail: Channel, cap: int) -> RuntimeConfig:
    checks: dict[str, object] = {name: Says(Status.CRITICAL) for name in names}
    a_world = world(checks, {"mail": mail})
    a_world.common = {"mail": ChannelCommon(kind="email", per_hour=cap)}
    return a_world


def test_a_cap_outlasts_a_restart() -> None:
    """A message counts once, however many alerts it held; an hour later there is room again."""
    mail, store, clock = Grouped(), MemoryStore(), ManualClock()
    a_world = capped(["a", "b", "c"], mail, 2)

    async def before(scene: Scene) -> None:
        for name in ("a", "b"):
            await scene.engine.run_check(name)
        await scene.engine.deliver_due()

    async def after(scene: Scene) -> None:
        scene.clock.advance(600)
        await scene.engine.run_check("c")
        assert await scene.engine.deliver_due() == 3000.0
        scene.clock.advance(3000)
        await scene.engine.deliver_due()

    play(before, a_world, store, clock)
    assert mail.sizes == [1, 1]
    play(after, a_world, store, clock)
    assert mail.sizes == [1, 1, 1]


def test_a_message_of_many_alerts_is_one_of_the_cap() -> None:
    """After a restart as before it."""
    mail, store, clock = Grouped(), MemoryStore(), ManualClock()
    a_world = capped(["a", "b", "c", "d"], mail, 2)
    a_world.plan = replace(a_world.plan, routes=[Route(to=["mail"], group_by=[])])

    async def before(scene: Scene) -> None:
        for name in ("a", "b", "c"):
            await scene.engine.run_check(name)
        await scene.engine.deliver_due()

    async def after(scene: Scene) -> None:
        await scene.engine.run_check("d")
        assert await scene.engine.deliver_due() is None

    play(before, a_world, store, clock)
    play(after, a_world, store, clock)
    assert mail.sizes == [3, 1]


class SeveralAtOnce(Grouped):
    """A channel whose call may hold three messages."""

    groups = False
    messages_at_once = 3


@pytest.mark.parametrize(("cap", "sizes"), [(0, [3, 3, 1]), (9, [1] * 7)])
def test_messages_share_a_call_where_no_cap_counts_them(cap: int, sizes: list[int]) -> None:
    """In their order, and none is lost if the first call fails."""
    names = [f"check{n}" for n in range(7)]
    book = SeveralAtOnce()

    async def story(scene: Scene) -> None:
        for name in names:
            await scene.engine.run_check(name)
        book.error = DOWN
        await scene.engine.deliver_due()
        assert book.got == []
        book.error, book.sizes[:] = None, []
        scene.clock.advance(600)
        await scene.engine.deliver_due()
        assert [n.check for n in book.got] == names
        assert book.sizes == sizes

    play(story, capped(names, book, cap))


def spaced(mail: Channel, **checks: Says) -> RuntimeConfig:
    a_world = world(dict[str, object](checks), {"mail": mail})
    route = Route(to=["mail"], group_by=["kind"], group_interval=Duration(7200))
    a_world.plan = replace(a_world.plan, routes=[route])
    return a_world


def test_a_group_interval_outlasts_a_restart() -> None:
    """What comes within it is one message at its end."""
    mail, store, clock = Grouped(), MemoryStore(), ManualClock()
    a_world = spaced(
        mail, a=Says(Status.CRITICAL), b=Says(Status.CRITICAL), c=Says(Status.CRITICAL)
    )

    async def before(scene: Scene) -> None:
        await scene.engine.run_check("a")
        await scene.engine.deliver_due()

    async def after(scene: Scene) -> None:
        scene.clock.advance(5000)
        for name in ("b", "c"):
            await scene.engine.run_check(name)
        assert await scene.engine.deliver_due() == 2200.0
        scene.clock.advance(2200)
        await scene.engine.deliver_due()

    play(before, a_world, store, clock)
    play(after, a_world, store, clock)
    assert mail.sizes == [1, 2]


def test_a_group_interval_spaces_the_messages_of_one_process() -> None:
    """The first at once, the others together when it is over, then again."""
    disks = {name: Says(Status.CRITICAL) for name in "abcd"}
    mail = Grouped()

    async def story(scene: Scene) -> None:
        for name, wait in (("a", 1), ("b", 1), ("c", 7198), ("d", 7200)):
            await scene.engine.run_check(name)
            await scene.engine.deliver_due()
            scene.clock.advance(wait)
            await scene.engine.deliver_due()

    play(story, spaced(mail, **disks))
    assert mail.sizes == [1, 2, 1]


class Picky(Book):
    """Refuses messages of some reasons for good."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = refused

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        if any(n.reason in self.refused for n in notifications):
            raise NEVER
        return await super().send(notifications)


def test_an_end_is_kept_back_when_its_beginning_is_refused_just_before_it() -> None:
    """Both wait together, as after an outage, and are tried in one go."""
    disk, mail = Says(Status.CRITICAL), Picky("firing")

    async def story(scene: Scene) -> None:
        for status in (Status.CRITICAL, Status.OK):
            disk.status = status
            await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        assert mail.reasons == []
        mail.refused = ()
        scene.clock.advance(3600)
        await scene.engine.deliver_due()

    play(story, world({"disk": disk}, {"mail": mail}))
    assert mail.reasons == ["firing", "resolved"]


def test_news_that_is_taken_lets_the_end_follow() -> None:
    """The beginning was refused, but who heard that it got worse knows of the trouble."""
    disk, mail = Says(Status.WARNING), Picky("firing")

    async def story(scene: Scene) -> None:
        for status in (Status.WARNING, Status.CRITICAL, Status.OK):
            disk.status = status
            await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        assert scene.store.read_outbox() == []

    play(story, world({"disk": disk}, {"mail": mail}))
    assert mail.reasons == ["worse", "resolved"]


def test_what_is_overtaken_by_the_last_of_several_is_dropped() -> None:
    """Refused in their turn; the beginning is tried again with its end, the news between them
    is not due, and must not come after it."""
    disk, mail = Says(Status.WARNING), Picky("firing", "worse")

    async def story(scene: Scene) -> None:
        for status in (Status.WARNING, Status.CRITICAL):
            disk.status = status
            await scene.engine.run_check("disk")
            await scene.engine.deliver_due()
            scene.clock.advance(1)
        mail.refused, disk.status = (), Status.OK
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        assert scene.store.read_outbox() == []

    play(story, world({"disk": disk}, {"mail": mail}))
    assert mail.reasons == ["firing", "resolved"]


def test_an_end_follows_its_beginning_before_the_next_trouble() -> None:
    """All three were refused, or waited for what was."""
    disk, mail = Says(Status.CRITICAL), Picky("firing")

    async def story(scene: Scene) -> None:
        for status in (Status.CRITICAL, Status.OK, Status.CRITICAL):
            disk.status = status
            await scene.engine.run_check("disk")
            await scene.engine.deliver_due()
            scene.clock.advance(1)
        mail.refused = ()
        scene.clock.advance(3600)
        await scene.engine.deliver_due()

    play(story, world({"disk": disk}, {"mail": mail}))
    assert mail.reasons == ["firing", "resolved", "firing"]


def test_a_new_trouble_that_is_taken_overtakes_all_of_the_former() -> None:
    """The end that waited for its refused beginning would be taken for the end of this one."""
    disk, mail = Says(Status.CRITICAL), Picky("firing")

    async def story(scene: Scene) -> None:
        for status in (Status.CRITICAL, Status.OK):
            disk.status = status
            await scene.engine.run_check("disk")
            await scene.engine.deliver_due()
            scene.clock.advance(1)
        mail.refused, disk.status = (), Status.CRITICAL
        await scene.engine.run_check("disk")
        for _ in range(3):
            await scene.engine.deliver_due()
            scene.clock.advance(3600)
        assert scene.store.read_outbox() == []

    play(story, world({"disk": disk}, {"mail": mail}))
    assert mail.reasons == ["firing"]


def stood_in(mail: Book, sms: Book, disk: Says) -> RuntimeConfig:
    a_world = world({"disk": disk}, {"mail": mail, "sms": sms})
    a_world.plan = replace(a_world.plan, routes=[Route(to=["mail"])])
    a_world.common = {"mail": ChannelCommon(kind="email", fallback="sms")}
    return a_world


def test_who_stood_in_for_a_beginning_tells_the_end_too() -> None:
    """Although the channel works again: it never told that there was a trouble."""
    disk, mail, sms = Says(Status.CRITICAL), Book(), Book()
    mail.error = NEVER

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        mail.error, disk.status = None, Status.OK
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        assert scene.store.read_outbox() == []

    play(story, stood_in(mail, sms, disk))
    assert (mail.reasons, sms.reasons) == ([], ["firing", "resolved"])


def test_an_end_goes_both_ways_when_both_know_of_the_trouble() -> None:
    """The fallback told that it fires, the channel itself that it got worse; once each."""
    disk, mail, sms = Says(Status.WARNING), Book(), Book()
    mail.error = NEVER

    async def story(scene: Scene) -> None:
        for status in (Status.WARNING, Status.CRITICAL, Status.OK):
            disk.status = status
            await scene.engine.run_check("disk")
            await scene.engine.deliver_due()
            mail.error = DOWN if status is Status.CRITICAL else None
        for _ in range(3):
            scene.clock.advance(60)
            await scene.engine.deliver_due()
        mail.error = None
        scene.clock.advance(60)
        await scene.engine.deliver_due()
        assert scene.store.read_outbox() == []

    play(story, stood_in(mail, sms, disk))
    assert mail.reasons == ["worse", "resolved"]
    assert sms.reasons == ["firing", "resolved"]


def test_a_channel_that_works_keeps_its_ends_to_itself() -> None:
    """A fallback hears of nothing that it did not begin."""
    disk, mail, sms = Says(Status.CRITICAL), Book(), Book()

    async def story(scene: Scene) -> None:
        for status in (Status.CRITICAL, Status.OK):
            disk.status = status
            await scene.engine.run_check("disk")
            await scene.engine.deliver_due()

    play(story, stood_in(mail, sms, disk))
    reasons: Mapping[str, list[str]] = {"mail": mail.reasons, "sms": sms.reasons}
    assert reasons == {"mail": ["firing", "resolved"], "sms": []}


@pytest.mark.parametrize("answer", [None, "ok", Receipt(None), Receipt(5), Receipt("ok", None)])  # type: ignore[arg-type]
def test_a_channel_that_gives_no_proper_receipt_is_not_sent_to_for_ever(answer: Any) -> None:
    """It took the message: that is written, and can be read again."""

    class Careless(Book):
        async def send(self, notifications: Sequence[Notification]) -> Receipt:
            await super().send(notifications)
            return cast("Receipt", answer)

    book = Careless()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("disk")
        assert await scene.engine.deliver_due() is None

    store = play(story, world({"disk": Says(Status.CRITICAL)}, {"book": book}))
    assert book.reasons == ["firing"]
    ((_, at, text),) = store.read_deliveries(book.got[0].alert)
    assert at is not None
    assert isinstance(text, str)


@pytest.mark.parametrize("drawable", [True, False])
def test_a_mail_shows_how_it_went(tmp_path: Path, drawable: bool) -> None:
    """Taken from the state when it is sent; a mail without a picture is as before."""
    with SmtpServer(tmp_path) as smtp:
        a_world = world({"disk": Says(Status.CRITICAL)}, {"mail": email(smtp)})

        async def story(scene: Scene) -> None:
            for minutes in range(9 if drawable else 0):
                seen = {"disk": (Sample("/scratch", "used_percent", 90.0 - minutes),)}
                scene.store.commit(
                    Batch(at=shift_instant(scene.clock.now(), -60.0 * minutes), samples=seen)
                )
            await scene.engine.run_check("disk")
            await scene.engine.deliver_due()

        play(story, a_world)
        message = smtp.wait(1)[0].message
    types = [part.get_content_type() for part in message.walk()]
    assert types[:2] == ["multipart/alternative", "text/plain"]
    assert types[2:] == (
        ["multipart/related", "text/html", "image/png"] if drawable else ["text/html"]
    )
    if drawable:
        page, picture = [*message.walk()][-2:]
        assert picture["Content-ID"].strip("<>") in page.get_content()
        assert picture.get_content()[:4] == b"\x89PNG"


def test_a_message_that_was_not_sent_yet_waits_for_the_end_of_its_silence() -> None:
    """Whoever silences an alert within the group's wait gets no mail of it. Whoever ends the silence
    hears of what still fires."""
    book = Book()
    config = world({"fs": Says(Status.CRITICAL)}, {"book": book})

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("fs")
        scene.clock.advance(5)
        now = scene.clock.now()
        silence = Silence(
            id="s", match=Match(check="fs"), starts=now.wall, ends=now.wall + 3600 * SECOND
        )
        await scene.engine.order(silence)
        await scene.engine.deliver_due()
        assert book.reasons == []
        scene.clock.advance(60)
        await scene.engine.order(replace(silence, ends=scene.clock.now().wall))
        scene.clock.advance(1)
        await scene.engine.deliver_due()
        assert book.reasons == ["firing"]

    play(story, config)


class Of(Says):
    """A finding about a user's job, under a subject of its own."""

    def __init__(self, user: str, status: Status = Status.CRITICAL) -> None:
        super().__init__(status)
        self._labels = {"user": user}

    def run(self, ctx: Context) -> Report:
        report = super().run(ctx)
        return replace(
            report, findings=tuple(replace(f, labels=self._labels) for f in report.findings)
        )


def test_the_deaths_of_one_users_jobs_do_not_use_up_the_hour_of_another() -> None:
    """Eve's five were alone and were all told. The next job is another's, and a node after it; a
    restart in between changes nothing."""
    mail, store, clock = Book(), MemoryStore(), ManualClock()
    checks: dict[str, object] = {f"eve{n}": Of("eve") for n in range(7)}
    checks |= {"victim": Of("victim"), "node": Says(Status.CRITICAL)}
    a_world = world(checks, {"mail": mail})
    a_world.common = {"mail": ChannelCommon(kind="email", per_hour=5)}

    async def before(scene: Scene) -> None:
        for n in range(6):
            await scene.engine.run_check(f"eve{n}")
            await scene.engine.deliver_due()
            scene.clock.advance(30)

    async def after(scene: Scene) -> None:
        for name in ("eve6", "victim", "node"):
            await scene.engine.run_check(name)
            await scene.engine.deliver_due()

    play(before, a_world, store, clock)
    assert [n.check for n in mail.got] == [f"eve{n}" for n in range(5)]
    play(after, a_world, store, clock)
    assert [n.check for n in mail.got[5:]] == ["victim", "node"]


def test_the_end_of_what_was_told_is_told_within_a_full_hour() -> None:
    """One free end for each counted beginning; what was not told waits."""
    mail, first, second = Book(), Of("eve"), Of("eve")
    a_world = world({"first": first, "second": second}, {"mail": mail})
    a_world.common = {"mail": ChannelCommon(kind="email", per_hour=1)}

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("first")
        await scene.engine.deliver_due()
        await scene.engine.run_check("second")
        first.status = Status.OK
        await scene.engine.run_check("first")
        await scene.engine.deliver_due()

    play(story, a_world)
    assert [(n.check, n.reason) for n in mail.got] == [("first", "firing"), ("first", "resolved")]


def test_critical_goes_before_warning_where_not_all_fits() -> None:
    mail = Book()
    checks: dict[str, object] = {f"low{n}": Of("eve", Status.WARNING) for n in range(3)}
    checks["worst"] = Of("eve")
    a_world = world(checks, {"mail": mail})
    a_world.common = {"mail": ChannelCommon(kind="email", per_hour=2)}

    async def story(scene: Scene) -> None:
        for name in checks:
            await scene.engine.run_check(name)
        await scene.engine.deliver_due()

    play(story, a_world)
    assert [n.check for n in mail.got] == ["worst", "low0"]
