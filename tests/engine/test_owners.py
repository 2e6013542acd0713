"""A channel that tells each user of their own jobs: apart, a day's worth, nobody in another's way."""

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from sentinel.core.errors import ChannelError
from sentinel.core.model import Finding, Notification, Receipt, Report, Status
from sentinel.core.ports import Context
from sentinel.core.settings import ChannelCommon
from sentinel.engine import delivery
from sentinel.engine.engine import RuntimeConfig
from sentinel.store.memory import MemoryStore
from sentinel.testing import ALL_SEEN, ManualClock
from tests.engine.worlds import Book, Grouped, Scene, play, world
from tests.kinds import PlainCheck

DAY = 86400.0


class Jobs(PlainCheck):
    """A check: these trainings are dead, told by `user/name`."""

    def __init__(self, *subjects: str) -> None:
        self.dead = list(subjects)

    def run(self, ctx: Context) -> Report:
        return Report(coverage=ALL_SEEN, findings=tuple(map(_dead, self.dead)))


def _dead(subject: str) -> Finding:
    user, slash, _ = subject.partition("/")
    labels = {"user": user} if slash else {}
    return Finding(subject=subject, status=Status.CRITICAL, summary="FAILED", labels=labels)


class Mail(Book):
    """Keeps what each user was told, message by message; `errors` by user."""

    groups = True
    personal = True
    per_day = 20

    def __init__(self, per_day: int = 20) -> None:
        super().__init__()
        self.per_day = per_day
        self.mails: list[tuple[str, list[str]]] = []
        self.errors: dict[str, ChannelError] = {}

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        (user,) = {n.labels.get("user", "") for n in notifications}
        if user in self.errors:
            raise self.errors[user]
        self.mails.append((user, [n.subject for n in notifications]))
        return Receipt("taken")


def lab(check: Jobs, mail: Mail, oncall: Book | None = None) -> RuntimeConfig:
    found = world({"jobs": check}, {"mail": mail, **({"oncall": oncall} if oncall else {})})
    found.plan = replace(found.plan, personal=["mail"], channels=["mail"])
    if oncall:
        found.common = {"mail": ChannelCommon(kind="email", fallback="oncall")}
    return found


def test_each_user_has_one_message_with_their_own() -> None:
    """Though all of it is one group, and comes at once."""
    mail = Mail()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("jobs")
        await scene.engine.deliver_due()

    play(story, lab(Jobs("ann/a", "bob/a", "ann/b"), mail))
    assert mail.mails == [("ann", ["ann/a", "ann/b"]), ("bob", ["bob/a"])]


@pytest.mark.parametrize("permanent", [True, False])
def test_one_user_who_cannot_be_told_holds_up_nobody(permanent: bool) -> None:
    """Whether for good or for now; the fallback has it, and says why it comes there."""
    check, mail, oncall = Jobs("ann/a", "bob/a", "eve/a"), Mail(), Book()
    mail.errors["ann"] = ChannelError("no such user", permanent=permanent, reason="recipient")

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("jobs")
        await scene.engine.deliver_due()
        assert [user for user, _ in mail.mails] == ["bob", "eve"]
        check.dead.append("bob/b")
        await scene.engine.run_check("jobs")
        await scene.engine.deliver_due()
        assert mail.mails[2:] == [("bob", ["bob/b"])]
        scene.clock.advance(301)
        await scene.engine.deliver_due()
        await scene.engine.deliver_due()

    play(story, lab(check, mail, oncall))
    assert [(n.subject, n.note) for n in oncall.got] == [
        ("ann/a", "sent here because mail does not deliver: no such user")
    ]


def test_a_server_that_is_down_is_asked_once() -> None:
    """Not once for each user: what fails for all waits for all."""
    mail = Mail()
    tries: list[str] = []

    class Down(dict[str, ChannelError]):
        def __contains__(self, user: object) -> bool:
            tries.append(str(user))
            return True

        def __getitem__(self, user: str) -> ChannelError:
            return ChannelError("connection refused")

    mail.errors = Down()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("jobs")
        await scene.engine.deliver_due()

    play(story, lab(Jobs("ann/a", "bob/a"), mail))
    assert tries == ["ann"]


