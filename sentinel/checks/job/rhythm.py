"""How long an end may be followed by nothing before it is told, by what followed such ends. Pure.

A hand that reacts to a message is no automation: what one person once did delays no later death. A
rhythm is what cannot be a hand, or what came three times alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from itertools import pairwise

from msgspec import Struct

from sentinel.checks.job.memory import Delay, Gone, Memory
from sentinel.core.clock import SECOND, Instant, elapsed
from sentinel.core.values import duration_text
from sentinel.slurm.job_states import meaning

SECOND_LOOK_S = 30.0
"""After it Slurm is asked again before a death is told: epilogs and launchers have submitted by
then, and a cut list is whole again."""

PLANNED_GAP_S = 600.0
"""A gap after an end that may be somebody's plan, of which nothing is known."""

CANCELLED_GAP_S, MAX_CANCELLED_GAP_S = 4 * 3600.0, 11 * 3600.0
"""A gap after a `scancel` of which nobody knows whose it was, once another job has followed one:
people edit and test before they submit again. No more than that many times as long as the longest
(`TIMES_LONGEST`)."""
TIMES_LONGEST = 4.0

MAX_DEATH_GAP_S = 900.0
"""A death is told after it, whatever was learned; a longer gap is for `gap` in the file."""

MAX_PLANNED_GAP_S = 4 * 3600.0
"""The same for an end that may be somebody's plan."""

ALIKE, ALIKE_S, SIMILAR_DELAYS = 0.2, 5.0, 3
"""Delays are alike that differ by no more than this part of the middle one, or by so many seconds;
so many of them are a rhythm."""

ALIKE_OVER_KINDS = 0.05
"""The same, over ends of several kinds: only a program is so punctual."""

TWICE = 2.0
"""A rhythm is waited for twice as long as its longest delay: launchers look from time to time."""

CLOCK_PERIODS_S = (300, 600, 900, 1200, 1800, 3600)
CLOCK_JITTER_S, CLOCK_MARGIN_S = 20.0, 60.0
"""Seconds by which cron's jobs begin apart, and for which one more is waited for."""

FORGOTTEN = "forgotten"
"""The kind of an end that nobody remembers."""

LONGER_THAN_A_LOOK_S = 60.0


class Wait(Struct, frozen=True):
    """Seconds that nothing of a training may be there before that is told, and why so long."""

    seconds: float
    why: str = ""


def kind_of(gone: Gone) -> str:
    """Ends that are alike: what followed one says something of the other."""
    word = end_word(gone)
    return "CANCELLED by somebody else" if word == "CANCELLED" and is_death(gone) else word


def end_word(gone: Gone) -> str:
    """The state in which it ended, without more."""
    return gone.end.state.split(" ")[0] if gone.end else FORGOTTEN


def is_death(gone: Gone) -> bool:
    """What no plan of a job's owner is: it failed, or somebody else has cancelled it. What Slurm
    has forgotten is over for MinJobAge at least, and nothing has come since."""
    if gone.end is None:
        return gone.asked
    if end_word(gone) == "CANCELLED":
        return gone.end.cancelled_by not in ("", gone.seen.user)
    return gone.asked and meaning(gone.end.state).is_death


def wait_for(last: Gone | None, memory: Memory, gap: float | None = None) -> Wait:
    """How long nothing may follow this end. `gap`: as the file says, in seconds."""
    if last is None:
        return Wait(0.0)
    if gap is not None:
        return Wait(gap, f"`gap: {duration_text(gap)}` in the file says so")
    delays, death = delays_after(last, memory), is_death(last)
    if end_word(last) == "CANCELLED" and not death:
        return _after_scancel(delays)
    learned = _learned(last, memory, MAX_DEATH_GAP_S if death else MAX_PLANNED_GAP_S)
    if learned is not None and (death or learned.seconds > PLANNED_GAP_S):
        return learned
    if death:
        return Wait(SECOND_LOOK_S)
    return Wait(PLANNED_GAP_S, "this may be a gap between two jobs")


def why_now(last: Gone, memory: Memory, gap: float | None = None) -> str:
    """Why an end is told when it is, for people; empty where there is nothing to say."""
    wait, delays = wait_for(last, memory, gap), delays_after(last, memory)
    if wait.why:
        return f"{wait.why}: this is told when nothing has come for {duration_text(wait.seconds)}"
    if not delays:
        return "" if last.lost else "no job has followed such an end of this training before"
    return f"jobs have followed such ends after {_listed(delays)}: no rhythm to wait for"


