"""The judgement: a pure function of what was gathered. Worst first, one finding."""

import os
import shlex
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from msgspec import structs

from sentinel.checks.job import rules, words
from sentinel.checks.job.done import last_run, seems_finished
from sentinel.checks.job.ends import describe_end, is_completed
from sentinel.checks.job.memory import GoneJob, Memory
from sentinel.checks.job.output import find_error_line, find_last_step, get_stdout_path
from sentinel.checks.job.queue import JobQueue, TrainingView, count_elements
from sentinel.checks.job.rhythm import (
    PLANNED_GAP_S,
    SECOND_LOOK_S,
    SuccessorWait,
    explain_wait,
    find_wait,
    render_wait,
    suggest_gap_line,
)
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.succession import is_cancelled_by_owner
from sentinel.core.clock import get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.core.model import Finding, Status, Value
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.slurm.job_states import find_unknown_state
from sentinel.slurm.pending_reasons import explain_reason
from sentinel.slurm.submission import resubmit_shell


def judge_training(settings: JobSettings, view: TrainingView) -> Finding:
    """One finding about one training."""
    queue = view.queue
    if queue.alive or queue.coming or queue.paused or queue.ending:
        return _judge_alive(settings, view)
    if view.finished:
        left = f"; still queued: {words.describe_stuck(queue.held)}" if queue.held else ""
        return _make_finding(settings, view, Status.OK, f"finished: {view.finished}{left}")
    return _judge_dead(settings, view)


def make_unknown_finding(settings: JobSettings, view: TrainingView, why: str) -> Finding:
    """The finding where the one thing that decides cannot be seen."""
    return _make_finding(settings, view, Status.UNKNOWN, why)


def _judge_alive(settings: JobSettings, view: TrainingView) -> Finding:
    troubles = rules.find_present_troubles(settings, view)
    troubles += [] if view.finished else rules.find_future_troubles(settings, view)
    done = [f"finished: {view.finished}"] if view.finished else []
    status = Status.WARNING if troubles else Status.OK
    if rules.find_slow_end(settings, view) and not (
        view.finished or view.queue.coming or view.queue.paused
    ):
        status = Status.CRITICAL  # nothing runs, and nothing will
    if status is Status.OK and (why := _describe_unclear_jobs(view.queue)):
        return make_unknown_finding(settings, view, visible(why))
    return _make_finding(
        settings, view, status, "; ".join([*troubles, _describe_queue(view), *done])
    )


def _describe_unclear_jobs(queue: JobQueue) -> str:
    """Why nobody can tell what becomes of it, where all there is has a state that is not known."""
    known = queue.alive or queue.waiting or queue.paused or queue.ending
    return "" if known else find_unknown_state(queue.unclear)


def _describe_queue(view: TrainingView) -> str:
    queue, now = view.queue, view.now
    if queue.alive:
        return words.describe_running(queue, now)
    if queue.coming:
        return _describe_gap(view) + words.describe_pending(queue.coming, queue, now)
    if queue.paused:
        return f"nothing else will start{words.describe_held(queue)}"
    held = words.describe_held(queue)
    return f"ending: {words.describe_resting(queue.ending)}; nothing will start after it{held}"


def _describe_gap(view: TrainingView) -> str:
    """What went before, where it is remembered: the gap between two jobs is no death."""
    last = last_run(view.memory)
    return f"{describe_end(last, view.now)}, next is " if last and view.memory.alive else ""


def _judge_dead(settings: JobSettings, view: TrainingView) -> Finding:
    queue, gone = view.queue, view.memory.gone
    informs = _is_for_information(settings, view)
    if view.many and not gone and _is_held_by_user(queue.held):
        return _make_finding(
            settings, view, Status.OK, f"held by its user: {words.describe_stuck(queue.held)}"
        )
    if note := _describe_owner_cancel(view):
        return _make_finding(settings, view, Status.OK, note)
    if queue.held:
        verb = "needs" if count_elements(queue.held) == 1 else "need"
        text = (
            f"not running, and what is queued {verb} a person: {words.describe_stuck(queue.held)}"
        )
        text += f"; {describe_end(_get_main_job(view.memory), view.now)}" if gone else ""
    elif informs:
        text = f"it may have finished, and nothing is queued: {describe_end(_get_main_job(view.memory), view.now)}"
    elif gone:
        main = _get_main_job(view.memory)
        text = f"not running and nothing is queued{_describe_stopped_work(main)}: {describe_end(main, view.now)}"
        text += _describe_last_seen(main, view)
    else:
        text = "not running and nothing is queued; no such job has been seen"
        if other := view.slurm_clusters:
            text += (
                f" (SLURM_CLUSTERS={shortened(visible(other), 60)} is set here and not followed:"
                " `cluster` in the check names another cluster)"
            )
    where = f"its nodes are in the maintenance reservation {visible(view.maintenance)}"
    wait = _get_wait(settings, view)
    waits = render_wait(wait, view.memory.dead or view.now, view.now, view.zone)
    texts = [view.at_risk, view.maintenance and where, waits]
    more = [*_list_storm(settings, view), *filter(None, texts)]
    status = Status.WARNING if informs else Status.CRITICAL
    finding = _make_finding(settings, view, status, "; ".join([text, *more]))
    return structs.replace(
        finding,
        tell_once=informs,
        details="\n".join([*view.notes, _SAY_WHAT_FINISHED_MEANS]) if informs else finding.details,
        patience=wait.seconds,
        values={
            **dict(_iterate_circumstances(view)),
            **finding.values,
            **dict(_iterate_wait_reasons(settings, view)),
        },
        began=_get_last_end_s(view),
    )


