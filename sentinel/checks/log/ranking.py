"""Which of several troubles is told first, and what is only printed. Pure.

One rank fails, and all others say so: what nothing else brings about comes before what follows.
"""

from collections.abc import Sequence

from sentinel.checks.log.known_troubles import (
    ECHO_KIND_NAMES,
    EXCEPTION,
    NETWORK_EXCEPTION_KIND,
    ROOT_KIND_NAMES,
    TRACEBACK,
)

LATE_KINDS = frozenset((
    NETWORK_EXCEPTION_KIND, "collective timeout of another rank", "NCCL timeout", "NCCL heartbeat", "NCCL connection",
    "NCCL error", "Gloo connection", "rendezvous", "JAX coordination",
))  # fmt: skip
"""What ranks say of one that is late or gone: a watchdog speaks minutes after the exception that it waits for."""

NCCL_HEARTBEAT_KIND = "NCCL heartbeat"
"""A watchdog that is stuck itself: it waits for the collective that timed out."""

ROOT, CAUSE, ECHO, BARE = range(4)
"""Nothing else brings it about; a cause; it follows; a traceback of which no more is known."""


def rank_trouble(kind: str) -> int:
    """How near to the cause a kind of trouble is: the least is worth most."""
    if kind in ROOT_KIND_NAMES:
        return ROOT
    if kind == TRACEBACK:
        return BARE
    return ECHO if kind in ECHO_KIND_NAMES else CAUSE


def find_first_cause(kinds: Sequence[str]) -> int | None:
    """Which of these, in the order in which they came, is the one by which the others followed."""
    first = min(range(len(kinds)), key=lambda at: rank_trouble(kinds[at]), default=None)
    if first is None or kinds[first] not in LATE_KINDS:
        return first
    if EXCEPTION in kinds:
        return kinds.index(EXCEPTION)
    same = [at for at, kind in enumerate(kinds) if rank_trouble(kind) == CAUSE]
    return next((at for at in same if kinds[at] != NCCL_HEARTBEAT_KIND), first)
