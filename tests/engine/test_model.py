"""Random lives of an engine beside a plain model: what is heard is what the model says."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.alerting.settings import Escalate, Match, Route
from sentinel.alerting.silences import Ack, Silence
from sentinel.alerting.state_machine import FlapPolicy
from sentinel.core.errors import ChannelError
from sentinel.core.model import Notification, Receipt, Status
from sentinel.core.values import Duration
from sentinel.engine.engine import RuntimeConfig
from sentinel.store.memory import MemoryStore
from sentinel.testing import ManualClock
from tests.engine.plain import ESCALATE, Plain
from tests.engine.test_lives import Nodes
from tests.engine.worlds import Book, Grouped, Scene, play, world

SUBJECTS = ("a", "b")
OK, WARN, CRIT, UNKNOWN = Status.OK, Status.WARNING, Status.CRITICAL, Status.UNKNOWN
BEGINNINGS, ENDS = ("firing",), ("resolved", "gone")
Step = tuple[Any, ...]


class Torn(Book):
    """A channel whose answer is lost once when `torn`: taken, and nobody knows it."""

    torn = False

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        receipt = await super().send(notifications)
        if self.torn:
            self.torn = False
            raise ChannelError("connection lost", reason="network")
        return receipt


class Life:
    """An engine's parts over all its restarts, and the model beside them.

    `mail` fails and tears, `group` is for people, `gate` refuses for good for a while, `book`
    always works, `sms` is where it escalates to.
    """

    def __init__(self) -> None:
        self.nodes = Nodes(dict.fromkeys(SUBJECTS, OK))
        self.mail, self.group, self.gate = Torn(), Grouped(), Book()
        self.book, self.sms = Book(), Book()
        self.clock, self.store = ManualClock(), MemoryStore()
        self.model = Plain(["mail", "group", "gate", "book"], ["sms"])
        self.world = self._world()

    @property
    def channels(self) -> dict[str, Any]:
        names = ("mail", "group", "gate", "book", "sms")
        return {name: getattr(self, name) for name in names}

    def _world(self) -> RuntimeConfig:
        made = world({"nodes": self.nodes}, self.channels)
        still = FlapPolicy(changes=0)
        policies = {n: replace(p, flap=still) for n, p in made.plan.policies.items()}
        escalate = Escalate(after=Duration(ESCALATE), to=["sms"])
        route = Route(to=["mail", "group", "gate", "book"], escalate=escalate)
        made.plan = replace(made.plan, policies=policies, routes=[route])
        return made

    async def take(self, scene: Scene, step: Step) -> None:
        """Do it, look, tell; a second passes, so that no two episodes begin at one moment."""
        self.clock.advance(1)
        self._act(step)
        now = self.clock.now()
        self.model.see(dict(self.nodes.statuses), now.mono / 10**6, now.wall / 10**6)
        await scene.engine.run_check("nodes")
        await scene.engine.review_alerts()
        await scene.engine.deliver_due()

    def _act(self, step: Step) -> None:
        match step:
            case ("see", subject, status):
                self.nodes.statuses[subject] = status
            case ("wait", seconds):
                down = self.mail.error or self.gate.error
                self.clock.advance(min(seconds, 3600) if down else seconds)  # within a week
            case ("jump", seconds):
                self.clock.jump(seconds)
            case ("down", how):
                self.mail.error = ChannelError("down") if how else None
            case ("tear",):
                self.mail.torn = True
            case ("refuse", how):
                self.gate.error = ChannelError("550", permanent=True) if how else None
            case ("silence", subject, seconds):
                self._silence(subject, seconds)
            case ("ack", subject):
                self._ack(subject)

    def _silence(self, subject: str, seconds: int) -> None:
        wall = self.clock.now().wall
        ends = wall + seconds * 10**6
        match = Match(check="nodes", subject=subject)
        self.store.put_silence(Silence(id=subject, match=match, starts=0, ends=ends))
        self.model.silent_until[subject] = ends / 10**6

    def _ack(self, subject: str) -> None:
        """Somebody acknowledges what they see: the alerts as they were before this look."""
        for alert in self.store.read_alerts():
            if alert.key.subject == subject and alert.firing:
                self.store.put_ack(Ack(alert=alert.id, at=self.clock.now()))
        self.model.ack(subject)

    async def settle(self, scene: Scene) -> None:
        """All is well: nothing is bad, nobody refuses, and a week's wait is not needed."""
        self.mail.error = self.gate.error = None
        self.nodes.statuses = dict.fromkeys(SUBJECTS, OK)
        for _ in range(4):
            await self.take(scene, ("wait", 3600))


