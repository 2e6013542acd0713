"""What a restart must not change: what mutes what, and news of what has happened."""

from pathlib import Path

from msgspec.structs import replace

from sentinel.alerting.settings import Inhibit, Match
from sentinel.core.model import Status
from sentinel.engine import housekeeping
from sentinel.engine.engine import Engine, RuntimeConfig
from sentinel.store.memory import MemoryStore
from sentinel.store.opening import open_store
from sentinel.testing import ManualClock
from tests.engine.worlds import Book, Says, Scene, play, world

OK, CRIT = Status.OK, Status.CRITICAL


def muting(slurm: Says, train: Says, log: Says, book: Book) -> RuntimeConfig:
    a_world = world({"slurm": slurm, "train": train, "log": log}, {"book": book})
    rule = Inhibit(when=Match(check="slurm"), mute=Match(check=["train", "slurm"]))
    a_world.plan = replace(a_world.plan, inhibit=[rule])
    return a_world


def about(book: Book) -> list[tuple[str, str]]:
    return [(n.check, n.reason) for n in book.got if n.check != housekeeping.SELF_CHECK_NAME]


def test_what_is_muted_stays_muted_over_a_restart(tmp_path: Path) -> None:
    """From a real state, whichever check runs first; the end of the cause tells what still
    fires. The log watch is not muted: jobs hang without slurmctld too."""
    slurm, train, log, book = Says(CRIT), Says(OK), Says(OK), Book()
    a_world, clock = muting(slurm, train, log, book), ManualClock()

    def opened() -> object:
        return open_store(str(tmp_path), clock.now()).store

    async def before(scene: Scene) -> None:
        await scene.engine.run_check("slurm")
        train.status = CRIT
        await scene.engine.run_check("train")
        await scene.engine.deliver_due()

    async def after(scene: Scene) -> None:
        log.status = CRIT
        scene.clock.advance(60)
        await scene.engine.review_alerts()
        for name in ("train", "log", "slurm"):
            await scene.engine.run_check(name)
            await scene.engine.deliver_due()
        assert about(book) == [("slurm", "firing"), ("log", "firing")]
        slurm.status = OK
        await scene.engine.run_check("slurm")
        await scene.engine.review_alerts()
        await scene.engine.deliver_due()

    play(before, a_world, opened(), clock)  # type: ignore[arg-type]
    play(after, a_world, opened(), clock)  # type: ignore[arg-type]
    assert about(book)[2:] == [("slurm", "resolved"), ("train", "firing")]


def test_a_cause_that_ends_while_nobody_watches_unmutes_at_the_next_look() -> None:
    """Not at the start, when nothing is known yet."""
    slurm, train, log, book = Says(CRIT), Says(CRIT), Says(OK), Book()
    a_world, clock = muting(slurm, train, log, book), ManualClock()

    async def before(scene: Scene) -> None:
        await scene.engine.run_check("slurm")
        await scene.engine.run_check("train")
        await scene.engine.deliver_due()

    async def after(scene: Scene) -> None:
        slurm.status = OK
        await scene.engine.run_check("train")
        await scene.engine.deliver_due()
        assert about(book) == [("slurm", "firing")]
        await scene.engine.run_check("slurm")
        await scene.engine.review_alerts()
        await scene.engine.deliver_due()

    store = play(before, a_world, clock=clock)
    play(after, a_world, store, clock)
    assert about(book)[1:] == [("slurm", "resolved"), ("train", "firing")]


def test_news_of_a_state_that_was_set_aside_is_told_and_ends() -> None:
    """After a day it is no trouble any more; it does not wait for a restart."""
    book, a_world = Book(), world({"disk": Says()}, {})
    a_world.channels = {"book": book}
    a_world.plan = replace(a_world.plan, channels=["book"])

    async def story(scene: Scene) -> None:
        news = ["/state: damaged, set aside as x"]
        engine = Engine(a_world, MemoryStore(), scene.clock, news)
        await engine.start_leading("test")
        for seconds in (0, 86399, 1):
            scene.clock.advance(seconds)
            await engine.check_self()
            await engine.deliver_due()
        await engine.close()

    play(story, a_world)
    told = [(n.subject, n.reason, n.summary) for n in book.got]
    assert told == [
        ("state", "firing", "/state: damaged, set aside as x"),
        ("state", "resolved", "written"),
    ]
