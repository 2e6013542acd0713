"""What the same tail says besides: losses, errors, speed. Pure.

Each has a subject of its own, so that it comes and goes by itself, and is reported from the
first time it was seen: a training that never had trouble has one line.
"""

from collections.abc import Mapping

from msgspec import Struct

from sentinel.checks.log import spikes
from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.known_troubles import EXCEPTION, NETWORK_EXCEPTION_KIND
from sentinel.checks.log.losses import (
    AT_MINIMUM_NAME,
    LEFT_OUT_NAME,
    NAN_ITERATIONS_NAME,
    OVERFLOWED_NAME,
    SKIPPED_NAME,
)
from sentinel.checks.log.progress import GROWTH_NAME, LogState, compute_usual_rate
from sentinel.checks.log.ranking import find_first_cause
from sentinel.checks.log.slowdown import WARNING_SHARE, describe_slowdown
from sentinel.checks.log.troubles import LogTrouble
from sentinel.core.model import Status, Value
from sentinel.core.text import shortened, visible

EXTRA_TOPICS = ("loss", "errors", "speed", "step time")
"""The second words of the subjects."""


LOST_LOSS_TEXTS = {
    LEFT_OUT_NAME: "the loss is not on the line, the last {bad} times: Megatron leaves a NaN out",
    NAN_ITERATIONS_NAME: "the trainer counted iterations with a NaN loss on the last {bad} lines",
    AT_MINIMUM_NAME: "the last {bad} steps were skipped at the least loss scale: nothing is learned",
    OVERFLOWED_NAME: "the last {bad} steps were skipped: gradients overflow at every loss scale",
    SKIPPED_NAME: "the last {bad} iterations were skipped: gradients overflow at every loss scale",
}
"""What is told of a loss that does not stand there as a NaN."""

MAX_SKIPPED_STEPS = 50
"""Iterations in a row that may be skipped while the loss scale is found: from 2**32, where
Megatron begins (megatron/training/arguments.py), to 1 are 32 halvings."""


MAX_AT_MINIMUM_STEPS = 10
"""Steps in a row that may be skipped at the least loss scale: after a few steps that went well the
scale is raised again."""


MAX_SHOWN_CHARS = 120
"""Characters of an exception that the summary quotes."""


class TopicAnswer(Struct, frozen=True, kw_only=True):
    """One answer about a topic."""

    topic: str
    status: Status
    summary: str
    details: str = ""
    values: Mapping[str, Value] = {}


class Thresholds(Struct, frozen=True, kw_only=True):
    """`nan_after` losses in a row; `slower_than` percent of the usual rate, None: never;
    `silent`: what watches step times is tried out."""

    nan_after: int
    slower_than: float | None
    silent: bool = False


def judge_topics(
    seen: LogState, learned: TrainingBaseline, wishes: Thresholds, nodes: Mapping[str, str]
) -> list[TopicAnswer]:
    """Everything there is to say; `nodes`: the node's name for an address in an error."""
    said = [
        _judge_loss(seen, wishes),
        _judge_errors(seen, nodes),
        _judge_speed(seen, learned, wishes),
    ]
    said += [_judge_step_time(seen, learned, wishes), _judge_loss_spike(seen)]
    return [one for one in said if one]


def format_troubles(troubles: tuple[LogTrouble, ...], nodes: Mapping[str, str]) -> str:
    """Where each came from, and what it said."""
    return "\n".join(f"{_format_origin(one, nodes)}{one.line}" for one in troubles)


def describe_cause(troubles: tuple[LogTrouble, ...], nodes: Mapping[str, str]) -> str:
    """The first trouble that nothing else brings about, else the first that is no echo of another, in
    a few words: `NCCL connection on node-3, to node-7`."""
    at = find_first_cause([one.kind for one in troubles])
    if at is None:
        return ""
    first = troubles[at]
    where = f" on {first.origin_text}" if first.host and not first.rank else ""
    where = f" of {first.origin_text}" if first.rank else where
    peer = visible(nodes.get(first.peer) or first.peer)
    more = f" and {len(troubles) - 1} more" if len(troubles) > 1 else ""
    own = first.kind in (EXCEPTION, NETWORK_EXCEPTION_KIND)
    said = f" ({shortened(first.line, MAX_SHOWN_CHARS)})" if own else ""
    return f"{visible(first.kind)}{where}{f', peer {peer}' if peer else ''}{said}{more}"