_SAY_WHAT_FINISHED_MEANS = (
    "this is told once; say in the check what finished means: `done_when: {state: completed}`, or"
    " `queued: 1` where another job has to follow"
)


def _is_for_information(settings: JobSettings, view: TrainingView) -> bool:
    """Whether its end is told once, for information: where the file does not say what finishes it, and
    all that was seen of it looks as if it had."""
    if settings.queued or settings.done_when or view.queue.held:
        return False
    return seems_finished(view.memory)


def _get_last_end_s(view: TrainingView) -> int | None:
    """When the job that ended last did so, epoch seconds."""
    end = _get_main_job(view.memory).end if view.memory.gone else None
    return end.ended if end else None


def _describe_last_seen(gone: GoneJob, view: TrainingView) -> str:
    """Since when at most it is gone, where nobody says when it ended."""
    alive = view.memory.alive
    if gone.end or gone.lost is not None or not gone.has_run or alive is None:
        return ""
    return f"; it was last seen running {duration_text(get_elapsed_s(alive, view.now))} ago"


def _describe_stopped_work(gone: GoneJob) -> str:
    """Whom it stops, and how much of the cluster that is: ` (alice, 64 GPUs on 8 nodes)`."""
    how = gone.how
    if how is None or not gone.has_run:
        return ""
    size = [f"{how.gpus} GPU{'s' * (how.gpus > 1)}"] if how.gpus else []
    size += [f"{how.nodes} node{'s' * (how.nodes > 1)}"] if how.nodes else []
    return f" ({', '.join([visible(gone.seen.user), ' on '.join(size)])})" if size else ""


def _iterate_circumstances(view: TrainingView) -> Iterator[tuple[str, Value]]:
    """What people ask first of a death; then what it costs, and where it wrote: by these alerts find
    their place and their cause (alerting.incidents)."""
    last = last_run(view.memory)
    if last and (why := find_error_line(last.tail or "")):
        yield "cause", why
    if last and (step := find_last_step(last.tail or "")):
        yield "last_step", step
    if view.maintenance:
        yield "maintenance", visible(view.maintenance)
    if view.memory.gone:
        main = _get_main_job(view.memory)
        written = get_stdout_path(main)
        if path := main.seen.workdir if not written or written == os.devnull else written:
            yield "path", visible(path)
        if main.how is not None and main.how.gpus:
            yield "gpus", main.how.gpus


def _iterate_wait_reasons(settings: JobSettings, view: TrainingView) -> Iterator[tuple[str, str]]:
    """Why it is told when it is."""
    if view.memory.gone and not view.queue.held and view.for_ is None:
        why = explain_wait(_get_main_job(view.memory), view.memory, settings.gap)
        yield from [("why_now", why)] if why else []


def _describe_owner_cancel(view: TrainingView) -> str:
    """Its own user has cancelled it and holds what is left: they know. A note, and no alarm; but
    what sentinel has cancelled in their name nobody knows."""
    queue, gone = view.queue, view.memory.gone
    if not gone or view.ours or not is_cancelled_by_owner(_get_main_job(view.memory)):
        return ""
    if queue.held and not _is_held_by_user(queue.held):
        return ""
    rest = f"; {words.describe_stuck(queue.held)}" if queue.held else ", and nothing is queued"
    return f"stopped by its own user: {describe_end(_get_main_job(view.memory), view.now)}{rest}"


def _get_wait(settings: JobSettings, view: TrainingView) -> SuccessorWait:
    """How long it has to last before it is told: what is held is asked for twice."""
    if view.for_ is not None:
        return SuccessorWait(view.for_, f"`for: {duration_text(view.for_)}` in the file says so")
    if view.queue.held:
        # Between two jobs of an account its limit is free for a moment.
        shared = all(explain_reason(job.reason).shared for job in view.queue.held)
        return SuccessorWait(PLANNED_GAP_S if shared else SECOND_LOOK_S)
    if not view.memory.gone:
        return SuccessorWait(0.0)
    return find_wait(_get_main_job(view.memory), view.memory, settings.gap)


def _is_held_by_user(held: Sequence[Job]) -> bool:
    """Whether whose job it is holds it, and so knows."""
    return bool(held) and all(explain_reason(job.reason).code == "JobHeldUser" for job in held)


def _list_storm(settings: JobSettings, view: TrainingView) -> list[str]:
    text = rules.find_restart_storm(settings, view)
    return [text] if text else []


def _get_main_job(memory: Memory) -> GoneJob:
    return last_run(memory) or memory.gone[0]


