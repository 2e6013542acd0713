"""A small world for the engine: checks that say what they are told, channels that remember."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timezone

from msgspec import Struct

from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.state_machine import AlertPolicy
from sentinel.core.errors import CannotTell, ChannelError
from sentinel.core.model import Finding, Notification, Receipt, Report, Status
from sentinel.core.ports import Context
from sentinel.core.settings import CheckCommon, CheckConfig
from sentinel.engine import housekeeping
from sentinel.engine.engine import Engine, RuntimeConfig
from sentinel.plugin import Channel
from sentinel.store.memory import MemoryStore
from sentinel.testing import ALL_SEEN, FixedSlurm, ManualClock
from tests.kinds import PlainChannel, PlainCheck


class Says(PlainCheck):
    """A check that reports `status` about `subject`, is blind on None, and counts its runs."""

    def __init__(self, status: Status | None = Status.OK, subject: str = "/scratch") -> None:
        self.status, self.subject, self.runs = status, subject, 0

    def run(self, ctx: Context) -> Report:
        self.runs += 1
        if self.status is None:
            raise CannotTell("no answer")
        finding = Finding(subject=self.subject, status=self.status, summary=self.status.value)
        return Report(
            coverage=ALL_SEEN, findings=(finding,), memory={"runs": ctx.memory.get("runs", 0) + 1}
        )


class Book(PlainChannel):
    """A channel that keeps what it is given, or fails with `error` while that is set."""

    groups = False

    def __init__(self) -> None:
        self.got: list[Notification] = []
        self.error: ChannelError | None = None
        self.refuses: tuple[str, ...] = ()
        self.before: Callable[[], Awaitable[None]] | None = None

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        if self.before is not None:
            await self.before()
        if self.error is not None:
            raise self.error
        self.got += notifications
        return Receipt("taken", self.refuses)

    @property
    def reasons(self) -> list[str]:
        """In the order in which they came, sentinel's words about itself left out."""
        return [n.reason for n in self.got if n.check != housekeeping.SELF_CHECK_NAME]


class Grouped(Book):
    """A channel for people that remembers how many alerts each message held."""

    groups = True

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        self.sizes.append(len(notifications))
        return await super().send(notifications)


class Scene(Struct):
    """An engine with its parts at hand."""

    engine: Engine
    store: MemoryStore
    clock: ManualClock


def world(
    checks: dict[str, object], channels: dict[str, Channel], **common: object
) -> RuntimeConfig:
    configs = {
        name: CheckConfig(name=name, common=CheckCommon(kind="fs", **common), plugin=plugin)  # type: ignore[arg-type]
        for name, plugin in checks.items()
    }
    policies = {
        name: AlertPolicy(kind="fs", blind_after=c.common.blind_after)
        for name, c in configs.items()
    }
    plan = NotificationPlan(
        cluster="lab",
        policies=policies | {housekeeping.SELF_CHECK_NAME: housekeeping.SELF_CHECK_POLICY},
        channels=list(channels),
        zone=timezone.utc,
    )
    return RuntimeConfig(
        checks=configs, channels=channels, plan=plan, slurm=FixedSlurm(), zone=timezone.utc
    )


def play(
    story: Callable[[Scene], Awaitable[None]],
    a_world: RuntimeConfig,
    store: MemoryStore | None = None,
    clock: ManualClock | None = None,
) -> MemoryStore:
    """Run a story with a started engine, and close it."""
    store, clock = store or MemoryStore(), clock or ManualClock()

    async def main() -> None:
        engine = Engine(a_world, store, clock)
        await engine.start_leading("test")
        try:
            await story(Scene(engine, store, clock))
        finally:
            await engine.close()

    asyncio.run(main())
    return store
