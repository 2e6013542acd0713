"""What a log check keeps between runs."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.log.ask import Beat
from sentinel.checks.log.cadence import Learned
from sentinel.checks.log.file_offset import Place
from sentinel.checks.log.progress import Seen
from sentinel.checks.log.suspicion import Suspicion
from sentinel.core.clock import Instant, elapsed
from sentinel.core.recall import recalled

MOST_PLACES = 64
"""Files of jobs that are over, so that a next job writing into the same one is read from there."""


MOST_SIZES = 4
"""Numbers of nodes for which it is kept how a training behaves."""


WEEK = 7 * 86400.0
MOST_TRIED = 5


class Trial(Struct, frozen=True, kw_only=True):
    """The first week of a detector that came with an upgrade: it tells nothing yet.

    `began`: None where sentinel itself was new. `told`: what it would have said, by the moment.
    """

    began: Instant | None = None
    told: dict[str, str] = {}

    def silent(self, now: Instant) -> bool:
        """Whether the week still lasts."""
        return self.began is not None and elapsed(self.began, now) < WEEK

    def noted(self, moment: Instant | None, words: str) -> "Trial":
        """With one more that would have been told, its words as they are by now."""
        if not words or moment is None:
            return self
        told = {**self.told, str(moment.wall): words}
        return replace(self, told=dict([*told.items()][-MOST_TRIED:]))

    def words(self, now: Instant, who: str = "the watch on step times") -> str:
        """In the second week, what there would have been in the first."""
        over = self.began is not None and WEEK <= elapsed(self.began, now) < 2 * WEEK
        if not over or not self.told:
            return ""
        return f"in its first week {who} told nobody: " + "; ".join(self.told.values())


class Memory(Struct, frozen=True, kw_only=True):
    """Logs by job id, children that hang by path, and what was learned of this training
    by its number of nodes (which makes it another one).

    `told`: further subjects that were reported once, and have to be until the job is gone.
    `suspicions` by job id; `early`: the trial of alarms that come of closer looks.
    """

    logs: dict[str, Seen] = {}
    stuck: dict[str, proc.Stuck] = {}
    learned: dict[str, Learned] = {}
    places: dict[str, Place] = {}
    beats: dict[str, Beat] = {}
    told: tuple[str, ...] = ()
    trial: Trial | None = None
    suspicions: dict[str, Suspicion] = {}
    early: Trial | None = None

    def trying(self, now: Instant, trial: Trial | None) -> Trial:
        """A detector's trial; a memory without it is of an older sentinel."""
        return trial or Trial(began=now if self.logs or self.learned else None)


def stored(memory: Mapping[str, Any]) -> Memory:
    """From the store; damaged memory is as good as none."""
    return recalled(memory, Memory) or Memory()
