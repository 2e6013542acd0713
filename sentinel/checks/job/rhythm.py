"""How long an end may be followed by nothing before it is told, by what followed such ends. Pure.

A hand that reacts to a message is no automation: what one person once did delays no later death. A
rhythm is what cannot be a hand, or what came three times alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from itertools import pairwise

from msgspec import Struct

from sentinel.checks.job.memory import GoneJob, Memory, SubmitDelay
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.values import duration_text
from sentinel.slurm.job_states import state_meaning

SECOND_LOOK_S = 30.0
"""After it Slurm is asked again before a death is told: epilogs and launchers have submitted by
then, and a cut list is whole again."""

PLANNED_GAP_S = 600.0
"""A gap after an end that may be somebody's plan, of which nothing is known."""

CANCELLED_GAP_S, MAX_CANCELLED_GAP_S = 4 * 3600.0, 11 * 3600.0
"""A gap after a `scancel` of which nobody knows whose it was, once another job has followed one:
people edit and test before they submit again. No more than that many times as long as the longest
(`LONGEST_DELAY_FACTOR`)."""
LONGEST_DELAY_FACTOR = 4.0

MAX_DEATH_GAP_S = 900.0
"""A death is told after it, whatever was learned; a longer gap is for `gap` in the file."""

MAX_PLANNED_GAP_S = 4 * 3600.0
"""The same for an end that may be somebody's plan."""

ALIKE, ALIKE_S, SIMILAR_DELAYS = 0.2, 5.0, 3
"""Delays are alike that differ by no more than this part of the middle one, or by so many seconds;
so many of them are a rhythm."""

ALIKE_OVER_KINDS_SHARE = 0.05
"""The same, over ends of several kinds: only a program is so punctual."""

RHYTHM_WAIT_FACTOR = 2.0
"""A rhythm is waited for twice as long as its longest delay: launchers look from time to time."""

CLOCK_PERIODS_S = (300, 600, 900, 1200, 1800, 3600)
CLOCK_JITTER_S, CLOCK_MARGIN_S = 20.0, 60.0
"""Seconds by which cron's jobs begin apart, and for which one more is waited for."""

FORGOTTEN_KIND = "forgotten"
"""The kind of an end that nobody remembers."""

LONGER_THAN_A_LOOK_S = 60.0


class SuccessorWait(Struct, frozen=True):
    """Seconds that nothing of a training may be there before that is told, and why so long."""

    seconds: float
    why: str = ""


def get_end_kind(gone: GoneJob) -> str:
    """Ends that are alike: what followed one says something of the other."""
    word = get_end_state(gone)
    return "CANCELLED by somebody else" if word == "CANCELLED" and is_death(gone) else word


def get_end_state(gone: GoneJob) -> str:
    """The state in which it ended, without more."""
    return gone.end.state.split(" ")[0] if gone.end else FORGOTTEN_KIND


def is_death(gone: GoneJob) -> bool:
    """What no plan of a job's owner is: it failed, or somebody else has cancelled it. What Slurm
    has forgotten is over for MinJobAge at least, and nothing has come since."""
    if gone.end is None:
        return gone.asked
    if get_end_state(gone) == "CANCELLED":
        return gone.end.cancelled_by not in ("", gone.seen.user)
    return gone.asked and state_meaning(gone.end.state).is_death


def find_wait(last: GoneJob | None, memory: Memory, gap: float | None = None) -> SuccessorWait:
    """How long nothing may follow this end. `gap`: as the file says, in seconds."""
    if last is None:
        return SuccessorWait(0.0)
    if gap is not None:
        return SuccessorWait(gap, f"`gap: {duration_text(gap)}` in the file says so")
    delays, death = find_delays_after(last, memory), is_death(last)
    if get_end_state(last) == "CANCELLED" and not death:
        return _wait_after_scancel(delays)
    learned = _learn_wait(last, memory, MAX_DEATH_GAP_S if death else MAX_PLANNED_GAP_S)
    if learned is not None and (death or learned.seconds > PLANNED_GAP_S):
        return learned
    if death:
        return SuccessorWait(SECOND_LOOK_S)
    return SuccessorWait(PLANNED_GAP_S, "this may be a gap between two jobs")


def explain_wait(last: GoneJob, memory: Memory, gap: float | None = None) -> str:
    """Why an end is told when it is, for people; empty where there is nothing to say."""
    wait, delays = find_wait(last, memory, gap), find_delays_after(last, memory)
    if wait.why:
        return f"{wait.why}: this is told when nothing has come for {duration_text(wait.seconds)}"
    if not delays:
        return "" if last.lost else "no job has followed such an end of this training before"
    return f"jobs have followed such ends after {_join_words(delays)}: no rhythm to wait for"


