"""The state as commands by hand see it."""

import sys

from sentinel import app
from sentinel.cli import USAGE
from sentinel.clock import SystemClock
from sentinel.core.errors import SentinelError
from sentinel.core.mute import Silence
from sentinel.core.ports import Store
from sentinel.core.settings import Settings


class NoSuchAlert(SentinelError):
    """The id is none that the state knows."""

    exit_code = USAGE


class NoState(SentinelError):
    """There is nothing to write into."""

    exit_code = 66


def _opened(settings: Settings, clock: SystemClock, writing: bool) -> tuple[Store, list[str]]:
    if app.has_state(settings):
        return app.open_state(settings, clock)
    text = f"{app.state_of(settings)}: no state yet; sentinel run or sentinel tick makes it"
    if writing:
        raise NoState(text)
    from sentinel.store.memory import MemoryStore

    print(f"sentinel: {text}", file=sys.stderr)
    return MemoryStore(), []


class State:
    """The store opened beside a running sentinel, with the clock and zone to show it by.

    Where nothing was ever written it is an empty one, and stderr says so: whoever only looks
    must not make it, perhaps as another user. Who is `writing` gets NoState.
    """

    def __init__(self, config: str | None, *, writing: bool = False) -> None:
        settings = app.find_settings(config) or app.embedded()
        clock = SystemClock()
        self.store, self.notices = _opened(settings, clock, writing)
        self.settings, self.now, self.zone = settings, clock.now(), app.zone(settings)

    def __enter__(self) -> "State":
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def silences(self) -> list[Silence]:
        """Those in force now, written by hand or standing in the file."""
        from sentinel.core.windows import standing

        by_hand = [s for s in self.store.orders().silences if s.starts <= self.now.wall < s.ends]
        return [*by_hand, *standing(self.settings.silences, self.now, self.zone)]

    def find(self, word: str) -> str:
        """The alert's full id from an id, its beginning, or a message's key."""
        ids = {a.id for a in self.store.alerts()} | {t.alert for t in self.store.history(10_000)}
        fitting = {i for i in ids if i.startswith(word)} or ids & {word.rpartition("-")[0]}
        if len(fitting) != 1:
            several = f"{len(fitting)} alerts begin with" if fitting else "no alert has the id"
            raise NoSuchAlert(
                f"{several} {word!r}; see: sentinel alerts list, sentinel alerts history"
            )
        return fitting.pop()
