"""Further topics of the same log: losses, errors, speed. Pure.

Each topic has a subject of its own, so that it starts and ends by itself. It is reported from its
first problem on. So a training without problems has only one line.
"""

import re
from collections.abc import Mapping

from msgspec import Struct

from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.counted_losses import (
    AT_MINIMUM_NAME,
    LEFT_OUT_NAME,
    NAN_ITERATIONS_NAME,
    OVERFLOWED_NAME,
    SKIPPED_NAME,
    TOLD_NAME,
)
from sentinel.checks.log.known_troubles import OWN_WORDS_KIND_NAMES
from sentinel.checks.log.log_state import GROWTH_NAME, LogState
from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.losses import SAID_PREFIX
from sentinel.checks.log.lost_rows import ALL_VALUES_NAME
from sentinel.checks.log.progress_speed import compute_usual_rate
from sentinel.checks.log.ranking import find_first_cause, keep_founded
from sentinel.checks.log.slowdown import WARNING_SHARE, describe_slowdown
from sentinel.checks.log.trouble_kind import LAST_WORDS_KIND, NEW_KINDS
from sentinel.core.model import Status, Value
from sentinel.core.text import shortened, visible
from sentinel.slurm.step_messages import JOB_END_REGEX

EXTRA_TOPICS = ("loss", "errors", "speed", "step time", "restarts")
"""The second words of the subjects."""


LOST_LOSS_TEXTS = {
    LEFT_OUT_NAME: "the loss is not on the line, the last {bad} times: Megatron leaves a NaN out",
    NAN_ITERATIONS_NAME: "the trainer counted iterations with a NaN loss on the last {bad} lines",
    AT_MINIMUM_NAME: "the last {bad} steps were skipped at the least loss scale: nothing is learned",
    OVERFLOWED_NAME: "the last {bad} steps were skipped: gradients overflow at every loss scale",
    ALL_VALUES_NAME: "every value on the last {bad} lines with a step is NaN",
    TOLD_NAME: "the log says {bad} times that the loss is NaN or infinite, and tells no other loss since",
    SKIPPED_NAME: "the last {bad} iterations were skipped: gradients overflow at every loss scale",
}
"""Messages about a loss that is missing or skipped, by its name."""

MAX_SKIPPED_STEPS = 50
"""How many iterations in a row may be skipped while the loss scale is searched. From 2**32, where
Megatron begins (megatron/training/arguments.py), to 1 are 32 halvings."""


MAX_AT_MINIMUM_STEPS = 10
"""How many steps in a row may be skipped at the smallest loss scale. After a few good steps the
scale is raised again."""


ENDS_S = 60.0
"""Seconds until it is told that a job goes on after Slurm's word that it ends. Most have ended by then."""

MAX_SHOWN_CHARS = 120
"""How many characters of an exception the summary quotes."""


class TopicAnswer(Struct, frozen=True, kw_only=True):
    """The result for one topic."""

    topic: str  # Which topic it is about.
    status: Status  # How bad it is.
    summary: str  # One line for people.
    details: str = ""  # Further lines.
    values: Mapping[str, Value] = {}  # Numbers for the result, by name.
    patience: float = 0.0  # Seconds that it has to last before anybody is told.


class Thresholds(Struct, frozen=True, kw_only=True):
    """The thresholds of the topics.

    `nan_after` is a number of bad losses in a row. `slower_than` is a percentage of the usual rate
    (None: never). `silent` means that the check of step times is on trial. With `one_look` no later
    run follows, so last words of the log are reported at once. Otherwise they are reported only
    with a hang, because the log may go on.
    """

    nan_after: int
    slower_than: float | None
    silent: bool = False
    one_look: bool = False


def judge_topics(
    seen: LogState, learned: TrainingBaseline, wishes: Thresholds, nodes: Mapping[str, str]
) -> list[TopicAnswer]:
    """All results. `nodes` has the node's name for each address in an error."""
    sure = [t for t in seen.troubles if wishes.one_look or t.kind != LAST_WORDS_KIND]
    said = [
        _judge_loss(seen, wishes),
        _judge_errors(keep_founded(sure), nodes),
        _judge_speed(seen, learned, wishes),
        _judge_step_time(seen, learned, wishes),
    ]
    return [one for one in said if one]


