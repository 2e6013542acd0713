"""What a run asks the file system for: the end of a training, the last lines of a job."""

from msgspec import structs

from sentinel.checks.job import rules
from sentinel.checks.job.done import ended_well, finished, last_run
from sentinel.checks.job.ends import last_moment, lasted
from sentinel.checks.job.files import Files
from sentinel.checks.job.memory import Gone
from sentinel.checks.job.output import condensed, stdout
from sentinel.checks.job.queue import Queue
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.view import View
from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible_lines
from sentinel.proc.owned import NotSince

LINES, WIDTH, BYTES = 20, 300, 2**17  # of a dead job's output


def with_files(settings: JobSettings, view: View, files: Files, *, one_shot: bool) -> View:
    """The view with what the files say. Raises CannotTell where that alone would decide."""
    view = _with_kill_switch(settings, view, files)
    view = _with_finished(settings, view, files, one_shot)
    if is_dead(view.queue) and not view.finished:
        view = _with_risk(settings, _with_tail(view, files), files)
    return structs.replace(view, memory=structs.replace(view.memory, stuck=files.stuck))


def is_dead(queue: Queue) -> bool:
    """Nothing runs and nothing will start without a person."""
    return not (queue.alive or queue.coming or queue.paused or queue.ending)


def _with_kill_switch(settings: JobSettings, view: View, files: Files) -> View:
    if not settings.kill_switch:
        return structs.replace(view, kill_switch=False)
    if not (view.queue.pending or (settings.on_death and is_dead(view.queue))):
        return view
    try:
        there = files.there(settings.kill_switch)
    except CannotTell as error:
        return _noted(view, f"kill switch: {error}")
    return structs.replace(view, kill_switch=there)


def _with_finished(settings: JobSettings, view: View, files: Files, one_shot: bool) -> View:
    when, dead = settings.done_when, is_dead(view.queue)
    if when is None and view.many and dead and not settings.queued:
        return structs.replace(view, finished=ended_well(view.memory))
    asked = dead or rules.about_the_end(settings, view)
    if when is None or not asked or (when.state and not dead):
        return view
    try:
        proof = finished(when, view.memory, files, one_shot=one_shot)
    except CannotTell as error:
        if dead:
            raise
        return _noted(view, f"done_when: {error}")
    return structs.replace(view, finished=proof)


def _with_risk(settings: JobSettings, view: View, files: Files) -> View:
    """What the death costs, counted until then; nothing where nobody saw it run."""
    last = last_run(view.memory)
    if settings.checkpoints is None or last is None:
        return view
    from sentinel.checks.checkpoint.risk import work_at_risk

    text = work_at_risk(
        settings.checkpoints,
        view.now,
        lasted(last, view.now),
        limit=files.limit,
        ended=last_moment(last, view.now),
        stuck=files.stuck,
    )
    return structs.replace(view, at_risk=text)


def _with_tail(view: View, files: Files) -> View:
    last = last_run(view.memory)
    if last is None or last.tail is not None or not last.asked:
        return view
    try:
        text = _tail(last, files)
    except CannotTell as error:
        return _noted(view, f"its last lines: {error}")
    kept = tuple(structs.replace(g, tail=text) if g is last else g for g in view.memory.gone)
    return structs.replace(view, memory=structs.replace(view.memory, gone=kept))


def _tail(last: Gone, files: Files) -> str:
    """The last lines of its output, if that is a regular file of the job's own user."""
    path = stdout(last)
    if not path.startswith("/"):
        return ""
    try:
        text = files.own_tail(path, BYTES, last.seen.user, last.started)
    except NotSince as error:
        return str(error)
    lines = [shortened(line, WIDTH) for line in visible_lines(text).splitlines()]
    return "\n".join(condensed(lines)[-LINES:])


def _noted(view: View, note: str) -> View:
    return structs.replace(view, notes=(*view.notes, note))
