"""What the same tail says besides: losses, errors, speed. Pure.

Each has a subject of its own, so that it comes and goes by itself, and is reported from the
first time it was seen: a training that never had trouble has one line.
"""

from collections.abc import Mapping

from msgspec import Struct

from sentinel.checks.log import spikes
from sentinel.checks.log.cadence import Learned
from sentinel.checks.log.known_troubles import EXCEPTION, NETWORK_EXCEPTION
from sentinel.checks.log.losses import (
    AT_MINIMUM,
    LEFT_OUT,
    NAN_ITERATIONS,
    OVERFLOWED,
    SKIPPED,
)
from sentinel.checks.log.progress import GROWTH, Seen, usual
from sentinel.checks.log.ranking import first_cause
from sentinel.checks.log.slowdown import MESSAGE, words
from sentinel.checks.log.troubles import Trouble
from sentinel.core.model import Status, Value
from sentinel.core.text import shortened, visible

TOPICS = ("loss", "errors", "speed", "step time")
"""The second words of the subjects."""


LOST = {
    LEFT_OUT: "the loss is not on the line, the last {bad} times: Megatron leaves a NaN out",
    NAN_ITERATIONS: "the trainer counted iterations with a NaN loss on the last {bad} lines",
    AT_MINIMUM: "the last {bad} steps were skipped at the least loss scale: nothing is learned",
    OVERFLOWED: "the last {bad} steps were skipped: gradients overflow at every loss scale",
    SKIPPED: "the last {bad} iterations were skipped: gradients overflow at every loss scale",
}
"""What is told of a loss that does not stand there as a NaN."""

MOST_SKIPPED = 50
"""Iterations in a row that may be skipped while the loss scale is found: from 2**32, where
Megatron begins (megatron/training/arguments.py), to 1 are 32 halvings."""


MAX_AT_MINIMUM = 10
"""Steps in a row that may be skipped at the least loss scale: after a few steps that went well the
scale is raised again."""


SHOWN = 120
"""Characters of an exception that the summary quotes."""


class Aside(Struct, frozen=True, kw_only=True):
    """One answer about a topic."""

    topic: str
    status: Status
    summary: str
    details: str = ""
    values: Mapping[str, Value] = {}


class Wishes(Struct, frozen=True, kw_only=True):
    """`nan_after` losses in a row; `slower_than` percent of the usual rate, None: never;
    `silent`: what watches step times is tried out."""

    nan_after: int
    slower_than: float | None
    silent: bool = False


def asides(seen: Seen, learned: Learned, wishes: Wishes, nodes: Mapping[str, str]) -> list[Aside]:
    """Everything there is to say; `nodes`: the node's name for an address in an error."""
    said = [_loss(seen, wishes), _errors(seen, nodes), _speed(seen, learned, wishes)]
    said += [_pace(seen, learned, wishes), _spike(seen)]
    return [one for one in said if one]


def lines(troubles: tuple[Trouble, ...], nodes: Mapping[str, str]) -> str:
    """Where each came from, and what it said."""
    return "\n".join(f"{_where(one, nodes)}{one.line}" for one in troubles)


def cause(troubles: tuple[Trouble, ...], nodes: Mapping[str, str]) -> str:
    """The first trouble that nothing else brings about, else the first that is no echo of another, in
    a few words: `NCCL connection on node-3, to node-7`."""
    at = first_cause([one.kind for one in troubles])
    if at is None:
        return ""
    first = troubles[at]
    where = f" on {first.where}" if first.host and not first.rank else ""
    where = f" of {first.where}" if first.rank else where
    peer = visible(nodes.get(first.peer) or first.peer)
    more = f" and {len(troubles) - 1} more" if len(troubles) > 1 else ""
    own = first.kind in (EXCEPTION, NETWORK_EXCEPTION)
    said = f" ({shortened(first.line, SHOWN)})" if own else ""
    return f"{visible(first.kind)}{where}{f', peer {peer}' if peer else ''}{said}{more}"


