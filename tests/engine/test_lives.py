"""Random lives of an engine against a plain model of what people must have heard."""

import random
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentinel.alerting.settings import Match
from sentinel.alerting.silences import Ack, Silence
from sentinel.core.errors import ChannelError
from sentinel.core.model import Finding, Notification, Report, Status
from sentinel.core.ports import Context
from sentinel.store.memory import MemoryStore
from sentinel.testing import ALL_SEEN
from tests.engine.worlds import Book, Grouped, Scene, play, world
from tests.kinds import PlainCheck

SUBJECTS = ("a", "b", "c")
OK, WARN, CRIT, UNKNOWN = Status.OK, Status.WARNING, Status.CRITICAL, Status.UNKNOWN


class Nodes(PlainCheck):
    """A check over several subjects; those whose status is None are not reported."""

    def __init__(self, statuses: dict[str, Status | None]) -> None:
        self.statuses = statuses

    def run(self, ctx: Context) -> Report:
        return Report(
            coverage=ALL_SEEN,
            findings=tuple(
                Finding(subject=name, status=status, summary=status.value, labels={"node": name})
                for name, status in self.statuses.items()
                if status is not None
            ),
        )


class Flaky(Book):
    """Fails one send in twenty; some failures came after the other side had taken it."""

    def __init__(self, seed: int, share: float = 0.05) -> None:
        super().__init__()
        self._dice, self._share = random.Random(seed), share

    async def send(self, notifications: Any) -> Any:
        if self._dice.random() < self._share:
            if self._dice.random() < 0.5:
                await super().send(notifications)
            raise ChannelError("connection lost", reason="network")
        return await super().send(notifications)


def listen(told: list[Notification]) -> dict[str, list[Notification]]:
    """Per subject, in order, each message once: a repeat after a crash carries the same key."""
    heard: dict[str, dict[str, Notification]] = defaultdict(dict)
    for n in told:
        if n.check == "nodes" and n.subject:
            heard[n.subject].setdefault(n.key, n)
    return {subject: list(by_key.values()) for subject, by_key in heard.items()}


def assert_sense(messages: list[Notification]) -> str:
    """No end without a beginning, no second beginning without an end; the last state heard."""
    state = "good"
    for n in messages:
        if n.reason in ("firing", "flapping"):
            assert state == "good", [m.reason for m in messages]
            state = "bad" if n.reason == "firing" else "flapping"
        elif n.reason == "worse":
            assert state != "good", [m.reason for m in messages]
        elif n.reason == "repeat":
            assert state == "bad", [m.reason for m in messages]
        elif n.reason == "ack":
            assert state != "good", [m.reason for m in messages]
        elif n.reason in ("resolved", "gone"):
            assert state == "bad", [m.reason for m in messages]
            state = "good"
        else:
            assert n.reason == "settled"
            assert state == "flapping", [m.reason for m in messages]
            state = "good" if n.status is OK else "bad"
    return state


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("see"),
            st.sampled_from(SUBJECTS),
            st.sampled_from([OK, WARN, CRIT, UNKNOWN, None]),
        ),
        st.tuples(st.just("wait"), st.sampled_from([1, 60, 3600, 90_000])),
        st.tuples(st.just("jump"), st.sampled_from([-3600, 3600])),
        st.tuples(st.just("fail"), st.booleans()),
        st.tuples(st.just("silence"), st.sampled_from(SUBJECTS), st.sampled_from([60, 7200])),
        st.tuples(st.just("ack"), st.sampled_from(SUBJECTS)),
        st.tuples(st.just("restart")),
    ),
    max_size=40,
)


async def act(scene: Scene, nodes: Nodes, mail: Book, step: tuple[Any, ...]) -> None:
    match step:
        case ("see", subject, status):
            nodes.statuses[subject] = status
        case ("wait", seconds):
            scene.clock.advance(seconds)
        case ("jump", seconds):
            scene.clock.jump(seconds)
        case ("fail", down):
            mail.error = ChannelError("down") if down else None
        case ("silence", subject, seconds):
            now = scene.clock.now().wall
            scene.store.put_silence(
                Silence(
                    id=subject, match=Match(subject=subject), starts=now, ends=now + seconds * 10**6
                )
            )
        case ("ack", subject):
            for alert in scene.store.read_alerts():
                if alert.key.subject == subject and alert.firing:
                    scene.store.put_ack(Ack(alert=alert.id, at=scene.clock.now()))
    await scene.engine.run_check("nodes")
    await scene.engine.review_alerts()
    await scene.engine.deliver_due()