def _judge_loss(seen: LogState, wishes: Thresholds) -> TopicAnswer | None:
    if not seen.losses:
        return None
    name, bad = max(
        seen.losses.items(), key=lambda one: one[1] / _get_max_bad_losses(one[0], wishes)
    )
    numbers: dict[str, Value] = {"bad": bad, "name": visible(name)}
    if bad >= _get_max_bad_losses(name, wishes):
        summary = LOST_LOSS_TEXTS.get(name, "{name} is NaN or infinite, the last {bad} times")
        told = summary.format(name="the loss" if name == "loss" else visible(name), bad=bad)
        return TopicAnswer(topic="loss", status=Status.CRITICAL, summary=told, values=numbers)
    least = (
        f"finite but for the last {bad}"
        if bad and name not in (SKIPPED_NAME, AT_MINIMUM_NAME, OVERFLOWED_NAME)
        else "finite"
    )
    return TopicAnswer(topic="loss", status=Status.OK, summary=least, values=numbers)


def _judge_loss_spike(seen: LogState) -> TopicAnswer | None:
    """A warning: a person decides whether to go back to a checkpoint."""
    told = spikes.describe_spike(seen.course)
    numbers: dict[str, Value] = (
        {"loss": seen.course.high[-1], "usual": seen.course.usual_loss} if told else {}
    )
    return (
        TopicAnswer(topic="loss", status=Status.WARNING, summary=told, values=numbers)
        if told
        else None
    )


def _get_max_bad_losses(name: str, wishes: Thresholds) -> int:
    own = {
        SKIPPED_NAME: MAX_SKIPPED_STEPS,
        OVERFLOWED_NAME: MAX_SKIPPED_STEPS,
        AT_MINIMUM_NAME: MAX_AT_MINIMUM_STEPS,
    }
    return own.get(name, wishes.nan_after)


def _judge_errors(seen: LogState, nodes: Mapping[str, str]) -> TopicAnswer:
    at = find_first_cause([one.kind for one in seen.troubles])
    if at is None:
        return TopicAnswer(topic="errors", status=Status.OK, summary="none since it last advanced")
    peers = sorted({nodes.get(one.peer, "") for one in seen.troubles} - {""})
    first = seen.troubles[at]
    return TopicAnswer(
        topic="errors",
        status=Status.WARNING,
        summary=describe_cause(seen.troubles, nodes) + ", and no progress since",
        details=format_troubles(seen.troubles, nodes),
        values={
            "count": len(seen.troubles),
            "rank": first.rank or None,
            "host": first.host or None,
            "peers": ",".join(peers) or None,
        },
    )


def _judge_speed(
    seen: LogState, learned: TrainingBaseline, wishes: Thresholds
) -> TopicAnswer | None:
    name = next(iter(seen.marks), GROWTH_NAME)
    normal = compute_usual_rate(learned.rates.get(name, ()))
    if wishes.slower_than is None or seen.speed is None or name == GROWTH_NAME:
        return None
    rate = seen.speed.recent_rate
    if rate is None or not normal:
        return TopicAnswer(topic="speed", status=Status.OK, summary="not yet known what is usual")
    percent = 100 * rate / normal
    told = f"{percent:.0f}% of its usual {_format_rate(normal)} of {visible(name)}"
    numbers: dict[str, Value] = {"percent": round(percent, 1), "per_hour": round(rate * 3600, 3)}
    slow = percent < wishes.slower_than
    limit = f" (slow below {wishes.slower_than:g}%)" if slow else ""
    status = Status.WARNING if slow else Status.OK
    return TopicAnswer(topic="speed", status=status, summary=f"at {told}{limit}", values=numbers)


def _judge_step_time(
    seen: LogState, learned: TrainingBaseline, wishes: Thresholds
) -> TopicAnswer | None:
    """A warning from a tenth on, or from where people asked for it."""
    pace, asked = learned.pace, wishes.slower_than
    if not pace.usual_s or pace.job != seen.run_key or wishes.silent:
        return None
    numbers: dict[str, Value] = {"percent": round(100 * pace.slowdown_share, 1)}
    if not pace.told:
        least = f"from {100 * pace.least_share:.1f}% on a change would be told"
        told = f"as usual, {pace.usual_s:.3g} s; {least}"
        return TopicAnswer(topic="step time", status=Status.OK, summary=told, values=numbers)
    limit = WARNING_SHARE if asked is None else min(WARNING_SHARE, 100 / asked - 1)
    status = Status.WARNING if pace.slowdown_share >= limit else Status.OK
    told = describe_slowdown(pace, seen.looked, seen.nodes)
    return TopicAnswer(topic="step time", status=status, summary=told, values=numbers)


def _format_rate(rate: float) -> str:
    if rate >= 1:
        return f"{rate:.3g} a second"
    return f"{rate * 60:.3g} a minute" if rate * 60 >= 1 else f"{rate * 3600:.3g} an hour"


def _format_origin(one: LogTrouble, nodes: Mapping[str, str]) -> str:
    node = nodes.get(one.peer, "")
    parts = [
        part for part in (one.origin_text, f"peer {one.peer} is {node}" if node else "") if part
    ]
    return f"[{visible('; '.join(parts))}] " if parts else ""
