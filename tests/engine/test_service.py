"""Reloads: in their order, by a standby too, and always with a word to systemd at the end."""

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Event

import pytest
from msgspec.structs import replace

from sentinel.core.errors import ChannelError, Fenced, SentinelError
from sentinel.core.model import Batch, Status
from sentinel.engine.engine import Engine
from sentinel.engine.runtime import RuntimeConfig
from sentinel.engine.service import FIRST_BEAT_AFTER_S, SentinelService
from sentinel.store.memory import MemoryStore
from sentinel.testing import ManualClock
from tests.engine.worlds import Book, Says, world

PATIENCE = 20.0
Story = Callable[[SentinelService, Engine], Awaitable[None]]


class Systemd:
    """What systemd hears."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(folder / "notify"))
        self._socket.setblocking(False)
        self.heard: list[str] = []
        monkeypatch.setenv("NOTIFY_SOCKET", str(folder / "notify"))

    async def wait(self, text: str) -> None:
        """Until this was heard, after all that was heard before."""
        while True:
            try:
                self.heard.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                await asyncio.sleep(0.01)
                continue
            if text in self.heard[-1]:
                return

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    found = Systemd(tmp_path, monkeypatch)
    yield found
    found.close()


def a_world(*names: str) -> RuntimeConfig:
    return world({name: Says(Status.CRITICAL) for name in names}, {"book": Book()})


def serve(
    story: Story, reload: Callable[[], RuntimeConfig], store: MemoryStore | None = None
) -> None:
    """A service that obeys signals while the story is told; not started."""

    async def main() -> None:
        engine = Engine(a_world("old"), store or MemoryStore(), ManualClock())
        service = SentinelService(engine, reload)
        service.install_signal_handlers()
        await asyncio.wait_for(story(service, engine), PATIENCE)
        service.request_stop()

    asyncio.run(main())


def hang_up() -> None:
    os.kill(os.getpid(), signal.SIGHUP)


async def started(
    service: SentinelService, engine: Engine, systemd: Systemd
) -> asyncio.Future[None]:
    await engine.start_leading("test")
    running = asyncio.ensure_future(service.run())
    await systemd.wait("READY=1")
    return running


def test_a_standby_takes_up_a_new_file_and_leads_with_it(systemd: Systemd) -> None:
    """It is ready again afterwards: systemd would wait for that for ever."""

    async def story(service: SentinelService, engine: Engine) -> None:
        hang_up()
        await systemd.wait("RELOADING=1")
        await systemd.wait("READY=1\nSTATUS=standing by, 2 checks")
        running = await started(service, engine, systemd)
        assert set(engine.world.checks) == {"new", "newer"}
        service.request_stop()
        await running

    serve(story, lambda: a_world("new", "newer"))


@pytest.mark.parametrize("error", [SentinelError("bad file"), RuntimeError("bug")])
def test_a_reload_that_fails_keeps_the_old_file_and_is_over(
    systemd: Systemd, error: Exception
) -> None:
    """Whatever it fails of."""

    def reload() -> RuntimeConfig:
        raise error

    async def story(service: SentinelService, engine: Engine) -> None:
        running = await started(service, engine, systemd)
        hang_up()
        await systemd.wait("RELOADING=1")
        await systemd.wait("READY=1\nSTATUS=watching, 1 checks")
        assert set(engine.world.checks) == {"old"}
        service.request_stop()
        await running

    serve(story, reload)


def test_of_two_reloads_the_later_one_counts(systemd: Systemd) -> None:
    """Also where the first takes longer: Slurm may be asked for its name meanwhile."""
    files, slow = ["first", "second"], Event()

    def reload() -> RuntimeConfig:
        name = files.pop(0)
        if name == "first":
            assert slow.wait(PATIENCE)
        return a_world(name)

    async def story(service: SentinelService, engine: Engine) -> None:
        running = await started(service, engine, systemd)
        hang_up()
        await systemd.wait("RELOADING=1")
        hang_up()
        await asyncio.sleep(0.05)  # a second one that did not wait would be done by now
        slow.set()
        await systemd.wait("READY=1")
        await systemd.wait("READY=1")
        assert set(engine.world.checks) == {"second"}
        service.request_stop()
        await running

    serve(story, reload)


def test_a_leader_that_finds_at_a_reload_that_it_is_none_ends(systemd: Systemd) -> None:
    """It has an alert to end, and cannot write that any more."""

    class Taken(MemoryStore):
        taken = False

        def commit(self, batch: Batch) -> None:
            if self.taken:
                raise Fenced("another sentinel took over")
            super().commit(batch)

    store = Taken()

    async def story(service: SentinelService, engine: Engine) -> None:
        running = await started(service, engine, systemd)
        while not await engine.alerts():
            await asyncio.sleep(0.01)
        store.taken = True
        hang_up()
        with pytest.raises(Fenced):
            await running

    serve(story, lambda: a_world("new"), store)


def test_a_new_time_zone_rules_the_calendar_from_the_reload_on(systemd: Systemd) -> None:
    """`cron` and what people read of it must speak of one clock."""
    nepal = timezone(timedelta(hours=5, minutes=45))

    def reload() -> RuntimeConfig:
        new = a_world("nightly")
        config = new.checks["nightly"]
        common = replace(config.common, cron="0 3 * * *")
        new.checks = {"nightly": replace(config, common=common)}
        new.zone = nepal
        return new

    async def story(service: SentinelService, engine: Engine) -> None:
        running = await started(service, engine, systemd)
        hang_up()
        await systemd.wait("RELOADING=1")
        await systemd.wait("READY=1")
        (job,) = service._schedule._scheduler.get_jobs()
        at = job.trigger.get_next_fire_time(None, datetime.now(timezone.utc))
        assert (at.astimezone(nepal).hour, at.astimezone(nepal).minute) == (3, 0)
        service.request_stop()
        await running

    serve(story, reload)


def test_a_heartbeat_that_comes_with_a_reload_is_heard_at_once(systemd: Systemd) -> None:
    """It waits for no interval of the file before, which may be five minutes or an hour."""
    heard = asyncio.Event()

    class Outside:
        async def announce_start(self) -> None:
            """Nothing."""

        async def send_heartbeat(self, well: bool, text: str) -> None:
            heard.set()

    def reload() -> RuntimeConfig:
        new = a_world("old")
        new.pulse, new.pulse_every = Outside(), 0.01
        return new

    async def story(service: SentinelService, engine: Engine) -> None:
        running = await started(service, engine, systemd)
        hang_up()
        await asyncio.wait_for(heard.wait(), FIRST_BEAT_AFTER_S / 2)
        service.request_stop()
        await running

    serve(story, reload)


@pytest.mark.parametrize(("stopped_for", "is_sent"), [(301.0, True), (60.0, False)])
def test_a_start_sends_what_was_refused(
    systemd: Systemd, stopped_for: float, is_sent: bool
) -> None:
    """The remedy for a refusal is a new configuration and a restart; who is left to wait an hour takes
    it for a failure. A service that crashes and starts again hammers nobody."""
    store, clock, book = MemoryStore(), ManualClock(), Book()
    a_world = world({"disk": Says(Status.CRITICAL)}, {"book": book})
    book.error = ChannelError("535 wrong password", permanent=True)

    async def main() -> None:
        before = Engine(a_world, store, clock)
        await before.start_leading("before")
        await before.run_check("disk")
        await before.deliver_due()
        await before.close()
        clock.advance(stopped_for)
        book.error = None
        engine = Engine(a_world, store, clock)
        service = SentinelService(engine, lambda: a_world)
        running = await started(service, engine, systemd)
        await engine.run_check("disk")
        if is_sent:
            while not book.reasons:
                await asyncio.sleep(0.01)
        service.request_stop()
        await running

    asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert book.reasons == (["firing"] if is_sent else [])
