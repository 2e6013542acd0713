"""Starts of a training that get nowhere: each ends before its step is above that of an earlier one.
Pure."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from sentinel.checks.log.topics import TopicAnswer
from sentinel.core import hostlist
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.text import visible

MAX_FUTILE_STARTS = 3
"""So many starts in a row that got nowhere are an alarm."""

MAX_KEPT_STARTS = 8
"""How many starts are remembered."""

NOTHING = -1.0
"""Below every step: a start that made none."""


class FinishedStart(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A start of the training that is over, of a job or inside one."""

    first: float | None = None  # The first step that was seen.
    highest: float | None = None  # The highest.
    cause: str = ""  # The first error in its log.
    nodes: str = ""  # Host list of its nodes.


def judge_futile_starts(
    starts: Sequence[FinishedStart], current: float | None
) -> TopicAnswer | None:
    """An alarm where the last starts got nowhere, and the current one has not got further yet.

    A lower number is progress for a hang, since the training goes on. Here it is none: the steps
    were made before."""
    futile, reached = find_futile_starts(starts)
    if len(futile) < MAX_FUTILE_STARTS or (current is not None and current > reached):
        return None
    causes = ", ".join(
        f"{count} by {cause}" if count > 1 else cause
        for cause, count in Counter(one.cause or "no known error" for one in futile).most_common()
    )
    shared = _find_shared_nodes(futile)
    common = f"; all of them had {visible(shared)}" if shared else ""
    return TopicAnswer(
        topic="restarts",
        status=Status.CRITICAL,
        summary=f"{len(futile)} starts in a row did not get beyond step {reached:,.0f}: {causes}{common}",
        values={"starts": len(futile), "step": reached},
    )


def find_futile_starts(
    starts: Sequence[FinishedStart],
) -> tuple[Sequence[FinishedStart], float]:
    """The last starts that did not get above the step that was reached before them, and that step.

    A start that began below all earlier ones was begun anew by somebody, so it is counted from
    there. Where no start made a step the log may have no number, and nothing is said."""
    lowest, since = float("inf"), 0
    for place, one in enumerate(starts):
        first = lowest if one.first is None else one.first
        since = place if first < lowest and place else since
        lowest = min(lowest, first)
    recent = starts[since:]
    steps = [NOTHING if one.highest is None else one.highest for one in recent]
    reached = max(steps, default=NOTHING)
    if reached == NOTHING:
        return (), NOTHING
    return recent[steps.index(reached) + 1 :], reached


def limit_starts(starts: Sequence[FinishedStart]) -> tuple[FinishedStart, ...]:
    """The last starts, with the one that got furthest: the others are compared with it."""
    if len(starts) <= MAX_KEPT_STARTS:
        return tuple(starts)
    older, recent = starts[: 1 - MAX_KEPT_STARTS], starts[1 - MAX_KEPT_STARTS :]
    best = max(older, key=lambda one: NOTHING if one.highest is None else one.highest)
    return (best, *recent)


def _find_shared_nodes(starts: Sequence[FinishedStart]) -> str:
    """The nodes that all of them had, if they did not all have the same ones."""
    try:
        sets = [set(hostlist.expand_printed(one.nodes)) for one in starts]
    except Invalid:
        return ""
    shared = set.intersection(*sets)
    if not shared or all(nodes == shared for nodes in sets):
        return ""
    return hostlist.fold_for_people(sorted(shared))
