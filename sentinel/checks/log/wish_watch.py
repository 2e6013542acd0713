"""Follows the own wish of a job's owner: a limit and a number of their own. It changes only what this
owner is told; the check's verdict never depends on it. Pure."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.cadence import UNKNOWN_LIMIT_S, TrainingBaseline
from sentinel.checks.log.judge import LogVerdict, StaleRules, judge_log, measure_shown_quiet_s
from sentinel.checks.log.log_state import LogObservation, LogState, WishState
from sentinel.checks.wishes import NO_WISH, find_wish, make_letter_id, refusal_letter
from sentinel.core.clock import get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.core.guidance import look
from sentinel.core.letters import Letter
from sentinel.core.model import Status
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.core.wishes import Wish

PAUSE_S = 3600.0
"""Seconds for which a pattern that used up its author's time is not searched."""

PAUSED_WORDS = (
    "your pattern took all the time that your patterns have in one pass, so it pauses for"
    f" {duration_text(PAUSE_S)}; write it without a repetition inside a repetition"
)
ELSEWHERE_WORDS = (
    "progress= is followed in the job's own output, and the operator's check reads another file"
)
UNREAD_WORDS = "NOT watched: cannot read the log"


class FollowedWish(Struct, frozen=True):
    """What a wish leads to in this run.

    own: The owner is told by the wish, so the check's own message about a standstill is not for
        this owner.
    """

    state: WishState | None = None
    own: bool = False
    letters: tuple[Letter, ...] = ()


def find_followed_wish(sight: LogObservation, seen: LogState | None) -> Wish:
    """The wish whose pattern is searched in new lines: none while it pauses."""
    wish, known = find_wish(sight.job), seen.wish if seen else None
    same = known is not None and known.pattern == wish.progress
    if same and known and known.paused and get_elapsed_s(known.paused, sight.at) < PAUSE_S:
        return NO_WISH
    return wish


def follow_wish(
    subject: str,
    sight: LogObservation,
    seen: LogState,
    rules: StaleRules,
    learned: TrainingBaseline,
    *,
    own_output: bool,
) -> FollowedWish:
    """What the owner's wish leads to. `seen` is the memory after this run, with the wish's state of
    the run before.

    A pattern is searched in the job's own output only (`own_output`). The owner might not be allowed
    to read a file that the operator has named, and a pattern would tell what stands in it."""
    job, wish = sight.job, find_wish(sight.job)
    if job is None or not wish.is_own_watch:
        return FollowedWish()
    before = seen.wish if seen.wish and seen.wish.pattern == wish.progress else None
    if sight.error or not sight.looks:
        why = [_unread_letter(subject, job, sight, own_output)] if sight.error else []
        return FollowedWish(before, False, tuple(why))
    state = _update_wish_state(sight, before, wish)
    if wish.progress and not own_output:
        state = replace(state, refused=ELSEWHERE_WORDS)
    by_pattern = bool(wish.progress) and not state.refused and not _is_paused(state, sight)
    verdict = (
        _judge_number(sight, seen, state, rules, wish)
        if by_pattern
        else judge_log(sight, seen, replace(rules, stale_after=wish.stale), learned)
    )
    own = by_pattern or wish.stale is not None
    letters = [refusal_letter(subject, job, state.refused)] if state.refused else []
    letters += [_paused_letter(subject, job)] if _is_paused(state, sight) else []
    if not own:  # whether it advances is not known by the wish, so a standstill does not end
        return FollowedWish(state, False, tuple(letters))
    stale = (state.stale or sight.at) if verdict.hung else None
    if at := state.stale or stale:
        over = not verdict.hung
        letters.append(_standstill_letter(subject, job, f"{at.wall}", verdict, over=over))
    return FollowedWish(replace(state, stale=stale), True, tuple(letters))


def _update_wish_state(sight: LogObservation, before: WishState | None, wish: Wish) -> WishState:
    found = sight.wished
    state = before or WishState(pattern=wish.progress, since=sight.at)
    if state.paused and not _is_paused(state, sight):
        state = replace(state, paused=None, since=sight.at)
    if found.paused:
        return replace(state, paused=state.paused or sight.at)
    if found.value is not None and found.value != state.value:
        state = replace(state, value=found.value, since=sight.at)
    return replace(state, refused=found.refused) if found.seconds else state


def _is_paused(state: WishState, sight: LogObservation) -> bool:
    return state.paused is not None and get_elapsed_s(state.paused, sight.at) < PAUSE_S


def _judge_number(
    sight: LogObservation, seen: LogState, state: WishState, rules: StaleRules, wish: Wish
) -> LogVerdict:
    """The verdict about the owner's own number, after a time to start."""
    limit = wish.stale or rules.stale_after or UNKNOWN_LIMIT_S
    quiet = get_elapsed_s(state.since, sight.at)
    shown = measure_shown_quiet_s(sight, seen, quiet)
    ago = duration_text(shown)
    hung = quiet >= limit and (state.value is not None or sight.job_age_s >= rules.startup)
    none = f"no line matches your pattern, for {ago} now"
    told = none if state.value is None else f"no progress for {ago}, still at {state.value:.15g}"
    told += f" (limit {duration_text(limit)})"
    return LogVerdict(
        status=Status.CRITICAL if hung else Status.OK, summary=told, quiet=shown, hung=hung
    )


def _standstill_letter(
    subject: str, job: Job, since: str, verdict: LogVerdict, *, over: bool
) -> Letter:
    number = visible(job.job_id)
    return Letter(
        id=make_letter_id(job.user, job.job_id, since),
        user=job.user,
        subject=subject,
        job=visible(job.name),
        severity="ok" if over else "critical",
        summary=f"job {number} advances again" if over else f"job {number}: {verdict.summary}",
        commands=()
        if over
        else (look("sentinel stacks {}", job.job_id), look("scontrol show job {}", job.job_id)),
        over=over,
    )


def _unread_letter(subject: str, job: Job, sight: LogObservation, own_output: bool) -> Letter:
    path = visible(sight.shown_path) if own_output else ""
    why = f": {sight.error}" if own_output else ""
    return Letter(
        id=make_letter_id(job.user, job.wish, UNREAD_WORDS, path),
        user=job.user,
        subject=subject,
        job=visible(job.name),
        severity="warning",
        summary=f"{UNREAD_WORDS} of job {visible(job.job_id)}{why}",
    )


def _paused_letter(subject: str, job: Job) -> Letter:
    return replace(
        refusal_letter(subject, job, PAUSED_WORDS),
        id=make_letter_id(job.user, PAUSED_WORDS),
    )