def gap_line(last: Gone, memory: Memory) -> str:
    """The line for the file that makes such an end wait, where jobs came soon after the last one
    and no rhythm is known; else empty."""
    delays = delays_after(last, memory)
    quick = [one.seconds for one in delays[-1:] if SECOND_LOOK_S < one.seconds <= MAX_DEATH_GAP_S]
    if not quick or wait_for(last, memory).why:
        return ""
    wait = duration_text(max(60.0, 60 * -(-TWICE * quick[0] // 60)))
    return (
        f"a job followed the last such end after {duration_text(quick[0])}: if that was a launcher,"
        f" `gap: {wait}` in this check tells such an end only when none has come by then"
    )


def wait_text(wait: Wait, since: Instant, now: Instant, zone: tzinfo | None = None) -> str:
    """`waits until 23:05, because …`; empty once that has come, or where it is a second look."""
    left = wait.seconds - elapsed(since, now)
    # A look that comes a little earlier tells it too (state_machine.EARLY).
    if not wait.why or left <= 0.1 * wait.seconds or wait.seconds <= LONGER_THAN_A_LOOK_S:
        return ""
    until = datetime.fromtimestamp(now.wall / SECOND + left, tz=zone).astimezone(zone)
    today = datetime.fromtimestamp(now.wall / SECOND, tz=zone).astimezone(zone)
    form = "%H:%M" if until.date() == today.date() else "%Y-%m-%d %H:%M"
    return f"waits until {until.strftime(form)}, because {wait.why}"


def delays_after(last: Gone, memory: Memory) -> tuple[Delay, ...]:
    """The delays after ends of this kind, the oldest first. An end that nobody remembers may have
    been of any kind."""
    forgotten = end_word(last) == FORGOTTEN
    kinds = list(memory.delays) if forgotten else [kind_of(last), FORGOTTEN]
    every = (one for kind in kinds for one in memory.delays.get(kind, ()))
    return tuple(sorted(every, key=lambda one: one.at))


def _learned(last: Gone, memory: Memory, limit: float) -> Wait | None:
    """The rhythm after ends of this kind; else that after ends of at least two other kinds: what
    submits does not care then how the job ended."""
    own = rhythm(last, delays_after(last, memory), limit)
    if own is not None:
        return own
    every = sorted((one for some in memory.delays.values() for one in some), key=lambda d: d.at)
    found = rhythm(last, every, limit, ALIKE_OVER_KINDS)
    kinds = [
        kind
        for kind, some in memory.delays.items()
        if found and any(one.seconds <= found.seconds for one in some)
    ]
    return found if len(kinds) > 1 else None


def rhythm(last: Gone, delays: Sequence[Delay], limit: float, share: float = ALIKE) -> Wait | None:
    """What the delays say of the next one; None where that is nothing, or longer than `limit`.
    `share`: by how much of the middle one alike delays may differ from it."""
    hands_off = [one.seconds for one in delays if one.automatic]
    alike = [*_alike([one.seconds for one in delays], share), *hands_off]
    fitting = [seconds for seconds in alike if seconds <= limit]
    if fitting:
        longest = max(fitting)
        count = len([one for one in delays if one.seconds <= longest])
        often = "once by itself" if count == 1 else f"{count} times"
        wait = min(limit, max(SECOND_LOOK_S, TWICE * longest))
        return Wait(wait, f"a job has followed such an end {often}, after up to "
                    f"{duration_text(longest)}")  # fmt: skip
    return _by_the_clock(last, delays, limit)


def _alike(delays: Sequence[float], share: float) -> list[float]:
    """The delays of which three or more are alike."""
    ordered, found = sorted(delays), set[float]()
    for at in range(len(ordered) - SIMILAR_DELAYS + 1):
        some = ordered[at : at + SIMILAR_DELAYS]
        middle = some[len(some) // 2]
        if all(abs(one - middle) <= max(share * middle, ALIKE_S) for one in some):
            found.update(some)
    return sorted(found)


def _by_the_clock(last: Gone, delays: Sequence[Delay], limit: float) -> Wait | None:
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
            return Wait(wait, why) if due - ended <= limit else None
    return None


def _after_scancel(delays: Sequence[Delay]) -> Wait:
    if not delays:
        return Wait(PLANNED_GAP_S, "nobody knows who cancelled it, and it may be its owner")
    longest = max(one.seconds for one in delays)
    wait = min(MAX_CANCELLED_GAP_S, max(CANCELLED_GAP_S, TIMES_LONGEST * longest))
    return Wait(wait, f"its owner may have cancelled it to submit it again, as after "
                f"{duration_text(longest)} before")  # fmt: skip


def _listed(delays: Sequence[Delay]) -> str:
    told = [duration_text(one.seconds) for one in delays[-3:]]
    return " and ".join([", ".join(told[:-1]), told[-1]]) if len(told) > 1 else told[0]
