"""Describes in one line, for the messages of other checks, the work that would be lost if a
training ended now."""

from __future__ import annotations

from collections.abc import Collection, MutableMapping, Sequence

from sentinel import proc
from sentinel.checks.checkpoint.files import (
    MAX_LOOKS,
    CheckpointContents,
    CheckpointEntry,
    CheckpointFolder,
    find_alike_empty,
)
from sentinel.checks.checkpoint.judge import (
    ComparedCheckpoints,
    CompleteCheckpoint,
    explain_incomplete,
    find_last_change,
    render_risk,
)
from sentinel.core.checkpoints import CheckpointPlace, CheckpointRule
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.errors import CannotTell
from sentinel.user_files.files import UserFiles
from sentinel.user_files.whose import Whose


def describe_work_at_risk(
    where: CheckpointPlace,
    now: Instant,
    ran: float | None,
    *,
    user: str,
    limit: float,
    ended: Instant | None = None,
    stuck: MutableMapping[str, proc.StuckProcess] | None = None,
) -> str:
    """For example `2h 14m of work since checkpoint global_step1200 at risk`. If this cannot be
    determined, the reason.

    It reads the folder once, for at most `limit` seconds, and uses the file server's times. `user`
    is the user of the job. `ran` is how many seconds the job has worked. `ended` is when it last
    worked, if not now. `stuck` are child processes that could not be killed, by path, which the
    caller remembers.
    """
    files = UserFiles(limit / 2, limit, stuck or {})
    folder = CheckpointFolder(where.path, where.match, files, Whose(user=user, literal=True))
    try:
        return render_risk(_find_complete(folder, where, now), ended or now, ran)
    except CannotTell as error:
        return f"work at risk is not known: {error}"
    finally:
        if stuck is not None:
            stuck.update(files.hanging_by_path)


ENOUGH = 2
"""The highest step and the one that was changed last: a note makes an old one the latter."""


def _find_complete(
    folder: CheckpointFolder, where: CheckpointPlace, now: Instant
) -> dict[str, CompleteCheckpoint]:
    entries, rule = folder.list_checkpoints(), where.complete
    pointer = folder.read_pointer(rule.latest) if rule.latest else None
    highest = pointer.find_step(entries) if pointer else None
    order = sorted(entries, key=lambda e: e.changed, reverse=True)
    order.sort(key=lambda e: (e.step != highest, e is not entries[0]))
    found: dict[str, CompleteCheckpoint] = {}
    for count, entry in enumerate(order[:MAX_LOOKS]):
        if count and folder.is_short_of_time:
            break
        inside = folder.look_into(entry, rule)
        inside = inside.without_notes(inside.forms)
        since = find_last_change(inside, None, now, first=True)
        known = ComparedCheckpoints(
            pointer=pointer.first_line_text if pointer else "",
            highest=highest,
            pointed=pointer.written if pointer else None,
            alike_empty=_find_alike_empty(folder, inside, order[count + 1 : count + 3], rule),
        )
        if not explain_incomplete(entry, inside, rule, known, get_elapsed_s(since, now)):
            one = CompleteCheckpoint(step=entry.step, size=inside.size, since=since)
            found[entry.name] = one
            if len(found) == ENOUGH:
                break
    return found


def _find_alike_empty(
    folder: CheckpointFolder,
    inside: CheckpointContents,
    beside: Sequence[CheckpointEntry],
    rule: CheckpointRule,
) -> set[str]:
    """Its empty files that have no byte in the next older ones either. Those are only read if it has
    such files and there is time."""
    others = list[tuple[Collection[str], Collection[str]]]()
    for entry in beside if inside.empty else ():
        if not folder.is_short_of_time:
            other = folder.look_into(entry, rule)
            others.append((other.empty, {path for path, _, _ in other.files}))
    return find_alike_empty(inside.empty, others)
