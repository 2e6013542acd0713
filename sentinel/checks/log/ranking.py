"""Decides which of several errors is reported first, and which text is only printed. Pure.

One rank fails, and then all others report errors. So an error that no other error causes comes
before its consequences.
"""

from collections.abc import Sequence

from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.trouble_kind import (
    EXCEPTION,
    KILLED_KIND,
    LAST_WORDS_KIND,
    NCCL_CALL_KIND,
    NETWORK_EXCEPTION_KIND,
    NEW_KINDS,
    NEW_LINE_KIND,
    TRACEBACK,
    UNKNOWN_KIND,
)
from sentinel.checks.log.trouble_roles import ECHO_KIND_NAMES, ROOT_KIND_NAMES

LATE_KINDS = frozenset((
    NETWORK_EXCEPTION_KIND, "collective timeout of another rank", "NCCL timeout", "NCCL heartbeat", "NCCL connection",
    "NCCL error", "Gloo connection", "rendezvous", "JAX coordination",
))  # fmt: skip
"""Errors that ranks print about a rank that is late or gone. A watchdog prints its error minutes
after the exception that it waits for."""

UNKNOWN_KINDS = (UNKNOWN_KIND, NCCL_CALL_KIND)
"""Errors that no row of the table explains. They come before those that follow from others, and
before those that ranks print about a rank that is late or gone, if they are above these."""

NCCL_HEARTBEAT_KIND = "NCCL heartbeat"
"""A watchdog that is stuck itself, because it waits for the collective that timed out."""

ROOT, CAUSE, ECHO, BARE = range(4)
"""The ranks: an error that nothing else causes; a cause; a consequence; a traceback without a known
exception."""


def rank_trouble(kind: str) -> int:
    """How close an error is to the cause. The smallest value is the closest."""
    if kind in ROOT_KIND_NAMES:
        return ROOT
    if kind in (TRACEBACK, NEW_LINE_KIND):
        return BARE
    return ECHO if kind in (*ECHO_KIND_NAMES, LAST_WORDS_KIND, UNKNOWN_KIND) else CAUSE


def keep_founded(troubles: Sequence[LogTrouble]) -> tuple[LogTrouble, ...]:
    """The errors, if one of them is more than a line that was new: novelty decides nothing."""
    return tuple(troubles) if any(one.kind not in NEW_KINDS for one in troubles) else ()


def find_first_cause(kinds: Sequence[str]) -> int | None:
    """The index of the error that caused the others. The errors are in the order of the log."""
    own = [at for at, kind in enumerate(kinds) if kind in UNKNOWN_KINDS]
    known = [at for at, kind in enumerate(kinds) if kind not in (*UNKNOWN_KINDS, NEW_LINE_KIND)]
    first = min(known or own, key=lambda at: rank_trouble(kinds[at]), default=None)
    if first is not None and kinds[first] == KILLED_KIND:
        other = [at for at in known if kinds[at] not in (KILLED_KIND, *LATE_KINDS)]
        sure = (at for at in other if rank_trouble(kinds[at]) <= (CAUSE if at < first else ROOT))
        first = next(sure, first)  # whoever failed before is why the others were killed
    if first is None or (kinds[first] not in LATE_KINDS and rank_trouble(kinds[first]) <= CAUSE):
        return first
    if EXCEPTION in kinds:
        return kinds.index(EXCEPTION)
    if own and own[0] < first:
        return own[0]
    same = [at for at, kind in enumerate(kinds) if rank_trouble(kind) == CAUSE]
    return next((at for at in same if kinds[at] != NCCL_HEARTBEAT_KIND), first)
