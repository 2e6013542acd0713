"""From what lies in the folder, and what lay there before, to a finding. Pure."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from sentinel.checks.checkpoint.files import CheckpointContents, CheckpointEntry
from sentinel.core.checkpoint_names import needs_content
from sentinel.core.checkpoints import CheckpointRule
from sentinel.core.clock import SECOND, Instant, get_elapsed_s, shift_instant
from sentinel.core.model import Status, Value
from sentinel.core.text import visible
from sentinel.core.values import duration_text, size_text


class CompleteCheckpoint(Struct, frozen=True, kw_only=True):
    """A complete checkpoint."""

    step: float
    size: int  # bytes
    since: Instant  # when it was complete
    changed: float = 0.0  # of its own name, by the file server's clock
    written: float = 0.0  # of the last of its files, by that clock
    marker: int = 0  # bytes of its marker
    forms: Mapping[str, int] = {}  # how many files it has of each form of name


class UnfinishedCheckpoint(Struct, frozen=True, kw_only=True):
    """One that was not complete when it was last looked into; `since` when it last changed."""

    size: int
    changed: float
    since: Instant


class FolderObservation(Struct, frozen=True, kw_only=True):
    """The folder now: complete ones by name, and the newest that is not complete, if it is the
    newest of all. `ran`: seconds the job runs, None without a job. `unfit`: that there are entries
    and none fits `match`."""

    at: Instant
    complete: Mapping[str, CompleteCheckpoint]
    begun: str = ""
    why: str = ""
    ran: float | None = None
    unfit: str = ""


class CheckpointVerdict(Struct, frozen=True, kw_only=True):
    status: Status
    summary: str
    values: Mapping[str, Value]


def find_last_change(
    inside: CheckpointContents, before: UnfinishedCheckpoint | None, now: Instant, *, first: bool
) -> Instant:
    """When it was last seen to change.

    From one look to the next by this host's clock; at the `first` look the file server's clock
    is all there is, and what was changed in its future was changed just now.
    """
    if first:
        return shift_instant(now, -max(0.0, now.wall / SECOND - inside.changed))
    if before and (before.size, before.changed) == (inside.size, inside.changed):
        return before.since
    return now


class ComparedCheckpoints(Struct, frozen=True, kw_only=True):
    """What a checkpoint is compared with."""

    pointer: str = ""  # what the file `latest` says
    highest: float | None = None  # the step that it names
    pointed: float | None = None  # when it was written, by the file server's clock
    complete: Collection[CompleteCheckpoint] = ()  # the other complete ones
    looked: Collection[Mapping[str, int]] = ()  # forms of all others that were looked into


REWRITING_SLACK_S = 120.0
"""So much later than the marker a file may be: ranks do not wait for each other."""

MIN_COMPLETE_SIZE_SHARE = 0.95
"""With fewer files and less of the others' bytes some are missing; fewer ranks write fewer files,
and as many bytes."""

MIN_ALIKE_CHECKPOINTS = 2
"""Where so many others have as few files, that is their form now."""


def explain_incomplete(
    entry: CheckpointEntry,
    inside: CheckpointContents,
    rule: CheckpointRule,
    known: ComparedCheckpoints,
    quiet: float,
) -> str:
    """Why it is not complete; empty when it is. `quiet`: seconds for which nothing in it has
    changed."""
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
    return inside.lacks or _explain_fewer_files(inside, known)


def count_name_forms(inside: CheckpointContents) -> dict[str, int]:
    """How many files it has of each form of name: `__#_#.distcp`."""
    found = Counter(_get_name_form(path) for path, _, _ in inside.files)
    return dict(found) if len(found) <= 200 else {}


def _explain_unmarked(
    inside: CheckpointContents, rule: CheckpointRule, known: ComparedCheckpoints
) -> str:
    """A marker that others fill and this one does not, or that is older than what it marks."""
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
    """Above what `latest` names, or written since it was."""
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
    """Paths of files that are younger, and of those that are not."""
    newer, older = list[str](), list[str]()
    for path, _, at in inside.files:
        if path != marker:
            (newer if at > when + REWRITING_SLACK_S else older).append(path)
    return newer, older


def _explain_rewritten(
    newer: Sequence[str], older: Sequence[str], known: ComparedCheckpoints
) -> str:
    """A file that was written again. What has a form that no checkpoint has, such as a note or an
    export, was only laid beside the others."""
    if not newer:
        return ""
    usual = {_get_name_form(path) for path in older} | {
        form for one in known.looked for form in one
    }
    return next((path for path in newer if not older or _get_name_form(path) in usual), "")


def _explain_fewer_files(inside: CheckpointContents, known: ComparedCheckpoints) -> str:
    """What the others have more of, where it is smaller as well."""
    mine = count_name_forms(inside)
    others = [one for one in known.complete if one.forms]
    if not (mine and others) or inside.size >= MIN_COMPLETE_SIZE_SHARE * min(
        one.size for one in others
    ):
        return ""
    if sum(one == mine for one in known.looked) >= MIN_ALIKE_CHECKPOINTS:
        return ""
    for form in others[0].forms:
        least = min(one.forms.get(form, 0) for one in others)
        if mine.get(form, 0) < least:
            name = visible(form) or "it"
            return f"it has fewer files than the others: {mine.get(form, 0)} of {least} {name}"
    return ""


def _get_name_form(path: str) -> str:
    folder, name = os.path.split(path)
    return re.sub("[0-9]+", "#", os.path.join(folder, name))


def find_newest_complete(
    complete: Mapping[str, CompleteCheckpoint], now: Instant
) -> tuple[str, CompleteCheckpoint] | None:
    """The last that became complete: after a fall back to an earlier step, higher ones are old."""
    if not complete:
        return None
    return min(
        complete.items(), key=lambda pair: (get_elapsed_s(pair[1].since, now), -pair[1].step)
    )


def get_seconds_at_risk(
    complete: Mapping[str, CompleteCheckpoint], now: Instant, ran: float | None
) -> float | None:
    """Seconds of work that would be lost now; None where neither is known.

    What a job has not done it cannot lose: after a start it is at most as long as it runs.
    """
    last = find_newest_complete(complete, now)
    ages = [] if last is None else [get_elapsed_s(last[1].since, now)]
    ages += [] if ran is None else [ran]
    return min(ages, default=None)


def render_risk(complete: Mapping[str, CompleteCheckpoint], now: Instant, ran: float | None) -> str:
    """`2h 14m of work since checkpoint global_step1200 are at risk`, for any message."""
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
    """Late while work is at risk for longer than that; few is a warning."""
    risk = get_seconds_at_risk(sight.complete, sight.at, sight.ran)
    late = risk is not None and risk > late_after
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
    parts = [_describe_newest(last, sight.at) if last else "no complete checkpoint"]
    if late:
        parts.append(
            f"{render_risk(sight.complete, sight.at, sight.ran)}, late after {duration_text(late_after)}"
        )
    elif sight.ran is not None and last is None:
        parts.append(f"the job has run for {duration_text(sight.ran)}")
    if len(sight.complete) < fewest:
        parts.append(f"{len(sight.complete)} complete, at least {fewest} expected")
    if sight.unfit:
        parts.append(sight.unfit)
    if sight.begun:
        parts.append(f"{visible(sight.begun)} is not complete: {sight.why}")
    return "; ".join(parts)


def _describe_newest(last: tuple[str, CompleteCheckpoint], now: Instant) -> str:
    name, one = last
    age = duration_text(get_elapsed_s(one.since, now))
    return f"newest {visible(name)}, {size_text(one.size)}, complete {age} ago"


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
