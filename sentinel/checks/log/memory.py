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
from sentinel.checks.trial import Trial
from sentinel.core.clock import Instant
from sentinel.core.recall import recalled

MOST_PLACES = 64
"""Files of jobs that are over, so that a next job writing into the same one is read from there."""


MOST_SIZES = 4
"""Numbers of nodes, besides those of running jobs, for which it is kept how a training behaves."""


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

    def trying(self, now: Instant) -> Trial:
        """The trial of the watch on step times, which wakes nobody: only where sentinel is older."""
        return self.trial or Trial(began=now if self.logs or self.learned else None)

    def trying_early(self, now: Instant, lasts: float) -> Trial:
        """The trial of closer looks, which wake people: on every site, a new one too."""
        began = self.early.began if self.early else None
        return replace(self.early or Trial(), began=began or now, lasts=lasts)


def stored(memory: Mapping[str, Any]) -> Memory:
    """From the store; damaged memory is as good as none."""
    return recalled(memory, Memory) or Memory()