def _make_finding(
    settings: JobSettings, view: TrainingView, status: Status, summary: str
) -> Finding:
    return Finding(
        subject=view.subject,
        status=status,
        summary=summary,
        values=_make_values(view),
        details=_make_details(settings, view, status),
        commands=_suggest_job_commands(view),
        labels=_make_labels(settings, view),
    )


def _make_values(view: TrainingView) -> Mapping[str, Value]:
    queue = view.queue
    return {
        "running": len(queue.alive),
        "pending": count_elements(queue.pending),
        "queued": count_elements(queue.coming),
        "needs_person": count_elements(queue.held),
        "nodes": sum(job.node_count for job in queue.alive),
        "restarts": len(view.memory.restarts),
    }


def _make_details(settings: JobSettings, view: TrainingView, status: Status) -> str:
    lines = list(view.notes)
    if status is Status.CRITICAL:
        lines += [] if view.many else find_similar_jobs(settings, view)
        main = _get_main_job(view.memory) if view.memory.gone else None
        lines += [describe_end(gone, view.now) for gone in view.memory.gone if gone is not main]
        last = last_run(view.memory)
        if main and settings.gap is None and (line := suggest_gap_line(main, view.memory)):
            lines.append(line)
        if last and is_completed(last) and not settings.done_when:
            lines.append("if that was the end of the training, `done_when` can tell sentinel so")
        if last and last.tail:
            lines += [f"last lines of {visible(get_stdout_path(last))}:", last.tail]
    return "\n".join(lines)


def _suggest_job_commands(view: TrainingView) -> tuple[str, ...]:
    queue = view.queue
    rows = queue.alive + queue.paused + queue.ending + queue.held + queue.coming
    if rows:
        return words.suggest_queue_commands(rows)
    last = last_run(view.memory)
    told_of = [last] if last else view.memory.gone[:1]
    ids = [g.seen.job_id for g in told_of if g.seen.job_id.isdigit()]
    path = get_stdout_path(last) if last else ""
    how = last.how if last else None
    books = bool(how and how.accounting) or any(g.end and g.end.source == "sacct" for g in told_of)
    asked = ids if books else []
    kept = bool(how and (how.command or (last and last.end)))  # else its script is forgotten, too
    again = resubmit_shell(how, find_culprit_node(view)) if how and kept else ""
    return (
        *([again] if again.isprintable() and again else []),
        *(
            f"sacct -j {i} --format=JobID,State,ExitCode,DerivedExitCode,End,NodeList"
            for i in asked
        ),
        *(f"scontrol show job {i}" for i in ids),
        *(
            [f"tail -n 50 {shlex.quote(path)}"]
            if path.startswith("/") and path.isprintable()
            else []
        ),
    )


def _make_labels(settings: JobSettings, view: TrainingView) -> Mapping[str, str]:
    queue = view.queue
    rows = (*queue.alive, *queue.coming, *queue.paused, *queue.ending, *queue.held)
    row: Job | None = rows[0] if rows else None
    seen = row or (_get_main_job(view.memory).seen if view.memory.gone else None)
    labels = {
        "job": seen.name if seen else settings.name or "",
        "user": seen.user if seen else "",
        "partition": seen.partition if seen else settings.partition or "",
        "node": find_culprit_node(view),
    }
    return {key: visible(text) for key, text in labels.items() if text}


def find_culprit_node(view: TrainingView) -> str:
    """The node that failed, or the one node that a job runs or ran on."""
    alive, gone = view.queue.alive, view.memory.gone
    if alive:
        return alive[0].nodes if alive[0].node_count == 1 else ""
    if not gone:
        return ""
    last = _get_main_job(view.memory)
    end, seen = last.end, last.seen
    if end is None or end.failed_node or end.state != "NODE_FAIL":
        return (end.failed_node or "") if end else ""
    return seen.nodes if "[" not in seen.nodes and "," not in seen.nodes else ""


# Why a job that is there may not be the one that is looked for.


_MAX_HINTS = 5


def find_similar_jobs(settings: JobSettings, view: TrainingView) -> list[str]:
    """Jobs in the queue that are nearly the one: renamed, moved, other user, other spelling."""
    gone = {g.seen.job_id for g in view.memory.gone}
    known = {job.id for job in view.queue.held}
    known |= {f"{job.id.partition('+')[0]}+0" for job in view.queue.held}
    lines = [
        _describe_similarity(job, settings, gone) for job in view.others if job.id not in known
    ]
    return [line for line in lines if line][:_MAX_HINTS]


def _describe_similarity(job: Job, settings: JobSettings, gone: set[str]) -> str:
    where = f"job {visible(job.id)} of {visible(job.user)} in {visible(job.partition)}"
    name = shortened(visible(job.name), 100)
    if job.job_id in gone:
        return f"{where} is still there, now named {name!r}"
    if settings.is_watched_name(job.name):
        return f"{where} has that name; `users` or `partition` leave it out"
    if settings.name and _normalise_name(job.name) == _normalise_name(settings.name):
        return f"{where} has nearly that name: {name!r}"
    return ""


def _normalise_name(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
