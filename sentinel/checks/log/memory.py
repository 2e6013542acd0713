"""What a log check keeps between runs."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sentinel import proc
from sentinel.checks.log.ask import Beat
from sentinel.checks.log.cadence import Learned
from sentinel.checks.log.file_offset import Place
from sentinel.checks.log.progress import Seen
from sentinel.core.recall import recalled

MOST_PLACES = 64
"""Files of jobs that are over, so that a next job writing into the same one is read from there."""


MOST_SIZES = 4
"""Numbers of nodes for which it is kept how a training behaves."""


class Memory(Struct, frozen=True, kw_only=True):
    """Logs by job id, children that hang by path, and what was learned of this training
    by its number of nodes (which makes it another one).

    `told`: further subjects that were reported once, and have to be until the job is gone.
    """

    logs: dict[str, Seen] = {}
    stuck: dict[str, proc.Stuck] = {}
    learned: dict[str, Learned] = {}
    places: dict[str, Place] = {}
    beats: dict[str, Beat] = {}
    told: tuple[str, ...] = ()


def stored(memory: Mapping[str, Any]) -> Memory:
    """From the store; damaged memory is as good as none."""
    return recalled(memory, Memory) or Memory()
