"""The same story told with a state that works and with one that fails for a while."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from sentinel.core.model import Notification, Status
from sentinel.engine import housekeeping
from sentinel.engine.engine import Engine, World
from sentinel.engine.tick import tick
from sentinel.store.buffered import Buffered
from sentinel.store.opening import open_store
from sentinel.testing import ManualClock
from tests.engine.worlds import Book, Says, world

EVERY = 2.0
"""Seconds between two passes; alerts of `late` fire after 5 s."""

Story = Sequence[dict[str, Status]]
Said = tuple[str, str, str, str, str]


class Teller:
    """Plays a story, pass by pass, each as a process of its own or all as one service."""

    def __init__(self, state: str, *, patience: float = 20.0) -> None:
        self.checks = {"at-once": Says(), "late": Says(), "never": Says()}
        self.book, self.clock = Book(), ManualClock()
        self.world = _world(self.checks, self.book)
        self._state, self._patience = state, patience
        self.stores: list[Buffered] = []

    def ticks(self, story: Story, before: Callable[[int], None] = lambda _: None) -> None:
        """One process a pass; `before` each pass the world may change."""
        for number, statuses in enumerate(story):
            before(number)
            asyncio.run(self._service([statuses], lambda _: None))

    def service(self, story: Story, before: Callable[[int], None] = lambda _: None) -> None:
        """One process for all."""
        asyncio.run(self._service(story, before))

    @property
    def said(self) -> list[Said]:
        """Of the checks, in the order of telling."""
        return [_said(n) for n in self.book.got if n.check != housekeeping.NAME]

    @property
    def own(self) -> list[tuple[str, str]]:
        """What was told of the state."""
        return [(n.reason, n.summary) for n in self.book.got if n.subject == "state"]

    async def _service(self, story: Story, before: Callable[[int], None]) -> None:
        opened = open_store(self._state, self.clock.now(), patience=self._patience)
        self.stores.append(opened.store)
        engine = Engine(self.world, opened.store, self.clock, opened.notices)
        await engine.start("one host")
        try:
            for number, statuses in enumerate(story):
                before(number)
                for name, status in statuses.items():
                    self.checks[name].status = status
                await tick(engine, self.clock.now(), everything=True)
                self.clock.advance(EVERY)
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


def _world(checks: dict[str, Says], book: Book) -> World:
    a_world = world(dict(checks), {"book": book}, every=EVERY)
    policies = dict(a_world.plan.policies)
    policies["late"] = replace(policies["late"], for_=5.0)
    for name in checks:
        policies[name] = replace(policies[name], flap=replace(policies[name].flap, changes=0))
    a_world.plan = replace(a_world.plan, policies=policies)
    return a_world


def _said(n: Notification) -> Said:
    return n.check, n.reason, n.alert, n.key, n.since