def format_troubles(troubles: tuple[LogTrouble, ...], nodes: Mapping[str, str]) -> str:
    """The origin and the line of each error."""
    return "\n".join(f"{_format_origin(one, nodes)}{one.line}" for one in troubles)


def describe_cause(troubles: tuple[LogTrouble, ...], nodes: Mapping[str, str]) -> str:
    """The cause in a few words: `NCCL connection on node-3, to node-7`.

    It is the first error that no other error causes, or else the first that is not an echo.
    """
    at = find_first_cause([one.kind for one in troubles])
    if at is None:
        return ""
    first = troubles[at]
    where = f" on {first.origin_text}" if first.host and not first.rank else ""
    where = f" of {first.origin_text}" if first.rank else where
    peer = visible(nodes.get(first.peer) or first.peer)
    count = sum(one.kind not in NEW_KINDS for n, one in enumerate(troubles) if n != at)
    more = f" and {count} more" if count else ""
    own = first.kind in OWN_WORDS_KIND_NAMES
    said = f" ({shortened(first.line, MAX_SHOWN_CHARS)})" if own else ""
    return f"{visible(first.kind)}{where}{f', peer {peer}' if peer else ''}{said}{more}"


def _judge_loss(seen: LogState, wishes: Thresholds) -> TopicAnswer | None:
    if not seen.losses:
        return None
    name, bad = max(
        seen.losses.items(), key=lambda one: one[1] / _get_max_bad_losses(one[0], wishes)
    )
    name = name.removeprefix(SAID_PREFIX)
    numbers: dict[str, Value] = {"bad": bad, "name": visible(name)}
    if bad >= _get_max_bad_losses(name, wishes):
        last = "the last {bad} values" if bad > 1 else "the last value"
        verb = "are" if bad > 1 else "is"
        summary = LOST_LOSS_TEXTS.get(name, f"{last} of {{name}} {verb} NaN or infinite")
        told = summary.format(name="the loss" if name == "loss" else visible(name), bad=bad)
        return TopicAnswer(topic="loss", status=Status.CRITICAL, summary=told, values=numbers)
    least = (
        f"finite but for the last {bad}"
        if bad and name not in (SKIPPED_NAME, AT_MINIMUM_NAME, OVERFLOWED_NAME)
        else "finite"
    )
    return TopicAnswer(topic="loss", status=Status.OK, summary=least, values=numbers)


def _get_max_bad_losses(name: str, wishes: Thresholds) -> int:
    own = {
        SKIPPED_NAME: MAX_SKIPPED_STEPS,
        OVERFLOWED_NAME: MAX_SKIPPED_STEPS,
        AT_MINIMUM_NAME: MAX_AT_MINIMUM_STEPS,
    }
    return own.get(name, wishes.nan_after)


def _judge_errors(troubles: tuple[LogTrouble, ...], nodes: Mapping[str, str]) -> TopicAnswer:
    at = find_first_cause([one.kind for one in troubles])
    if at is None:
        return TopicAnswer(topic="errors", status=Status.OK, summary="none since it last advanced")
    peers = sorted({nodes.get(one.peer, "") for one in troubles} - {""})
    first = troubles[at]
    return TopicAnswer(
        topic="errors",
        status=Status.WARNING,
        summary=describe_cause(troubles, nodes) + ", and no progress since",
        details=format_troubles(troubles, nodes),
        patience=ENDS_S if re.search(JOB_END_REGEX, first.line) else 0.0,
        values={
            "count": len(troubles),
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
    """A warning from WARNING_SHARE or the configured share on, whichever is less. None during the
    trial, or while the usual step time is not known."""
    pace, asked = learned.pace, wishes.slower_than
    if not pace.usual_s or pace.job != seen.run_key or wishes.silent:
        return None
    numbers: dict[str, Value] = {"percent": round(100 * pace.slowdown_share, 1)}
    if not pace.told:
        least = f"a change of {100 * pace.least_share:.1f}% or more is told"
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
