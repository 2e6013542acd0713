"""Everything a run asks the world for, after the queue: ends of jobs, files, last lines."""

import time
from collections.abc import Mapping

from msgspec import structs

from sentinel.checks.job import rules
from sentinel.checks.job.done import ended_well, finished, last_run
from sentinel.checks.job.ends import last_moment, lasted
from sentinel.checks.job.files import Files
from sentinel.checks.job.memory import Gone, Memory
from sentinel.checks.job.output import stdout
from sentinel.checks.job.queue import Queue
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.view import View
from sentinel.core.errors import CannotTell
from sentinel.core.jobstates import Phase, phase
from sentinel.core.ports import Slurm
from sentinel.core.text import shortened, visible_lines

ASKED = 3  # jobs whose end is asked for in one run: each is one more request to slurmctld
MOST_ASKED = 60  # of many trainings together: a node or a switch that dies takes dozens along
LINES, WIDTH, BYTES = 20, 300, 16384  # of a dead job's output


def with_ends(memories: Mapping[str, Memory], slurm: Slurm, limit: float) -> dict[str, Memory]:
    """Ask Slurm how the jobs that are gone have ended, while it still remembers.

    For `limit` seconds; a question that fails or has no time is asked in the next run.
    """
    deadline, left = time.monotonic() + limit, MOST_ASKED
    after = dict(memories)
    for subject, memory in memories.items():
        wanted = [g for g in memory.gone if not g.asked][: min(ASKED, left)]
        if not wanted:
            continue
        if time.monotonic() > deadline:
            break
        left -= len(wanted)
        asked = tuple(_asked(g, slurm) if g in wanted else g for g in memory.gone)
        after[subject] = structs.replace(memory, gone=asked)
    return after


def _asked(gone: Gone, slurm: Slurm) -> Gone:
    try:
        end = slurm.job_end(gone.seen.job_id)
    except CannotTell:
        return gone
    if end and phase(end.state.split(" ")[0]) is not Phase.OVER:
        return gone
    return structs.replace(gone, asked=True, end=end)


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
    if not settings.kill_switch or not view.queue.pending:
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
    if last is None or last.tail is not None or last.end is None:
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
    lines = visible_lines(files.own_tail(path, BYTES, last.seen.user)).splitlines()[-LINES:]
    return "\n".join(shortened(line, WIDTH) for line in lines)


def _noted(view: View, note: str) -> View:
    return structs.replace(view, notes=(*view.notes, note))
