"""Decides how long to wait for the next job after an end, before the end is reported. Pure.

The wait is learned from the jobs that followed similar ends. A person's reaction to a message is
not automation, so one such reaction delays no later report. A rhythm is either one submission that
no person can have made, or three with similar delays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import pairwise

from msgspec import Struct

from sentinel.checks.job.memory import GoneJob, Memory, SubmitDelay
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.values import duration_text
from sentinel.slurm.job_states import end_meaning

SECOND_LOOK_S = 30.0
"""Seconds until Slurm is asked again before a death is reported. By then epilogs and launchers have
submitted jobs, and an incomplete list is complete again."""

PLANNED_GAP_S = 600.0
"""Seconds to wait after an end that may be planned, if nothing has been learned."""

CANCELLED_GAP_S, MAX_CANCELLED_GAP_S = 4 * 3600.0, 11 * 3600.0
"""Seconds to wait after a `scancel` by an unknown user, if another job has ever followed one.
People edit and test before they submit again. The wait is also limited to `LONGEST_DELAY_FACTOR`
times the longest delay."""
LONGEST_DELAY_FACTOR = 4.0

MAX_DEATH_GAP_S = 900.0
"""A death is reported after this many seconds at the latest. The exception: the last jobs came
later, but with the precision of a program."""

MAX_RHYTHM_GAP_S, RHYTHM_SLACK = 3600.0, 0.1
"""In this case the wait is the longest of these delays plus this share, but never more than this
many seconds. For a longer wait, users set `gap`."""

MAX_PLANNED_GAP_S = 4 * 3600.0
"""The same limit for an end that may be planned."""

ALIKE, ALIKE_S, SIMILAR_DELAYS = 0.2, 5.0, 3
"""Delays are similar if they differ from the median by at most this share, or this many seconds.
This many similar delays are a rhythm."""

PUNCTUAL_SHARE = 0.05
"""The share for ends of several kinds, or for long delays. Only a program is this precise."""

RHYTHM_WAIT_FACTOR = 2.0
"""The wait for a rhythm is this many times its longest delay, because launchers check only from
time to time."""

AUTOMATIC_WAIT_S = 120.0
"""The minimum wait, in seconds, if a job has followed automatically once (by a requeue, or from the
job's own trap). One delay says little about the next one."""

CLOCK_PERIODS_S = (300, 600, 900, 1200, 1800, 3600)
CLOCK_JITTER_S, CLOCK_MARGIN_S = 20.0, 60.0
"""Jobs from cron may start this many seconds apart. The wait for the next one is longer by the
second value."""

FORGOTTEN_KIND = "forgotten"
"""The kind of an end that Slurm has forgotten."""

LONGER_THAN_A_LOOK_S = 60.0

EARLY_LOOK_SHARE = 0.1
"""A run of the check that is early by this share also reports a death (state_machine.EARLY_SHARE).
"""


class SuccessorWait(Struct, frozen=True):
    """Seconds to wait for the next job before an end is reported, and why."""

    seconds: float  # Seconds to wait.
    why: str = ""  # The reason, for people.


def get_end_kind(gone: GoneJob) -> str:
    """The kind of an end. Jobs that followed one end help to predict those after others of the same
    kind."""
    word = get_end_state(gone)
    return "CANCELLED by somebody else" if word == "CANCELLED" and is_death(gone) else word


def get_end_state(gone: GoneJob) -> str:
    """The state in which the job ended, without details."""
    return gone.end.state.split(" ")[0] if gone.end else FORGOTTEN_KIND


def is_death(gone: GoneJob) -> bool:
    """Whether the end was not planned by the job's owner: it failed, or somebody else cancelled it.

    A job that Slurm has forgotten ended at least MinJobAge ago, and no job has followed, so it
    counts as dead.
    """
    if gone.end is None:
        return gone.asked
    if get_end_state(gone) == "CANCELLED":
        return gone.end.cancelled_by not in ("", gone.seen.user)
    return gone.asked and end_meaning(gone.end).is_death


def find_wait(last: GoneJob | None, memory: Memory, gap: float | None = None) -> SuccessorWait:
    """How long to wait for the next job after this end. `gap` is the configured value in seconds."""
    if last is None:
        return SuccessorWait(0.0)
    if gap is not None:
        return SuccessorWait(gap, f"`gap: {duration_text(gap)}` in the file says so")
    delays, death = find_delays_after(last, memory), is_death(last)
    if get_end_state(last) == "CANCELLED" and not death:
        return _wait_after_scancel(delays)
    learned = _learn_wait(last, memory)
    if learned is not None and (death or learned.seconds > PLANNED_GAP_S):
        return learned
    if death:
        return SuccessorWait(SECOND_LOOK_S)
    return SuccessorWait(PLANNED_GAP_S, "this may be a gap between two jobs")


def explain_wait(last: GoneJob, memory: Memory, gap: float | None = None) -> str:
    """Why an end is reported at this time, for people. Empty if there is nothing to say."""
    wait = find_wait(last, memory, gap)
    if wait.why:
        return f"{wait.why}; sentinel waited {duration_text(wait.seconds)} for a new job, and none came"
    # who obeys each message knows when they did
    own = [one for one in find_delays_after(last, memory) if not one.prompted]
    said = "sentinel did not wait: new jobs came {} after such ends, with no rhythm"
    return said.format(_join_words(own)) if own else ""


def suggest_gap_line(last: GoneJob, memory: Memory) -> str:
    """The configuration line that would make such an end wait.

    Empty unless a job came soon after the last such end, before a message told of it, and no rhythm
    is known.
    """
    delays = [one for one in find_delays_after(last, memory)[-1:] if not one.prompted]
    quick = [one.seconds for one in delays if SECOND_LOOK_S < one.seconds <= MAX_DEATH_GAP_S]
    if not quick or find_wait(last, memory).why:
        return ""
    wait = duration_text(max(60.0, 60 * -(-RHYTHM_WAIT_FACTOR * quick[0] // 60)))
    return (
        f"a job followed the last such end after {duration_text(quick[0])}: if a launcher submitted it,"
        f" `gap: {wait}` in this check waits that long for the next one before it tells of such an end"
    )


def render_wait(
    wait: SuccessorWait, since: Instant, now: Instant, zone: tzinfo | None = None
) -> str:
    """`waits until 23:05, because …`. Empty if that time has come, or if Slurm is only asked again."""
    left = wait.seconds - get_elapsed_s(since, now)
    if (
        not wait.why
        or left <= EARLY_LOOK_SHARE * wait.seconds
        or wait.seconds <= LONGER_THAN_A_LOOK_S
    ):
        return ""
    until = datetime.fromtimestamp(now.wall / SECOND + left, tz=zone).astimezone(zone)
    today = datetime.fromtimestamp(now.wall / SECOND, tz=zone).astimezone(zone)
    form = "%H:%M" if until.date() == today.date() else "%Y-%m-%d %H:%M"
    return f"waits until {until.strftime(form)}, because {wait.why}"


def find_delays_after(last: GoneJob, memory: Memory) -> tuple[SubmitDelay, ...]:
    """The delays after ends of this kind, oldest first. A forgotten end may have been of any kind."""
    forgotten = get_end_state(last) == FORGOTTEN_KIND
    kinds = list(memory.delays) if forgotten else [get_end_kind(last), FORGOTTEN_KIND]
    return _sort_delays({kind: memory.delays.get(kind, ()) for kind in kinds})


def _sort_delays(delays: Mapping[str, Sequence[SubmitDelay]]) -> tuple[SubmitDelay, ...]:
    """Oldest first. A forgotten end may have come long before it was noticed, so its delay counts only
    while there are too few others."""
    known = [one for kind, some in delays.items() if kind != FORGOTTEN_KIND for one in some]
    every = known if len(known) >= SIMILAR_DELAYS else [d for some in delays.values() for d in some]
    return tuple(sorted(every, key=lambda one: one.at))


class Rhythm(Struct, frozen=True):
    """What earlier delays say about the next one."""

    wait: SuccessorWait  # How long to wait for the next job.
    delays: Sequence[SubmitDelay]  # The delays that show it.


def _learn_wait(last: GoneJob, memory: Memory) -> SuccessorWait | None:
    """The rhythm after ends of this kind. If there is none, a rhythm after ends of at least two
    kinds.

    A launcher often does not care how the job ended. If several rhythms fit, the longest wait is
    used.
    """
    fitting = find_rhythms(last, find_delays_after(last, memory))
    if not fitting:
        kinds, every = memory.delays.values(), _sort_delays(memory.delays)
        fitting = [
            rhythm
            for rhythm in find_rhythms(last, every, PUNCTUAL_SHARE)
            if sum(any(one in rhythm.delays for one in some) for some in kinds) > 1
        ]
    return max((one.wait for one in fitting), key=lambda wait: wait.seconds, default=None)


def find_rhythms(
    last: GoneJob, delays: Sequence[SubmitDelay], share: float = ALIKE
) -> list[Rhythm]:
    """The rhythms that fit the earlier delays. `share` is how much similar delays may differ from
    their median."""
    death = is_death(last)
    found = (
        _find_rhythm_of_length(delays, MAX_DEATH_GAP_S if death else MAX_PLANNED_GAP_S, share),
        _find_rhythm_of_last_three(delays) if death else None,
        _find_rhythm_of_clock(last, delays, MAX_RHYTHM_GAP_S if death else MAX_PLANNED_GAP_S),
    )
    return [one for one in found if one is not None]


def _find_rhythm_of_length(
    delays: Sequence[SubmitDelay], limit: float, share: float
) -> Rhythm | None:
    """A rhythm of similar delays, or of jobs that no person submitted."""
    alike = _select_alike_delays(delays, share)
    fitting = [d for d in delays if d.seconds <= limit and (d.automatic or d in alike)]
    if not fitting:
        return None
    longest = max(one.seconds for one in fitting)
    least = AUTOMATIC_WAIT_S if any(one.automatic for one in fitting) else SECOND_LOOK_S
    count = len([one for one in delays if one.seconds <= longest])
    often = "once by itself" if count == 1 else f"{count} times"
    wait = min(limit, max(least, RHYTHM_WAIT_FACTOR * longest))
    why = f"a job has followed such an end {often}, after up to {duration_text(longest)}"
    near = [
        d
        for d in delays
        if any(abs(d.seconds - f.seconds) <= max(share * f.seconds, ALIKE_S) for f in fitting)
    ]
    return Rhythm(SuccessorWait(wait, why), near)


def _find_rhythm_of_last_three(delays: Sequence[SubmitDelay]) -> Rhythm | None:
    """A rhythm of the last three delays, if they are long, but closer together than a person's
    reactions would be by chance. Similar delays before them are included."""
    newest = delays[-SIMILAR_DELAYS:]
    seconds = [one.seconds for one in newest]
    if not _are_alike(newest, PUNCTUAL_SHARE) or min(seconds) <= MAX_DEATH_GAP_S:
        return None
    margin = PUNCTUAL_SHARE * max(seconds)
    fitting = [d for d in delays if min(seconds) - margin <= d.seconds <= max(seconds) + margin]
    longest = max(one.seconds for one in fitting)
    wait = (1 + RHYTHM_SLACK) * longest
    why = f"the last jobs after such ends came after up to {duration_text(longest)}"
    return Rhythm(SuccessorWait(wait, why), fitting) if wait <= MAX_RHYTHM_GAP_S else None


def _select_alike_delays(delays: Sequence[SubmitDelay], share: float) -> list[SubmitDelay]:
    """The delays that belong to a group of at least three similar ones.

    Among ten reactions of a person, three are often similar by chance. So if each job of a group
    came after a report, the group counts only if it is the last three.
    """
    ordered = sorted(delays, key=lambda one: one.seconds)
    groups = [ordered[at : at + SIMILAR_DELAYS] for at in range(len(ordered) - SIMILAR_DELAYS + 1)]
    trusted = [some for some in groups if not all(one.prompted for one in some)]
    trusted.append(list(delays[-SIMILAR_DELAYS:]))
    return [one for some in trusted if _are_alike(some, share) for one in some]


def _are_alike(delays: Sequence[SubmitDelay], share: float) -> bool:
    """Whether there are enough delays, none is far from the median, and they are no answers to reports.

    A program counts from the end, so its delays from the reports differ more. Those of a person do not.
    """
    seconds = sorted(one.seconds for one in delays)
    if len(seconds) < SIMILAR_DELAYS:
        return False
    if all(one.prompted for one in delays):
        answers = sorted(one.at - one.told_at for one in delays)
        if answers[-1] - answers[0] <= seconds[-1] - seconds[0] + ALIKE_S:
            return False
    middle = seconds[len(seconds) // 2]
    return all(abs(one - middle) <= max(share * middle, ALIKE_S) for one in seconds)


def _find_rhythm_of_clock(
    last: GoneJob, delays: Sequence[SubmitDelay], limit: float
) -> Rhythm | None:
    """The rhythm of a launcher under cron: the last three or more jobs came at the same minutes.

    Jobs that come every 10 minutes also fit a period of 5. So the longest period that fits all of
    them is used.
    """
    newest = _select_punctual_delays([one for one in delays if not one.automatic])
    if _are_answers_to_punctual_messages(newest):
        return None
    for period in reversed(CLOCK_PERIODS_S) if len(newest) >= SIMILAR_DELAYS else ():
        soon = all(one.seconds <= period + CLOCK_MARGIN_S for one in newest)
        if soon and all(_are_same_minute(a.at, b.at, period) for a, b in pairwise(newest)):
            noticed = last.at.wall // SECOND
            ended = (last.end.ended if last.end else None) or noticed
            due = ended + (newest[-1].at - ended) % period + CLOCK_MARGIN_S
            wait = max(SECOND_LOOK_S, due - noticed)
            why = f"jobs have followed such ends every {duration_text(period)} by the clock"
            return Rhythm(SuccessorWait(wait, why), newest) if due - ended <= limit else None
    return None


def _select_punctual_delays(delays: Sequence[SubmitDelay]) -> Sequence[SubmitDelay]:
    """The newest delays whose jobs came at the same minutes of the shortest period, oldest first."""
    for at in range(len(delays) - 1, 0, -1):
        if not _are_same_minute(delays[at - 1].at, delays[at].at, CLOCK_PERIODS_S[0]):
            return delays[at:]
    return delays


def _are_answers_to_punctual_messages(delays: Sequence[SubmitDelay]) -> bool:
    """Whether each job came after a report, and the reports also came at the same minutes. A person
    may have reacted to the passes of a cron entry."""
    times = [one.told_at for one in delays]
    return all(times) and all(
        _are_same_minute(a, b, CLOCK_PERIODS_S[0]) for a, b in pairwise(times)
    )


def _are_same_minute(one: int, other: int, period: float) -> bool:
    """Whether both times are at the same minute of a period. The period is in seconds."""
    apart = (other - one + period / 2) % period - period / 2
    return abs(apart) <= CLOCK_JITTER_S


def _wait_after_scancel(delays: Sequence[SubmitDelay]) -> SuccessorWait:
    if not delays:
        return SuccessorWait(
            PLANNED_GAP_S, "its owner may have cancelled it (squeue does not say who did)"
        )
    longest = max(one.seconds for one in delays)
    wait = min(MAX_CANCELLED_GAP_S, max(CANCELLED_GAP_S, LONGEST_DELAY_FACTOR * longest))
    return SuccessorWait(wait, f"its owner may have cancelled it to submit it again, as after "
                f"{duration_text(longest)} before")  # fmt: skip


def _join_words(delays: Sequence[SubmitDelay]) -> str:
    told = [duration_text(one.seconds) for one in delays[-3:]]
    return " and ".join([", ".join(told[:-1]), told[-1]]) if len(told) > 1 else told[0]
