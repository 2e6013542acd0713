"""The same story told with a state that works and with one that fails for a while."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sentinel.core.model import Notification, Receipt, Status
from sentinel.engine import housekeeping
from sentinel.engine.engine import Engine, RuntimeConfig
from sentinel.engine.tick import run_pass
from sentinel.store.buffered import BufferedStore
from sentinel.store.failover import RETRY_SPACING_S
from sentinel.store.opening import open_store
from sentinel.testing import ManualClock
from tests.engine.worlds import Book, Says, world
from tests.store.ticking import Ticking

EVERY = 2.0
"""Seconds between two passes; alerts of `late` fire after 5 s."""

Story = Sequence[dict[str, Status]]
Said = tuple[str, str, str, str, str]


class Written(Book):
    """One that other processes can read."""

    path: Path | None = None

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        if self.path is not None:
            with self.path.open("ab", buffering=0) as file:
                for notification in notifications:
                    file.write(msgspec.json.encode(notification) + b"\n")
        return await super().send(notifications)


class Teller:
    """Plays a story, pass by pass, each as a process of its own or all as one service."""

    def __init__(self, state: str, *, patience: float = 20.0) -> None:
        self.checks = {"at-once": Says(), "late": Says(), "never": Says()}
        self.book, self.clock = Written(), ManualClock()
        self.world = _world(self.checks, self.book)
        self._state, self._monotonic = state, Ticking()
        self.patience = patience
        self._store: BufferedStore | None = None
        self.spacing = 0
        """Seconds between passes of a chain; 0 where they are none."""

    def ticks(self, story: Story, before: Callable[[int], None] = lambda _: None) -> None:
        """One process a pass; `before` each pass the world may change."""
        for number, statuses in enumerate(story):
            before(number)
            asyncio.run(self._service([statuses], lambda _: None))

    def killed(
        self, story: Story, after: Sequence[float], before: Callable[[int], None], book: Path
    ) -> None:
        """One process a pass, ended by a signal after so many seconds, and once more to its end.
        What was told is read from `book`."""
        self.book.path = book
        for number, statuses in enumerate(story):
            before(number)
            for seconds in (after[number], 0.0):
                child = os.fork()
                if not child:
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)
                    signal.setitimer(signal.ITIMER_REAL, seconds)
                    asyncio.run(self._service([statuses], lambda _: None))
                    os._exit(0)
                _, code = os.waitpid(child, 0)
                assert code in (0, signal.SIGALRM if seconds else 0)
            self.clock.advance(EVERY)
        lines = book.read_bytes().splitlines() if book.exists() else []
        self.book.got = [msgspec.json.decode(line, type=Notification) for line in lines]

    def service(self, story: Story, before: Callable[[int], None] = lambda _: None) -> None:
        """One process for all."""
        asyncio.run(self._service(story, before))

    def try_again(self) -> None:
        """The state works again: nobody waits for the next attempt by the clock. What still hung in
        a service was answered, and has ended."""
        if self._store is not None and (stuck := self._store._pair._patience._stuck):
            with suppress(Exception):  # its own error is no matter here
                stuck.result(20.0)
        self._monotonic.advance(RETRY_SPACING_S)

    @property
    def said(self) -> list[Said]:
        """Of the checks; those of one pass, which run at once, in the order of their names."""
        return sorted(_said(n) for n in self.book.got if n.check != housekeeping.SELF_CHECK_NAME)

    @property
    def own(self) -> list[tuple[str, str]]:
        """What was told of the state."""
        return [(n.reason, n.summary) for n in self.book.got if n.subject == "state"]

    async def _service(self, story: Story, before: Callable[[int], None]) -> None:
        opened = open_store(
            self._state, self.clock.now(), patience=self.patience, monotonic=self._monotonic
        )
        self._store = opened.store
        engine = Engine(self.world, opened.store, self.clock, opened.notices)
        await engine.start_leading("one host")
        try:
            for number, statuses in enumerate(story):
                before(number)
                for name, status in statuses.items():
                    self.checks[name].status = status
                await engine.review_alerts()
                await run_pass(engine, self.clock.now(), everything=True, spacing=self.spacing)
                self.clock.advance(self.spacing or EVERY)
        finally:
            await engine.close()


def story(passes: int, seed: int = 0) -> Story:
    """`at-once` turns every 7th pass, `late` is bad for 1 or 5 passes in turn."""
    bad, good = Status.CRITICAL, Status.OK
    told = []
    for number in range(passes):
        n = number + seed
        late = n % 12 == 2 or 5 <= n % 12 <= 9
        told.append(
            {
                "at-once": bad if n // 7 % 2 else good,
                "late": bad if late else good,
                "never": good,
            }
        )
    return told


def reference(folder: Path, told: Story) -> list[Said]:
    """What is said where nothing fails."""
    teller = Teller(str(folder))
    teller.ticks(told)
    return teller.said


def row(what: str, said: Sequence[Said], wanted: Sequence[Said]) -> str:
    """What was told against what should have been, on one line: `pytest -rP` shows it."""
    begun = {(alert, key) for _, _, reason, alert, key in wanted if reason == "firing"}
    heard = Counter((alert, key) for _, _, reason, alert, key in said if reason == "firing")
    ends = sum(reason == "resolved" for _, _, reason, _, _ in said)
    due = sum(reason == "resolved" for _, _, reason, _, _ in wanted)
    return (
        f"{what}: {len(begun)} alerts, told {sum(heard.values())}, "
        f"twice {sum(n - 1 for n in heard.values())}, missed {len(begun - set(heard))}, "
        f"ends {ends} of {due}, ids changed {len({a for *_, a, _ in said} - {a for *_, a, _ in wanted})}"
    )


def _world(checks: dict[str, Says], book: Book) -> RuntimeConfig:
    a_world = world(dict(checks), {"book": book}, every=EVERY)
    policies = dict(a_world.plan.policies)
    policies["late"] = replace(policies["late"], for_=5.0)
    for name in checks:
        policies[name] = replace(policies[name], flap=replace(policies[name].flap, changes=0))
    a_world.plan = replace(a_world.plan, policies=policies)
    return a_world


def _said(n: Notification) -> Said:
    return n.at, n.check, n.reason, n.alert, n.key