def test_a_user_hears_so_often_a_day_and_others_as_before() -> None:
    """The last message of the day holds all there is; the rest waits for the next. A restart
    begins no new day."""
    check, mail = Jobs("ann/0"), Mail(per_day=2)
    store, clock = MemoryStore(), ManualClock()

    async def before(scene: Scene) -> None:
        for number in range(1, 4):
            await scene.engine.run_check("jobs")
            await scene.engine.deliver_due()
            scene.clock.advance(3600)
            check.dead.append(f"ann/{number}")

    async def after(scene: Scene) -> None:
        check.dead.append("bob/0")
        await scene.engine.run_check("jobs")
        wait = await scene.engine.deliver_due()
        assert wait == DAY - 3 * 3600
        assert mail.mails[2:] == [("bob", ["bob/0"])]
        scene.clock.advance(wait)
        await scene.engine.deliver_due()

    play(before, lab(check, mail), store, clock)
    assert mail.mails == [("ann", ["ann/0"]), ("ann", ["ann/1"])]
    play(after, lab(check, mail), store, clock)
    assert mail.mails[3:] == [("ann", ["ann/2", "ann/3"])]


def test_the_last_message_of_a_day_holds_all_of_that_user() -> None:
    """Of several groups too, and nothing of others."""
    mail = Mail(per_day=1)
    a_world = lab(Jobs("ann/a", "bob/a"), mail)
    more = world({"more": Jobs("ann/b")}, {})
    a_world.checks = {**a_world.checks, **more.checks}
    a_world.plan = replace(a_world.plan, policies={**a_world.plan.policies, **more.plan.policies})

    async def story(scene: Scene) -> None:
        for name in ("jobs", "more"):
            await scene.engine.run_check(name)
        await scene.engine.deliver_due()

    play(story, a_world)
    assert mail.mails == [("ann", ["ann/a", "ann/b"]), ("bob", ["bob/a"])]


def test_what_is_about_nobody_goes_to_the_fallback() -> None:
    """A check that is blind has no owner."""
    mail, oncall = Mail(), Book()
    mail.errors[""] = ChannelError("names no user", permanent=True, reason="recipient")

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("jobs")
        await scene.engine.deliver_due()

    play(story, lab(Jobs("/scratch"), mail, oncall))
    assert [n.subject for n in oncall.got] == ["/scratch"]


def test_the_fallback_hears_of_several_users_in_one_message() -> None:
    """It tells all of it to the same people."""
    mail, oncall = Mail(), Grouped()
    for user in ("ann", "bob"):
        mail.errors[user] = ChannelError("no address", permanent=True, reason="recipient")

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("jobs")
        await scene.engine.deliver_due()

    play(story, lab(Jobs("ann/a", "bob/a"), mail, oncall))
    assert oncall.sizes == [2]


def test_what_one_user_s_jobs_have_to_tell_does_not_hold_up_another_s_message() -> None:
    """222 of mallory's die in one pass with alice's one, which comes last there."""
    book = Book()
    subjects = [*(f"mallory/{n}" for n in range(222)), "alice/train"]

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("jobs")
        await scene.engine.deliver_due()

    play(story, world({"jobs": Jobs(*subjects)}, {"book": book}))
    told = [n.subject for n in book.got]
    assert told.index("alice/train") <= 1
    assert sorted(told) == sorted(subjects)


def test_a_long_queue_lets_a_later_message_of_another_user_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Alice's training dies while the channel is at work with mallory's."""
    monkeypatch.setattr(delivery, "MAX_QUEUE_S", 0.05)
    book = Book()
    check = Jobs(*(f"mallory/{n}" for n in range(60)))

    async def story(scene: Scene) -> None:
        async def slowly() -> None:
            await asyncio.sleep(0.01)
            if len(book.got) == 3:
                check.dead.append("alice/train")
                await scene.engine.run_check("jobs")

        book.before = slowly
        await scene.engine.run_check("jobs")
        await scene.engine.deliver_due()

    play(story, world({"jobs": check}, {"book": book}))
    told = [n.subject for n in book.got]
    assert told.index("alice/train") < 30
    assert len(told) == len({*told}) == 61
