"""When nothing more is done: after a reload, a lost state, a log that cannot be written."""

import asyncio
import threading
from pathlib import Path

import pytest

from sentinel.core.errors import StoreError
from sentinel.core.model import Report
from sentinel.core.ports import Context
from sentinel.engine.runtime import RuntimeConfig
from sentinel.store.memory import MemoryStore
from sentinel.store.opening import open_store
from sentinel.testing import ManualClock
from tests.actions.model import Change
from tests.actions.test_service import Stage, Wishes, drained, passes
from tests.actions.world import node
from tests.engine.worlds import Book, Scene, play
from tests.store.book_memory import MemoryBooks

PATIENCE = 20.0


class Held(Wishes):
    """A check that is at work until it is let go."""

    def __init__(self, *targets: str) -> None:
        super().__init__(*targets)
        self.at_work, self.go_on = threading.Event(), threading.Event()

    def run(self, ctx: Context) -> Report:
        self.at_work.set()
        assert self.go_on.wait(PATIENCE)
        return super().run(ctx)


class Shut(MemoryBooks):
    """A log in which no switch can be thrown while it is `shut`."""

    shut = True

    def set_switch(self, *args: object) -> None:
        if self.shut:
            raise StoreError("database is locked")
        super().set_switch(*args)  # type: ignore[arg-type]


class Damaged(MemoryStore):
    """A store that has news once."""

    def __init__(self) -> None:
        super().__init__()
        self._news: tuple[str, ...] = ("the state was damaged",)

    def take_notices(self) -> tuple[str, ...]:
        news, self._news = self._news, ()
        return news


def other(wishes: Wishes, book: Book) -> RuntimeConfig:
    """What a reload makes of the file with other settings of the check."""
    return Stage(wishes, drained(3), book).world


async def happened(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, PATIENCE)


def test_what_an_older_configuration_asks_for_is_not_done() -> None:
    """Somebody took `undrain: true` out while the check was at work: they may have had to."""
    book, held = Book(), Held("n1")
    stage = Stage(held, drained(1), book)

    async def story(scene: Scene) -> None:
        run = asyncio.ensure_future(scene.engine.run_check("drained"))
        await happened(held.at_work)
        await scene.engine.switch_config(other(Wishes("n1", granted=False), book))
        held.go_on.set()
        await run

    play(story, stage.world)
    assert (stage.slurm.changes, stage.log.records()) == ([], [])


@pytest.mark.parametrize("ends", ["reload", "stop"])
def test_nothing_more_is_begun_after_a_reload_or_a_stop(ends: str) -> None:
    """What is being done is finished; the rest of the list is not."""
    book, begun, go_on = Book(), threading.Event(), threading.Event()
    stage = Stage(Wishes("n1", "n2", "n3"), drained(3), book)

    def held_up(_change: Change) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    stage.slurm.before = held_up

    async def story(scene: Scene) -> None:
        run = asyncio.ensure_future(scene.engine.run_check("drained"))
        await happened(begun)
        if ends == "reload":
            await scene.engine.switch_config(other(Wishes("n1"), book))
        else:
            scene.engine.stop_acting()
        go_on.set()
        await run

    play(story, stage.world)
    assert [c.node for c in stage.slurm.changes] == ["n1"]
    assert [(r.target, r.outcome.value) for r in stage.log.records()] == [("n1", "done")]


def test_a_long_action_holds_up_no_other_check() -> None:
    """The second is looked at, committed and told while the first still acts."""
    book, begun, go_on = Book(), threading.Event(), threading.Event()
    stage = Stage(Wishes("n1"), drained(2), book)
    config = stage.world.checks["drained"]
    stage.world.checks = {"drained": config, "too": type(config)(
        name="too", common=config.common, plugin=Wishes("n2", granted=False)
    )}  # fmt: skip
    stage.world.plan.policies["too"] = stage.world.plan.policies["drained"]  # type: ignore[index]

    def held_up(_change: Change) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    stage.slurm.before = held_up

    async def story(scene: Scene) -> None:
        first = asyncio.ensure_future(scene.engine.run_check("drained"))
        await happened(begun)
        second = asyncio.ensure_future(scene.engine.run_check("too"))
        while not any(run.check == "too" for run in await scene.engine.read_runs()):
            await asyncio.sleep(0.01)
        await scene.engine.prune_state()
        assert not first.done()
        go_on.set()
        await asyncio.gather(first, second)

    play(lambda scene: asyncio.wait_for(story(scene), PATIENCE), stage.world)


def test_the_loss_of_a_state_stops_the_very_next_action(tmp_path: Path) -> None:
    """The run that meets it is the one that asks: nobody knows any more what was done this hour."""
    book, clock = Book(), ManualClock()
    stage = Stage(Wishes("n1"), [node("n1", drained=False)], book)

    async def story(scene: Scene) -> None:
        await scene.engine.run_check("drained")
        for file in tmp_path.glob("sentinel.db*"):
            file.unlink()
        stage.slurm.by_name["n1"] = node("n1")
        await scene.engine.run_check("drained")

    play(story, stage.world, open_store(str(tmp_path), clock.now()).store, clock)  # type: ignore[arg-type]
    assert stage.slurm.changes == []
    assert [r.rule for r in stage.log.records()] == ["maintenance"]


def test_until_the_loss_is_written_down_nothing_is_done() -> None:
    """And sentinel says so."""
    book = Book()
    stage = Stage(Wishes("n1"), drained(1), book, books=Shut)
    log = stage.log
    assert isinstance(log, Shut)

    async def story(scene: Scene) -> None:
        await passes(scene, 2)
        await scene.engine.check_self()
        await scene.engine.deliver_due()
        assert stage.log.records() == []
        log.shut = False
        await passes(scene)

    play(story, stage.world, Damaged())
    assert stage.slurm.changes == []
    assert [r.rule for r in stage.log.records()] == ["maintenance"]
    (own,) = [n.summary for n in book.got if n.check == "sentinel"]
    assert own == (
        "the state was damaged; no action is taken, the log of actions cannot be written: "
        "database is locked"
    )


def test_a_bug_in_an_action_is_told_and_costs_the_check_nothing() -> None:
    """With the error, so that its author can be told; a reload may have mended it."""
    book = Book()
    stage = Stage(Wishes("n1"), drained(1), book)

    def broken(_name: str) -> None:
        raise KeyError("n1")

    stage.slurm.node = broken  # type: ignore[method-assign, assignment]

    async def story(scene: Scene) -> None:
        await passes(scene)
        await scene.engine.check_self()
        await scene.engine.deliver_due()
        await scene.engine.switch_config(other(Wishes(), book))
        await scene.engine.check_self()
        await scene.engine.deliver_due()

    play(story, stage.world)
    assert book.reasons[0] == "firing"
    own = [(n.reason, n.summary) for n in book.got if n.check == "sentinel"]
    assert own == [
        ("firing", "no action is taken, internal error: KeyError('n1')"),
        ("resolved", "written"),
    ]
