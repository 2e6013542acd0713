"""Letters to the authors of wishes: to that user alone, few a day, and no alert of anybody."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from sentinel.alerting.letters import MAX_LETTERS_PER_DAY
from sentinel.alerting.settings import Match, Route
from sentinel.core.errors import ChannelError
from sentinel.core.letters import Letter
from sentinel.core.model import Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.settings import ChannelCommon
from sentinel.testing import ALL_SEEN
from tests.engine.test_owners import Mail
from tests.engine.worlds import Book, Scene, play, world
from tests.kinds import PlainCheck

DAY = 86400.0


class Wished(PlainCheck):
    """A check that finds what it is told to find, and asks for these letters."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.letters: tuple[Letter, ...] = ()

    def run(self, ctx: Context) -> Report:
        return Report(coverage=ALL_SEEN, findings=tuple(self.findings), letters=self.letters)


def letter(name: str = "a", user: str = "ann", *, over: bool = False) -> Letter:
    return Letter(
        id=name, user=user, subject=f"{user}/train", severity="warning", summary=name, over=over
    )


def dead(user: str, *, muted: bool = False) -> Finding:
    return Finding(
        subject=f"{user}/train",
        status=Status.CRITICAL,
        summary="dead",
        labels={"user": user},
        owner_muted=muted,
    )


class Desk:
    """One check, a channel that tells each user, and one that tells the operator."""

    def __init__(self, fallback: str = "") -> None:
        self.check, self.mail, self.book = Wished(), Mail(), Book()
        found = world({"jobs": self.check}, {"mail": self.mail, "book": self.book})
        found.plan = replace(found.plan, personal=["mail"], channels=["mail", "book"])
        found.common = {"mail": ChannelCommon(kind="email", fallback=fallback)}
        self.runtime = found

    async def look(self, scene: Scene, *letters: Letter, after: float = 60) -> None:
        self.check.letters = letters
        scene.clock.advance(after)
        await scene.engine.run_check("jobs")
        await scene.engine.deliver_due()

    def play(self, story: Callable[[Scene], Awaitable[None]]) -> None:
        play(story, self.runtime)


def test_a_letter_goes_to_its_reader_once_a_day() -> None:
    """Though the check asks for it in each run, and the other channels have nothing of it."""
    desk = Desk()

    async def story(scene: Scene) -> None:
        for _ in range(3):
            await desk.look(scene, letter(), letter(user="bob"))
        assert desk.mail.mails == [("ann", ["ann/train"]), ("bob", ["bob/train"])]
        await desk.look(scene, letter(), after=DAY)
        assert desk.mail.mails[2:] == [("ann", ["ann/train"])]
        assert scene.store.read_alerts() == []
        assert scene.store.read_transitions(10) == []

    desk.play(story)
    assert desk.book.got == []


def test_an_end_is_told_once_to_who_had_the_letter() -> None:
    """And to nobody else."""
    desk = Desk()

    async def story(scene: Scene) -> None:
        await desk.look(scene, letter(over=True))
        assert desk.mail.mails == []
        await desk.look(scene, letter())
        await desk.look(scene, letter(over=True))
        await desk.look(scene, letter(over=True))

    desk.play(story)
    assert desk.mail.mails == [("ann", ["ann/train"])] * 2


def test_a_user_gets_so_many_letters_a_day_and_takes_nobody_elses() -> None:
    """One run with very many is one mail; the others have theirs."""
    desk = Desk()

    async def story(scene: Scene) -> None:
        many = [letter(str(n), "mallory") for n in range(5000)]
        await desk.look(scene, *many, letter(user="alice"))
        await desk.look(scene, *many)
        (notice,) = [
            n for n in scene.store.read_deliveries("") if "more than" in n[0].notification.note
        ]
        assert notice[0].notification.summary == str(MAX_LETTERS_PER_DAY - 1)

    desk.play(story)
    assert desk.mail.mails == [
        ("mallory", ["mallory/train"] * MAX_LETTERS_PER_DAY),
        ("alice", ["alice/train"]),
    ] or desk.mail.mails == [
        ("alice", ["alice/train"]),
        ("mallory", ["mallory/train"] * MAX_LETTERS_PER_DAY),
    ]


def test_routes_decide_whether_a_user_has_letters() -> None:
    """Where the operator leaves a user out, a wish changes nothing."""
    desk = Desk()
    routes = [Route(match=Match(user=["bob"]), to=["book"]), Route(to=["mail", "book"])]
    desk.runtime.plan = replace(desk.runtime.plan, routes=routes)

    async def story(scene: Scene) -> None:
        await desk.look(scene, letter(user="bob"), letter(user="ann"))

    desk.play(story)
    assert desk.mail.mails == [("ann", ["ann/train"])]
    assert desk.book.got == []


@pytest.mark.parametrize("reason", ["recipient", "refused"])
def test_an_author_who_cannot_be_reached_disturbs_nobody(reason: str) -> None:
    """No fallback gets the letter, and the channel is not in trouble."""
    desk = Desk(fallback="book")
    desk.mail.errors["ann"] = ChannelError("no such user", permanent=True, reason=reason)

    async def story(scene: Scene) -> None:
        await desk.look(scene, letter(), letter(user="bob"))
        await desk.look(scene, after=3600)
        assert scene.store.read_outbox() == []
        assert scene.engine._delivery.trouble.get("mail") is None

    desk.play(story)
    assert desk.mail.mails == [("bob", ["bob/train"])]
    assert desk.book.got == []


def test_off_mutes_the_owner_alone() -> None:
    """The other channels, the alerts and the history are the same."""
    desk = Desk()

    async def story(scene: Scene) -> None:
        desk.check.findings = [dead("ann", muted=True), dead("bob")]
        await desk.look(scene)
        assert len(scene.store.read_alerts()) == 2
        assert [t.reason for t in scene.store.read_transitions(10)] == ["firing", "firing"]
        desk.check.findings = [dead("ann"), dead("bob")]
        await desk.look(scene)
        desk.check.findings = []
        await desk.look(scene)

    desk.play(story)
    assert [n.subject for n in desk.book.got] == ["ann/train", "bob/train"] * 2
    assert [user for user, _ in desk.mail.mails] == ["bob", "ann", "ann", "bob"]