def suggest_gap_line(last: GoneJob, memory: Memory) -> str:
    """The line for the file that makes such an end wait, where jobs came soon after the last one
    and no rhythm is known; else empty."""
    delays = find_delays_after(last, memory)
    quick = [one.seconds for one in delays[-1:] if SECOND_LOOK_S < one.seconds <= MAX_DEATH_GAP_S]
    if not quick or find_wait(last, memory).why:
        return ""
    wait = duration_text(max(60.0, 60 * -(-RHYTHM_WAIT_FACTOR * quick[0] // 60)))
    return (
        f"a job followed the last such end after {duration_text(quick[0])}: if that was a launcher,"
        f" `gap: {wait}` in this check tells such an end only when none has come by then"
    )


def render_wait(
    wait: SuccessorWait, since: Instant, now: Instant, zone: tzinfo | None = None
) -> str:
    """`waits until 23:05, because …`; empty once that has come, or where it is a second look."""
    left = wait.seconds - get_elapsed_s(since, now)
    # A look that comes a little earlier tells it too (state_machine.EARLY_SHARE).
    if not wait.why or left <= 0.1 * wait.seconds or wait.seconds <= LONGER_THAN_A_LOOK_S:
        return ""
    until = datetime.fromtimestamp(now.wall / SECOND + left, tz=zone).astimezone(zone)
    today = datetime.fromtimestamp(now.wall / SECOND, tz=zone).astimezone(zone)
    form = "%H:%M" if until.date() == today.date() else "%Y-%m-%d %H:%M"
    return f"waits until {until.strftime(form)}, because {wait.why}"


def find_delays_after(last: GoneJob, memory: Memory) -> tuple[SubmitDelay, ...]:
    """The delays after ends of this kind, the oldest first. An end that nobody remembers may have
    been of any kind."""
    forgotten = get_end_state(last) == FORGOTTEN_KIND
    kinds = list(memory.delays) if forgotten else [get_end_kind(last), FORGOTTEN_KIND]
    every = (one for kind in kinds for one in memory.delays.get(kind, ()))
    return tuple(sorted(every, key=lambda one: one.at))


def _learn_wait(last: GoneJob, memory: Memory, limit: float) -> SuccessorWait | None:
    """The rhythm after ends of this kind; else that after ends of at least two other kinds: what
    submits does not care then how the job ended."""
    own = predict_wait(last, find_delays_after(last, memory), limit)
    if own is not None:
        return own
    every = sorted((one for some in memory.delays.values() for one in some), key=lambda d: d.at)
    found = predict_wait(last, every, limit, ALIKE_OVER_KINDS_SHARE)
    kinds = [
        kind
        for kind, some in memory.delays.items()
        if found and any(one.seconds <= found.seconds for one in some)
    ]
    return found if len(kinds) > 1 else None


def predict_wait(
    last: GoneJob, delays: Sequence[SubmitDelay], limit: float, share: float = ALIKE
) -> SuccessorWait | None:
    """What the delays say of the next one; None where that is nothing, or longer than `limit`.
    `share`: by how much of the middle one alike delays may differ from it."""
    hands_off = [one.seconds for one in delays if one.automatic]
    alike = [*_select_alike_delays([one.seconds for one in delays], share), *hands_off]
    fitting = [seconds for seconds in alike if seconds <= limit]
    if fitting:
        longest = max(fitting)
        count = len([one for one in delays if one.seconds <= longest])
        often = "once by itself" if count == 1 else f"{count} times"
        wait = min(limit, max(SECOND_LOOK_S, RHYTHM_WAIT_FACTOR * longest))
        return SuccessorWait(wait, f"a job has followed such an end {often}, after up to "
                    f"{duration_text(longest)}")  # fmt: skip
    return _predict_by_clock(last, delays, limit)


def _select_alike_delays(delays: Sequence[float], share: float) -> list[float]:
    """The delays of which three or more are alike."""
    ordered, found = sorted(delays), set[float]()
    for at in range(len(ordered) - SIMILAR_DELAYS + 1):
        some = ordered[at : at + SIMILAR_DELAYS]
        middle = some[len(some) // 2]
        if all(abs(one - middle) <= max(share * middle, ALIKE_S) for one in some):
            found.update(some)
    return sorted(found)


def _predict_by_clock(
    last: GoneJob, delays: Sequence[SubmitDelay], limit: float
) -> SuccessorWait | None:
    """The next time of a launcher under cron: the last three came at the same minutes."""
    newest = delays[-SIMILAR_DELAYS:]
    if len(newest) < SIMILAR_DELAYS:
        return None
    for period in CLOCK_PERIODS_S:
        apart = [(b.at - a.at + period / 2) % period - period / 2 for a, b in pairwise(newest)]
        soon = all(one.seconds <= period + CLOCK_MARGIN_S for one in newest)
        if soon and all(abs(seconds) <= CLOCK_JITTER_S for seconds in apart):
            noticed = last.at.wall // SECOND
            ended = (last.end.ended if last.end else None) or noticed
            due = ended + (newest[-1].at - ended) % period + CLOCK_MARGIN_S
            wait = max(SECOND_LOOK_S, due - noticed)
            why = f"jobs have followed such ends every {duration_text(period)} by the clock"
            return SuccessorWait(wait, why) if due - ended <= limit else None
    return None


def _wait_after_scancel(delays: Sequence[SubmitDelay]) -> SuccessorWait:
    if not delays:
        return SuccessorWait(
            PLANNED_GAP_S, "nobody knows who cancelled it, and it may be its owner"
        )
    longest = max(one.seconds for one in delays)
    wait = min(MAX_CANCELLED_GAP_S, max(CANCELLED_GAP_S, LONGEST_DELAY_FACTOR * longest))
    return SuccessorWait(wait, f"its owner may have cancelled it to submit it again, as after "
                f"{duration_text(longest)} before")  # fmt: skip


def _join_words(delays: Sequence[SubmitDelay]) -> str:
    told = [duration_text(one.seconds) for one in delays[-3:]]
    return " and ".join([", ".join(told[:-1]), told[-1]]) if len(told) > 1 else told[0]
