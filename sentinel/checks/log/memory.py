"""What a log check remembers between runs."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.log.ask import HeartbeatFile
from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.closer_look_state import CloserLookState
from sentinel.checks.log.file_offset import ReadPosition
from sentinel.checks.log.log_state import LogState
from sentinel.checks.log.run_tracker import RunTrackers
from sentinel.checks.trial import SilentTrial
from sentinel.core.clock import Instant
from sentinel.core.stored_memory import decode_memory

MAX_KEPT_POSITIONS = 64
"""For this many files of ended jobs the read position is stored. If the next job writes to the same
file, reading continues there."""


MAX_KEPT_SIZES = 4
"""Besides those of running jobs, this many numbers of nodes have a stored baseline."""


class Memory(Struct, frozen=True, kw_only=True):
    """The memory of one check, or of one training.

    told: Further topics that were reported once. They are reported until the job is gone.
    suspicions: State of the closer looks, by job id.
    early: The trial of alarms from closer looks.
    """

    logs: dict[str, LogState] = {}  # State of each log, by job id.
    stuck: dict[str, proc.StuckProcess] = {}  # Child processes that hang, by path.
    learned: dict[str, TrainingBaseline] = {}  # What was learned, by number of nodes.
    places: dict[str, ReadPosition] = {}  # Where reading stopped, by path.
    beats: dict[str, HeartbeatFile] = {}  # Heartbeat files, by path.
    told: tuple[str, ...] = ()
    trial: SilentTrial | None = None  # The trial of the search for slowdowns.
    suspicions: dict[str, CloserLookState] = {}
    early: SilentTrial | None = None
    tracked: RunTrackers = RunTrackers()  # What the ledger of runs needs to know.

    def get_pace_trial(self, now: Instant) -> SilentTrial:
        """The trial of the check of step times, which notifies nobody. If this installation of
        sentinel is new, it has no beginning."""
        return self.trial or SilentTrial(began=now if self.logs or self.learned else None)

    def get_early_trial(self, now: Instant, lasts: float) -> SilentTrial:
        """The trial of closer looks, which notify people. It applies to every site, even a new one."""
        began = self.early.began if self.early else None
        return replace(self.early or SilentTrial(), began=began or now, lasts=lasts)


def load_memory(memory: Mapping[str, Any]) -> Memory:
    """The memory from the store. A damaged memory is replaced by an empty one."""
    return decode_memory(memory, Memory) or Memory()