def _loss(seen: Seen, wishes: Wishes) -> Aside | None:
    if not seen.losses:
        return None
    name, bad = max(seen.losses.items(), key=lambda one: one[1] / _patience(one[0], wishes))
    numbers: dict[str, Value] = {"bad": bad, "name": visible(name)}
    if bad >= _patience(name, wishes):
        summary = LOST.get(name, "{name} is NaN or infinite, the last {bad} times")
        told = summary.format(name="the loss" if name == "loss" else visible(name), bad=bad)
        return Aside(topic="loss", status=Status.CRITICAL, summary=told, values=numbers)
    least = (
        f"finite but for the last {bad}"
        if bad and name not in (SKIPPED, AT_MINIMUM, OVERFLOWED)
        else "finite"
    )
    return Aside(topic="loss", status=Status.OK, summary=least, values=numbers)


def _spike(seen: Seen) -> Aside | None:
    """A warning: a person decides whether to go back to a checkpoint."""
    told = spikes.words(seen.course)
    numbers: dict[str, Value] = (
        {"loss": seen.course.high[-1], "usual": seen.course.middle} if told else {}
    )
    return (
        Aside(topic="loss", status=Status.WARNING, summary=told, values=numbers) if told else None
    )


def _patience(name: str, wishes: Wishes) -> int:
    own = {SKIPPED: MOST_SKIPPED, OVERFLOWED: MOST_SKIPPED, AT_MINIMUM: MAX_AT_MINIMUM}
    return own.get(name, wishes.nan_after)


def _errors(seen: Seen, nodes: Mapping[str, str]) -> Aside:
    at = first_cause([one.kind for one in seen.troubles])
    if at is None:
        return Aside(topic="errors", status=Status.OK, summary="none since it last advanced")
    peers = sorted({nodes.get(one.peer, "") for one in seen.troubles} - {""})
    first = seen.troubles[at]
    return Aside(
        topic="errors",
        status=Status.WARNING,
        summary=cause(seen.troubles, nodes) + ", and no progress since",
        details=lines(seen.troubles, nodes),
        values={
            "count": len(seen.troubles),
            "rank": first.rank or None,
            "host": first.host or None,
            "peers": ",".join(peers) or None,
        },
    )


def _speed(seen: Seen, learned: Learned, wishes: Wishes) -> Aside | None:
    name = next(iter(seen.marks), GROWTH)
    normal = usual(learned.rates.get(name, ()))
    if wishes.slower_than is None or seen.speed is None or name == GROWTH:
        return None
    rate = seen.speed.lately
    if rate is None or not normal:
        return Aside(topic="speed", status=Status.OK, summary="not yet known what is usual")
    percent = 100 * rate / normal
    told = f"{percent:.0f}% of its usual {_per(normal)} of {visible(name)}"
    numbers: dict[str, Value] = {"percent": round(percent, 1), "per_hour": round(rate * 3600, 3)}
    slow = percent < wishes.slower_than
    limit = f" (slow below {wishes.slower_than:g}%)" if slow else ""
    status = Status.WARNING if slow else Status.OK
    return Aside(topic="speed", status=status, summary=f"at {told}{limit}", values=numbers)


def _pace(seen: Seen, learned: Learned, wishes: Wishes) -> Aside | None:
    """A warning from a tenth on, or from where people asked for it."""
    pace, asked = learned.pace, wishes.slower_than
    if not pace.usual or pace.job != seen.key or wishes.silent:
        return None
    numbers: dict[str, Value] = {"percent": round(100 * pace.share, 1)}
    if not pace.told:
        least = f"from {100 * pace.least:.1f}% on a change would be told"
        told = f"as usual, {pace.usual:.3g} s; {least}"
        return Aside(topic="step time", status=Status.OK, summary=told, values=numbers)
    limit = MESSAGE if asked is None else min(MESSAGE, 100 / asked - 1)
    status = Status.WARNING if pace.share >= limit else Status.OK
    told = words(pace, seen.looked, seen.nodes)
    return Aside(topic="step time", status=status, summary=told, values=numbers)


def _per(rate: float) -> str:
    if rate >= 1:
        return f"{rate:.3g} a second"
    return f"{rate * 60:.3g} a minute" if rate * 60 >= 1 else f"{rate * 3600:.3g} an hour"


def _where(one: Trouble, nodes: Mapping[str, str]) -> str:
    node = nodes.get(one.peer, "")
    parts = [part for part in (one.where, f"peer {one.peer} is {node}" if node else "") if part]
    return f"[{visible('; '.join(parts))}] " if parts else ""
