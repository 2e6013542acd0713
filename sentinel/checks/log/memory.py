"""What a log check keeps between runs."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.log.ask import HeartbeatFile
from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.closer_look_state import CloserLookState
from sentinel.checks.log.file_offset import ReadPosition
from sentinel.checks.log.progress import LogState
from sentinel.checks.trial import SilentTrial
from sentinel.core.clock import Instant
from sentinel.core.stored_memory import decode_memory

MAX_KEPT_POSITIONS = 64
"""Files of jobs that are over, so that a next job writing into the same one is read from there."""


MAX_KEPT_SIZES = 4
"""Numbers of nodes, besides those of running jobs, for which it is kept how a training behaves."""


class Memory(Struct, frozen=True, kw_only=True):
    """Logs by job id, children that hang by path, and what was learned of this training
    by its number of nodes (which makes it another one).

    `told`: further subjects that were reported once, and have to be until the job is gone.
    `suspicions` by job id; `early`: the trial of alarms that come of closer looks.
    """

    logs: dict[str, LogState] = {}
    stuck: dict[str, proc.StuckProcess] = {}
    learned: dict[str, TrainingBaseline] = {}
    places: dict[str, ReadPosition] = {}
    beats: dict[str, HeartbeatFile] = {}
    told: tuple[str, ...] = ()
    trial: SilentTrial | None = None
    suspicions: dict[str, CloserLookState] = {}
    early: SilentTrial | None = None

    def get_pace_trial(self, now: Instant) -> SilentTrial:
        """The trial of the watch on step times, which wakes nobody: only where sentinel is older."""
        return self.trial or SilentTrial(began=now if self.logs or self.learned else None)

    def get_early_trial(self, now: Instant, lasts: float) -> SilentTrial:
        """The trial of closer looks, which wake people: on every site, a new one too."""
        began = self.early.began if self.early else None
        return replace(self.early or SilentTrial(), began=began or now, lasts=lasts)


def load_memory(memory: Mapping[str, Any]) -> Memory:
    """From the store; damaged memory is as good as none."""
    return decode_memory(memory, Memory) or Memory()