@pytest.mark.long
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_whatever_happens_people_hear_sense_and_everything(steps: list[tuple[Any, ...]]) -> None:
    """Through acks, silences, restarts, failing channels and clock jumps: in the end, with
    everything good and every channel up, nothing is unsent and nobody believes in a trouble."""
    nodes, mail, book = Nodes(dict.fromkeys(SUBJECTS, OK)), Book(), Book()
    store = MemoryStore()
    a_world = world({"nodes": nodes}, {"mail": mail, "book": book})
    lives: list[list[tuple[Any, ...]]] = [[]]
    for step in steps:
        lives.append([]) if step[0] == "restart" else lives[-1].append(step)

    for number, life in enumerate(lives):

        async def story(
            scene: Scene, life: Any = life, last: bool = number == len(lives) - 1
        ) -> None:
            for step in life:
                await act(scene, nodes, mail, step)
            if last:
                await settle(scene, nodes, mail)

        play(story, a_world, store)
    assert store.read_outbox() == []
    assert [a.key for a in store.read_alerts() if a.firing and a.key.subject in SUBJECTS] == []
    for channel in (mail, book):
        for messages in listen(channel.got).values():
            assert assert_sense(messages) == "good"


async def settle(scene: Scene, nodes: Nodes, mail: Book) -> None:
    """A day of calm: all is good, all channels are up, silences end."""
    mail.error = None
    nodes.statuses = dict.fromkeys(SUBJECTS, OK)
    for _ in range(26):
        scene.clock.advance(3600)
        await scene.engine.run_check("nodes")
        await scene.engine.review_alerts()
        await scene.engine.deliver_due()


def test_a_first_message_is_never_lost() -> None:
    """Every firing that no silence covered is heard on every channel."""
    nodes, mail, book = Nodes({"a": CRIT}), Flaky(7, 0.5), Flaky(8, 0.5)

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("nodes")
        for _ in range(60):
            await scene.engine.deliver_due()
            scene.clock.advance(60)

    play(story, world({"nodes": nodes}, {"mail": mail, "book": book}))
    for channel in (mail, book):
        assert [n.reason for n in listen(channel.got)["a"]] == ["firing"]


def test_500_nodes_that_fail_in_one_pass_are_one_message_a_channel() -> None:
    """For people; a machine gets one object per alert. The same for their end."""
    nodes, mail, book = Nodes({f"n{i}": CRIT for i in range(500)}), Grouped(), Book()

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("nodes")
        await scene.engine.drain_outbox(30)
        nodes.statuses = dict.fromkeys(nodes.statuses, OK)
        await scene.engine.run_check("nodes")
        await scene.engine.drain_outbox(30)

    store = play(story, world({"nodes": nodes}, {"mail": mail, "book": book}))
    assert mail.sizes == [500, 500]
    assert len(book.got) == 1000
    assert store.read_outbox() == []


def test_four_days_with_one_send_in_twenty_failing_lose_nothing() -> None:
    """Every five minutes a look; troubles come and go; acks and silences in between."""
    dice = random.Random(14)
    nodes = Nodes({f"n{i}": OK for i in range(20)})
    mail, book = Flaky(1), Flaky(2)

    async def story(scene: Scene) -> None:
        for _ in range(4 * 24 * 12):
            name = f"n{dice.randrange(20)}"
            if dice.random() < 0.35:
                nodes.statuses[name] = dice.choice([OK, OK, WARN, CRIT, UNKNOWN])
            if dice.random() < 0.035:
                await act(scene, nodes, mail, ("silence", name, 7200))
            scene.clock.advance(300)
            await scene.engine.run_check("nodes")
            await scene.engine.review_alerts()
            await scene.engine.deliver_due()
        nodes.statuses = dict.fromkeys(nodes.statuses, OK)
        for _ in range(40):
            scene.clock.advance(3600)
            await scene.engine.run_check("nodes")
            await scene.engine.review_alerts()
            await scene.engine.deliver_due()

    store = play(story, world({"nodes": nodes}, {"mail": mail, "book": book}))
    assert store.read_outbox() == []
    heard = [listen(channel.got) for channel in (mail, book)]
    assert sum(len(m) for m in heard[0].values()) > 100
    assert {s: [m.key for m in told] for s, told in heard[0].items()} == (
        {s: [m.key for m in told] for s, told in heard[1].items()}
    )
    for told in heard[0].values():
        assert assert_sense(told) == "good"
