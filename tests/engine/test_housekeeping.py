"""The state forgets what is old, whoever keeps house."""

from sentinel.core.clock import Instant
from sentinel.engine.tick import run_pass
from sentinel.store.memory import MemoryStore
from tests.engine.worlds import Book, Says, Scene, play, world


class Counting(MemoryStore):
    """A store that counts how often it is asked to forget."""

    def __init__(self) -> None:
        super().__init__()
        self.pruned = 0

    def prune(self, now: Instant) -> None:
        self.pruned += 1
        super().prune(now)


def test_ticks_forget_once_an_hour() -> None:
    """A tick lives for seconds: the state knows when it was. A wall clock set back counts anew."""
    store = Counting()

    async def story(scene: Scene) -> None:
        for minutes, pruned in ((0, 1), (1, 1), (58, 1), (2, 2), (1, 2)):
            scene.clock.advance(minutes * 60.0)
            await run_pass(scene.engine, scene.clock.now(), everything=True)
            assert store.pruned == pruned
        scene.clock.jump(-100 * 86400.0)
        await run_pass(scene.engine, scene.clock.now(), everything=True)
        assert store.pruned == 3

    play(story, world({"fs": Says()}, {"book": Book()}), store)


def test_what_cannot_be_loaded_is_told_by_the_channels_that_can() -> None:
    """At the first look at itself, in one message; the next start, at which it loads, ends that."""
    good = Book()
    config = world({"fs": Says()}, {"good": good})

    async def story(scene: Scene) -> None:
        scene.engine.note_unloaded({"channel mail": "No module named 'aiosmtplib'"})
        await scene.engine.check_self()
        await scene.engine.deliver_due()
        scene.engine.note_unloaded({})
        await scene.engine.check_self()
        await scene.engine.deliver_due()

    play(story, config)
    told = [(n.subject, n.reason, n.summary) for n in good.got]
    assert told == [
        (
            "installation",
            "firing",
            "cannot be loaded, while the rest runs: channel mail: No module named 'aiosmtplib'",
        ),
        ("installation", "resolved", "all parts are loaded"),
    ]
