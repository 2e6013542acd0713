"""Makes a finding from the checkpoints in the folder now and at the earlier looks. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from sentinel.checks.checkpoint.files import CheckpointContents, CheckpointEntry
from sentinel.core.checkpoint_names import name_form, needs_content
from sentinel.core.checkpoint_series import (
    MAX_COMPARED_STEPS,
    MIN_ALIKE_STEPS,
    count_series,
    find_missing_beside,
    find_saved_series,
)
from sentinel.core.checkpoints import CheckpointRule
from sentinel.core.clock import SECOND, Instant, get_elapsed_s, shift_instant
from sentinel.core.model import Status, Value
from sentinel.core.text import visible
from sentinel.core.values import clock_text, duration_text, size_text


class CompleteCheckpoint(Struct, frozen=True, kw_only=True):
    """A complete checkpoint."""

    step: float  # The number in its name.
    size: int  # bytes
    since: Instant  # when it became complete: its last change that was seen
    changed: float = 0.0  # when the entry itself was changed, by the file server's clock
    written: float = 0.0  # when its newest file was written, by that clock
    marker: int = 0  # bytes of its marker
    forms: Mapping[str, int] = {}  # number of files for each form of name
    empty: Sequence[str] = ()  # its files of weights without a byte, which is right


class UnfinishedCheckpoint(Struct, frozen=True, kw_only=True):
    """A checkpoint that was not complete when it was last looked into."""

    size: int  # Bytes of all its files.
    changed: float  # when its newest file was changed, by the file server's clock
    since: Instant  # when it was last seen to change


class FolderObservation(Struct, frozen=True, kw_only=True):
    """The checkpoints that the folder holds now."""

    at: Instant  # When it was examined.
    complete: Mapping[str, CompleteCheckpoint]  # Complete checkpoints, by name.
    # the checkpoint that is not complete, if it is the highest step or was written last; else empty
    begun: str = ""
    why: str = ""  # Why that one is not complete.
    ran: float | None = None  # how many seconds the job has run; None without a job
    unfit: str = ""  # a text if there are entries and none fits `match`


class CheckpointVerdict(Struct, frozen=True, kw_only=True):
    status: Status  # How bad it is.
    summary: str  # One line for people.
    values: Mapping[str, Value]  # Numbers for the result, by name.


def find_last_change(
    inside: CheckpointContents, before: UnfinishedCheckpoint | None, now: Instant, *, first: bool
) -> Instant:
    """When the checkpoint was last seen to change.

    At the `first` look only the file server's clock shows it. A time in the future of this host
    counts as now. At later looks it changed now, by this host's clock, if its bytes or its time
    differ from those of the look `before`.
    """
    if first:
        return shift_instant(now, -max(0.0, now.wall / SECOND - inside.changed))
    if before and (before.size, before.changed) == (inside.size, inside.changed):
        return before.since
    return now


class ComparedCheckpoints(Struct, frozen=True, kw_only=True):
    """The checkpoints and facts that a checkpoint is compared with."""

    pointer: str = ""  # the content of the file `latest`
    highest: float | None = None  # the step that `latest` names
    pointed: float | None = None  # when `latest` was written, by the file server's clock
    complete: Collection[CompleteCheckpoint] = ()  # the other complete ones
    # forms of names in all other checkpoints that were examined
    looked: Collection[Mapping[str, int]] = ()
    sizes: Collection[int] = ()  # bytes of those whose names have the same form
    alike_empty: Collection[str] = ()  # files that have no byte in the others either


REWRITING_SLACK_S = 120.0
"""How many seconds later than the marker a file may be written. Ranks do not wait for each
other."""

MIN_COMPLETE_SIZE_SHARE = 0.95
"""A checkpoint with fewer files than the others lacks some if it has less than this share of the
bytes of the smallest. After a restart on fewer ranks there are fewer files, but as many bytes."""

CUT_SIZE_SHARE = 0.75
"""A checkpoint with less than this share of the bytes of the last ones that were saved before it was cut, for
example by a full disk."""


def explain_incomplete(
    entry: CheckpointEntry,
    inside: CheckpointContents,
    rule: CheckpointRule,
    known: ComparedCheckpoints,
    quiet: float,
) -> str:
    """Why the checkpoint is not complete. Empty if it is complete. `quiet` is how many seconds
    nothing in it has changed."""
    if entry.lacks:
        return entry.lacks
    if why := _explain_unmarked(inside, rule, known):
        return why
    if rule.latest and (why := _explain_not_pointed_to(entry, inside, rule, known)):
        return why
    if inside.size < max(1, rule.min_size):
        return f"it has {size_text(inside.size)}"
    if not (rule.marker or rule.latest) and quiet < rule.settled:
        return f"it changed {duration_text(quiet)} ago"
    for path in inside.empty:
        if path not in known.alike_empty:
            return f"{visible(path)} has no byte"
    return inside.lacks or _explain_fewer_files(inside, known) or _explain_cut(inside, known)


def _explain_unmarked(
    inside: CheckpointContents, rule: CheckpointRule, known: ComparedCheckpoints
) -> str:
    """Why the marker does not show that the checkpoint is complete: it does not exist, it is empty
    although others are not, or a file was written after it. Empty if it shows that."""
    if inside.marker is None:
        return f"it has no {visible(rule.marker)}"
    if not rule.marker:
        return ""
    filled = needs_content(rule.marker) or any(one.marker for one in known.complete)
    if inside.marker == 0 and filled:
        return f"its {visible(rule.marker)} is empty or cut"
    if inside.marked is not None:
        newer, older = _split_by_age(inside, inside.marked, rule.marker)
        if file := _explain_rewritten(newer, older, known):
            return f"{visible(file)} was written after its {visible(rule.marker)}"
    return ""


def _explain_not_pointed_to(
    entry: CheckpointEntry,
    inside: CheckpointContents,
    rule: CheckpointRule,
    known: ComparedCheckpoints,
) -> str:
    """Why `latest` does not show that the checkpoint is complete: it names a lower step or none, or
    the checkpoint was written after it. Empty if it shows that."""
    if known.highest is None or entry.step > known.highest:
        return f"{visible(rule.latest)} names {visible(known.pointer) or 'none'}"
    if known.pointed is None:
        return ""
    newer, older = _split_by_age(inside, known.pointed)
    if newer and not older and entry.step != known.highest:
        return f"it was written after {visible(rule.latest)}, which names {visible(known.pointer)}"
    if file := older and _explain_rewritten(newer, older, known):
        return f"{visible(str(file))} was written after {visible(rule.latest)}"
    return ""


def _split_by_age(
    inside: CheckpointContents, when: float, marker: str = ""
) -> tuple[list[str], list[str]]:
    """The paths of the files that were written more than REWRITING_SLACK_S after `when`, and the
    paths of the others. The marker is in neither list."""
    newer, older = list[str](), list[str]()
    for path, _, at in inside.files:
        if path != marker:
            (newer if at > when + REWRITING_SLACK_S else older).append(path)
    return newer, older


def _explain_rewritten(
    newer: Sequence[str], older: Sequence[str], known: ComparedCheckpoints
) -> str:
    """The first of the `newer` files that belongs to the save. Empty if there is none.

    A file whose name has a form that no checkpoint has, such as a note or an export, was only put
    beside the others. If no file is older, each belongs to the save.
    """
    if not newer:
        return ""
    usual = {name_form(path) for path in older} | {form for one in known.looked for form in one}
    return next((path for path in newer if not older or name_form(path) in usual), "")


def _explain_fewer_files(inside: CheckpointContents, known: ComparedCheckpoints) -> str:
    """Describe files that the other complete checkpoints have and this one lacks. Empty if it lacks
    none."""
    mine = find_saved_series(inside.files)
    others = sorted((one for one in known.complete if one.forms), key=lambda one: one.written)
    if sum(one == count_series(mine) for one in known.looked) >= MIN_ALIKE_STEPS:
        return ""
    least = min((one.size for one in others), default=0)
    return visible(
        find_missing_beside(
            mine,
            [one.forms for one in others],
            is_smaller=inside.size < MIN_COMPLETE_SIZE_SHARE * least,
        )
    )


def _explain_cut(inside: CheckpointContents, known: ComparedCheckpoints) -> str:
    """A text if the checkpoint is much smaller than the last ones that were saved before it, and at most
    one other is as small. Otherwise empty."""
    saved = sorted((c.written, c.size) for c in known.complete if c.written <= inside.changed)
    older = [size for _, size in saved[-MAX_COMPARED_STEPS:]]
    limit = inside.size / CUT_SIZE_SHARE
    alike = sum(one <= limit for one in known.sizes)
    if len(older) < MIN_ALIKE_STEPS or alike >= MIN_ALIKE_STEPS or min(older) <= limit:
        return ""
    return (
        f"it has {size_text(inside.size)}, and those before it have {size_text(min(older))} or more"
    )


def find_newest_complete(
    complete: Mapping[str, CompleteCheckpoint], now: Instant
) -> tuple[str, CompleteCheckpoint] | None:
    """The checkpoint that became complete last, with its name. None if none is complete. After a
    job went back to an earlier step, this is not the highest step."""
    if not complete:
        return None
    return min(
        complete.items(), key=lambda pair: (get_elapsed_s(pair[1].since, now), -pair[1].step)
    )


def get_seconds_at_risk(
    complete: Mapping[str, CompleteCheckpoint], now: Instant, ran: float | None
) -> float | None:
    """Seconds of work that would be lost now. None if no complete checkpoint and no job is known.

    A job can lose only its own work. So the value is never more than the time that the job has run.
    """
    last = find_newest_complete(complete, now)
    ages = [] if last is None else [get_elapsed_s(last[1].since, now)]
    ages += [] if ran is None else [ran]
    return min(ages, default=None)


def render_risk(complete: Mapping[str, CompleteCheckpoint], now: Instant, ran: float | None) -> str:
    """For example `2h 14m of work since checkpoint global_step1200 at risk`, for any message."""
    seconds, last = get_seconds_at_risk(complete, now, ran), find_newest_complete(complete, now)
    if seconds is None:
        return "no complete checkpoint is known"
    work = f"{duration_text(seconds)} of work"
    if last is None:
        return f"{work} at risk: there is no complete checkpoint"
    return f"{work} since checkpoint {visible(last[0])} at risk"


def judge_checkpoints(
    sight: FolderObservation, late_after: float, fewest: int
) -> CheckpointVerdict:
    """CRITICAL if more than `late_after` seconds of work are not saved, by as much as a person can
    read in the message. WARNING if fewer than
    `fewest` checkpoints are complete, or if none is and no job runs."""
    risk = get_seconds_at_risk(sight.complete, sight.at, sight.ran)
    late = (
        risk is not None and risk > late_after and duration_text(risk) != duration_text(late_after)
    )
    none = not sight.complete
    few = len(sight.complete) < fewest
    status = Status.OK
    if few or (none and sight.ran is None):
        status = Status.WARNING
    if late:
        status = Status.CRITICAL
    return CheckpointVerdict(
        status=status,
        summary=_render_summary(sight, late_after, fewest, late),
        values=_make_values(sight),
    )


def _render_summary(sight: FolderObservation, late_after: float, fewest: int, late: bool) -> str:
    last = find_newest_complete(sight.complete, sight.at)
    age = get_elapsed_s(last[1].since, sight.at) if last else None
    started = "" if sight.ran is None else f"the job started {duration_text(sight.ran)} ago"
    young = sight.ran is not None and (age is None or sight.ran < age)
    parts = []
    if late:
        since = f"since {started}" if young else f"for {duration_text(age or 0.0)}"
        parts.append(f"nothing saved {since} (limit {duration_text(late_after)})")
    if len(sight.complete) < fewest:
        parts.append(
            f"{len(sight.complete)} complete checkpoint{'s' * (len(sight.complete) != 1)}, at least {fewest} expected"
        )
    parts.append(_describe_newest(last, sight.at) if last else "no complete checkpoint")
    if young and not late:
        parts.append(started)
    if sight.unfit:
        parts.append(sight.unfit)
    if sight.begun:
        parts.append(f"{visible(sight.begun)} is not complete: {sight.why}")
    return "; ".join(parts)


def _describe_newest(last: tuple[str, CompleteCheckpoint], now: Instant) -> str:
    name, one = last
    age = get_elapsed_s(one.since, now)
    at = clock_text(now.wall / SECOND - age, now.wall / SECOND)
    words = f"complete {at} ({duration_text(age)} old, {size_text(one.size)})"
    return f"newest {visible(name)}, {words}"


def _make_values(sight: FolderObservation) -> dict[str, Value]:
    last = find_newest_complete(sight.complete, sight.at)
    risk = get_seconds_at_risk(sight.complete, sight.at, sight.ran)
    return {
        "age_seconds": round(get_elapsed_s(last[1].since, sight.at), 1) if last else None,
        "at_risk_seconds": None if risk is None else round(risk, 1),
        "size_bytes": last[1].size if last else None,
        "complete": len(sight.complete),
        "step": last[1].step if last else None,
    }