def heard(channel: Book, subject: str) -> list[str]:
    """The reasons in order, a message that came twice with the same key once."""
    once = {n.key: n.reason for n in channel.got if (n.check, n.subject) == ("nodes", subject)}
    return list(once.values())


SEE = st.tuples(
    st.just("see"),
    st.sampled_from(SUBJECTS),
    st.sampled_from([OK, WARN, WARN, CRIT, UNKNOWN, None]),
)
STEPS = st.lists(
    st.one_of(
        *[SEE] * 6,  # else most lives have nothing to tell
        st.tuples(st.just("wait"), st.sampled_from([60, 1800, 3600, 90_000])),
        st.tuples(st.just("jump"), st.sampled_from([-7200, 7200])),
        st.tuples(st.just("down"), st.booleans()),
        st.tuples(st.just("refuse"), st.booleans()),
        st.tuples(st.just("silence"), st.sampled_from(SUBJECTS), st.sampled_from([60, 7200])),
        st.tuples(st.just("ack"), st.sampled_from(SUBJECTS)),
        st.sampled_from([("tear",), ("restart",)]),
    ),
    min_size=10,
    max_size=50,
)


@pytest.mark.long
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_people_hear_what_the_model_says(steps: list[Step]) -> None:
    """Findings, acknowledgements, silences, restarts, failing channels and clock steps: every
    channel that takes messages in the end has heard each of them, once, in order. One that
    refused for good for a while has heard of everything that was not overtaken."""
    life = lived(steps)
    assert life.store.read_outbox() == []
    for subject in SUBJECTS:
        for name in ("mail", "group", "book", "sms"):
            wanted = life.model.heard[name, subject]
            assert heard(life.channels[name], subject) == wanted, (name, subject)
        refused_sense(life, subject)


def lived(steps: list[Step]) -> Life:
    life = Life()
    lives: list[list[Step]] = [[]]
    for step in steps:
        lives.append([]) if step == ("restart",) else lives[-1].append(step)
    for number, part in enumerate(lives):

        async def story(
            scene: Scene, part: Any = part, last: bool = number + 1 == len(lives)
        ) -> None:
            for step in part:
                await life.take(scene, step)
            if last:
                await life.settle(scene)

        play(story, life.world, life.store, life.clock)
    return life


def refused_sense(life: Life, subject: str) -> None:
    """No end of what was not heard of, nothing after what has overtaken it, and whoever does
    not know in the end that all is good has never heard that it was not."""
    got = [n for n in life.gate.got if (n.check, n.subject) == ("nodes", subject)]
    order = {n.key: place for place, n in enumerate(life.book.got)}
    assert sorted(got, key=lambda n: order[n.key]) == got
    knows_of = ""
    for n in got:
        if n.reason in ENDS:
            assert knows_of == n.alert, [m.reason for m in got]
        knows_of = "" if n.reason in ENDS else n.alert
    assert knows_of == ""
    lost = [w for w in dropped(life) if w[0] == subject and not w[1].startswith("overtaken by ")]
    assert lost == []


def dropped(life: Life) -> list[tuple[str, str]]:
    """Subject and reason of all that was never sent."""
    alerts = {n.alert for n in life.book.got}
    told = [d for alert in alerts for d in life.store.read_deliveries(alert)]
    return [(row.notification.subject, why) for row, sent, why in told if sent is None]


def test_the_model_can_fail() -> None:
    """A message more, a message less or another order is seen."""
    life = lived([("see", "a", CRIT), ("wait", 1800)])
    assert life.model.heard["sms", "a"] == ["firing", "resolved"]
    assert heard(life.sms, "a") == ["firing", "resolved"]
    life.sms.got.pop()
    assert heard(life.sms, "a") != life.model.heard["sms", "a"]
