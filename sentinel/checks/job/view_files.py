"""Reads the files that `job` needs: the proof that a training has finished, and the last lines of a
dead job."""

from __future__ import annotations

from msgspec import structs

from sentinel.checks.job import rules
from sentinel.checks.job.done import (
    find_proof_of_finish,
    find_proof_of_success,
    get_proof_viewer,
    last_run,
)
from sentinel.checks.job.ends import get_end_instant, get_run_seconds, recency_key
from sentinel.checks.job.files import JobFiles
from sentinel.checks.job.memory import GoneJob, Memory
from sentinel.checks.job.output import (
    MAX_END_CHARS,
    OutputEnd,
    get_stdout_path,
    summarize_end,
)
from sentinel.checks.job.queue import JobQueue
from sentinel.checks.job.rhythm import is_death
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.view import TrainingView
from sentinel.core.errors import CannotTell
from sentinel.user_files.files import OlderThanAsked
from sentinel.user_files.whose import Whose

LINES, WIDTH = 20, 300  # limits for the output of a dead job

MAX_UNREAD = 3
"""How many runs that died between two looks are read of, beside the last one."""


def with_files(
    settings: JobSettings, view: TrainingView, files: JobFiles, *, one_shot: bool
) -> TrainingView:
    """The view, with the facts from the files. Raises CannotTell if only the file could decide, and
    it cannot be read."""
    view = _with_kill_switch(settings, view, files)
    view = _with_finished(settings, view, files, one_shot)
    if is_dead(view.queue) and not view.finished:
        view = _with_risk(settings, _with_tail(view, files), files)
    return structs.replace(view, memory=structs.replace(view.memory, stuck=files.hanging_by_path))


def is_dead(queue: JobQueue) -> bool:
    """Whether nothing runs, and nothing will start without a person."""
    return not (queue.alive or queue.coming or queue.paused or queue.ending)


def _with_kill_switch(settings: JobSettings, view: TrainingView, files: JobFiles) -> TrainingView:
    if not settings.kill_switch:
        return structs.replace(view, kill_switch=False)
    if not (view.queue.pending or (settings.on_death and is_dead(view.queue))):
        return view
    try:
        there = files.path_exists(settings.kill_switch, get_proof_viewer(view.memory))
    except CannotTell as error:
        return _with_note(view, f"kill switch: {error}")
    return structs.replace(view, kill_switch=there)


def _with_finished(
    settings: JobSettings, view: TrainingView, files: JobFiles, one_shot: bool
) -> TrainingView:
    when, dead = settings.done_when, is_dead(view.queue)
    if when is None and view.many and dead and not settings.queued:
        return structs.replace(view, finished=find_proof_of_success(view.memory))
    asked = dead or rules.find_future_troubles(settings, view)
    if when is None or not asked or (when.state and not dead):
        return view
    try:
        proof = find_proof_of_finish(when, view.memory, files, one_shot=one_shot)
    except CannotTell as error:
        if dead:
            raise
        return _with_note(view, f"done_when: {error}")
    return structs.replace(view, finished=proof)


def _with_risk(settings: JobSettings, view: TrainingView, files: JobFiles) -> TrainingView:
    """The view, with the work that the death cost. Nothing is counted if no run saw it running."""
    last = last_run(view.memory)
    if settings.checkpoints is None or last is None:
        return view
    from sentinel.checks.checkpoint.risk import describe_work_at_risk

    text = describe_work_at_risk(
        settings.checkpoints,
        view.now,
        get_run_seconds(last, view.now),
        user=last.seen.user,
        limit=files.limit,
        ended=get_end_instant(last, view.now),
        stuck=files.hanging_by_path,
    )
    return structs.replace(view, at_risk=text)


def _with_tail(view: TrainingView, files: JobFiles) -> TrainingView:
    """The view, with the last lines of its last run, and of those that came and went before it."""
    last = last_run(view.memory)
    if last is None:
        return view
    runs = [last, *list_unread(view.memory, last)]
    kept = {id(gone): gone for gone in view.memory.gone}
    for gone in runs:
        if gone.tail is not None or not gone.asked:
            continue
        try:
            text, clean = _read_output_tail(gone, files)
        except CannotTell as error:
            view = _with_note(view, f"its last lines: {error}") if gone is last else view
            break  # what hangs must not cost the limit several times
        kept[id(gone)] = structs.replace(gone, tail=text, clean_output=clean)
    memory = structs.replace(view.memory, gone=tuple(kept.values()))
    return structs.replace(view, memory=memory)


def list_unread(memory: Memory, last: GoneJob) -> list[GoneJob]:
    """The newest dead runs that were never the last one at a look, so that nobody has read of them
    yet."""
    runs = [g for g in memory.gone if g is not last and g.at == last.at and is_death(g)]
    return sorted(runs, key=recency_key)[-MAX_UNREAD:]


def _read_output_tail(last: GoneJob, files: JobFiles) -> tuple[str, bool]:
    """The last lines of its output, and whether all the text that was read is clean.

    The output is read only if it is a regular file of the job's own user.
    """
    path = get_stdout_path(last)
    if not path.startswith("/"):
        return "", False
    try:
        whose = Whose(user=last.seen.user, owned=True)
        text = files.read_tail(path, MAX_END_CHARS, whose, last.started_at_s) or ""
    except OlderThanAsked as error:
        return str(error), False
    end = files.reader.ask(path, summarize_end, OutputEnd, text, LINES, WIDTH)
    return end.excerpt, end.clean


def _with_note(view: TrainingView, note: str) -> TrainingView:
    return structs.replace(view, notes=(*view.notes, note))
