"""Judges a training: a pure function of the gathered facts. It makes one finding, with the worst
problem first."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import structs

from sentinel.checks.job import rules, words
from sentinel.checks.job.deaths import list_deaths
from sentinel.checks.job.done import last_run, seems_finished
from sentinel.checks.job.ends import describe_end, describe_state, get_end_instant, is_completed
from sentinel.checks.job.guidance import guide_death, guide_wait
from sentinel.checks.job.memory import GoneJob, Memory
from sentinel.checks.job.output import find_error_line, find_last_step, get_stdout_path
from sentinel.checks.job.queue import JobQueue, count_elements
from sentinel.checks.job.rhythm import (
    PLANNED_GAP_S,
    SECOND_LOOK_S,
    SuccessorWait,
    explain_wait,
    render_wait,
    suggest_gap_line,
)
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.shared_nodes import describe_shared_node, find_shared_node
from sentinel.checks.job.similar_jobs import find_similar_jobs
from sentinel.checks.job.succession import find_wait_since_death, is_cancelled_by_owner
from sentinel.checks.job.view import TrainingView
from sentinel.checks.users import names_one_user
from sentinel.checks.wishes import is_owner_muted
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.core.guidance import NO_GUIDANCE, ActingCommand, LookingCommand, look, show_end
from sentinel.core.model import Finding, Status, Value
from sentinel.core.text import shortened, visible
from sentinel.core.values import clock_text, duration_text
from sentinel.slurm.job_states import find_unknown_state, is_node_failure, lost_partition
from sentinel.slurm.pending_reasons import explain_reason
from sentinel.slurm.step_messages import JOB_END_REGEX
from sentinel.slurm.submission import resubmit_command


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
    """The finding if the decisive fact is not known."""
    return _make_finding(settings, view, Status.UNKNOWN, why)


def _judge_alive(settings: JobSettings, view: TrainingView) -> Finding:
    troubles = rules.find_present_troubles(settings, view)
    troubles += [] if view.finished else rules.find_future_troubles(settings, view)
    done = [f"finished: {view.finished}"] if view.finished else []
    status = Status.WARNING if troubles else Status.OK
    if rules.find_slow_end(settings, view) and not (
        view.finished or view.queue.coming or view.queue.paused
    ):
        status = Status.CRITICAL  # nothing runs, and nothing will start
    if status is Status.OK and (why := _describe_unclear_jobs(view.queue)):
        return make_unknown_finding(settings, view, visible(why))
    found = _make_finding(
        settings, view, status, "; ".join([*troubles, _describe_queue(view), *done])
    )
    if not status.bad:
        return found
    pause = rules.find_paused(settings, view)
    patience = rules.MAX_PAUSED_S if troubles == [pause] else 0.0
    return structs.replace(found, guidance=guide_wait(view.queue), patience=patience)


def _describe_unclear_jobs(queue: JobQueue) -> str:
    """Why the future of the training is unclear: all its jobs have unknown states."""
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
    """The end before this one, if it is remembered. The gap between two jobs is not a death."""
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
        text = f"not running, and what is queued waits for a person: {words.describe_stuck(queue.held)}"
        text += f"; {describe_end(_get_main_job(view.memory), view.now)}" if gone else ""
    elif informs:
        text = f"it may have finished, and nothing is queued: {describe_end(_get_main_job(view.memory), view.now)}"
    elif gone:
        text = _describe_death(settings, _get_main_job(view.memory), view)
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
    storm = rules.find_restart_storm(settings, view)
    more = filter(None, [storm, view.at_risk, view.maintenance and where, waits])
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
        guidance=NO_GUIDANCE if informs else guide_death(queue.held, view.memory),
        deaths=list_deaths(view.memory, wait),
    )


_MIN_JOB_AGE_S = 300.0
"""Seconds for which Slurm remembers a job that ended, where MinJobAge is not set (slurm.conf)."""

_SAY_WHAT_FINISHED_MEANS = (
    "this is told once; say in the check what finished means: `done_when: {state: completed}`, or"
    " `queued: 1` where another job has to follow"
)


def _is_for_information(settings: JobSettings, view: TrainingView) -> bool:
    """Whether the end is reported once, as information: nothing says what finishes the training,
    but everything looks finished."""
    if settings.queued or settings.done_when or view.queue.held:
        return False
    return seems_finished(view.memory)


def _get_last_end_s(view: TrainingView) -> int | None:
    """When the job that ended last did so, in epoch seconds."""
    end = _get_main_job(view.memory).end if view.memory.gone else None
    return end.ended if end else None


def _describe_last_seen(gone: GoneJob, view: TrainingView) -> str:
    """Since when it is gone at the latest, if nobody says when it ended."""
    alive = view.memory.alive
    if gone.end or gone.lost is not None or not gone.has_run or alive is None:
        return ""
    at = (view.now.wall / SECOND) - get_elapsed_s(alive, view.now)
    return f"; it was last seen running {clock_text(at, view.now.wall / SECOND)}"


def _describe_death(settings: JobSettings, gone: GoneJob, view: TrainingView) -> str:
    """How it ended, then that nothing follows; the other way round where the end alone tells nothing."""
    said = settings.many or names_one_user(settings.whose)  # whose job it was
    end = describe_end(gone, view.now, "" if said else gone.seen.user)
    end += _describe_last_seen(gone, view)
    idle = f"not running and nothing is queued{_describe_stopped_work(gone)}"
    return f"{end}; {idle}" if gone.end and not is_completed(gone) else f"{idle}: {end}"


def _describe_stopped_work(gone: GoneJob) -> str:
    """Whose work stops, and how much of the cluster it used: ` (alice, 64 GPUs on 8 nodes)`."""
    how = gone.how
    if how is None or not gone.has_run:
        return ""
    size = [f"{how.gpus} GPU{'s' * (how.gpus > 1)}"] if how.gpus else []
    size += [f"{how.nodes} node{'s' * (how.nodes > 1)}"] if how.nodes else []
    return f" ({', '.join([visible(gone.seen.user), ' on '.join(size)])})" if size else ""


def _iterate_circumstances(view: TrainingView) -> Iterator[tuple[str, Value]]:
    """The answers to what people ask first about a death, then its cost, and where it wrote. By
    these, alerts find their cause (alerting.incidents)."""
    last = last_run(view.memory)
    if last and (why := find_error_line(re.sub(JOB_END_REGEX, "", last.tail or ""))):
        yield "cause", why
    if last and (step := find_last_step(last.tail or "")):
        yield "last_step", step
    if view.maintenance:
        yield "maintenance", visible(view.maintenance)
    if view.memory.gone:
        main = _get_main_job(view.memory)
        if main.end:
            yield "end", describe_state(main.end)
        written = get_stdout_path(main)
        if path := main.seen.workdir if not written or written == os.devnull else written:
            yield "path", visible(path)
        if main.how is not None and main.how.gpus:
            yield "gpus", main.how.gpus


def _iterate_wait_reasons(settings: JobSettings, view: TrainingView) -> Iterator[tuple[str, str]]:
    """Why it is reported at this time."""
    if view.memory.gone and not view.queue.held and view.for_ is None:
        why = explain_wait(_get_main_job(view.memory), view.memory, settings.gap)
        yield from [("why_now", why)] if why else []


def _describe_owner_cancel(view: TrainingView) -> str:
    """Whether its own user has cancelled it and holds the rest. The user knows this, so it is a
    note and no alarm. A job that sentinel has cancelled in the user's name does not count."""
    queue, gone = view.queue, view.memory.gone
    if not gone or view.ours or not is_cancelled_by_owner(_get_main_job(view.memory)):
        return ""
    if queue.held and not _is_held_by_user(queue.held):
        return ""
    rest = f"; {words.describe_stuck(queue.held)}" if queue.held else ", and nothing is queued"
    return f"stopped by its own user: {describe_end(_get_main_job(view.memory), view.now)}{rest}"


def _get_wait(settings: JobSettings, view: TrainingView) -> SuccessorWait:
    """How long it has to last before it is reported. A held job must be seen twice."""
    if view.for_ is not None:
        return SuccessorWait(view.for_, f"`for: {duration_text(view.for_)}` in the file says so")
    if view.queue.held:
        # Between two jobs of an account, its limit is free for a moment.
        shared = all(explain_reason(job.reason).shared for job in view.queue.held)
        return SuccessorWait(PLANNED_GAP_S if shared else SECOND_LOOK_S)
    if not view.memory.gone:
        return SuccessorWait(0.0)
    return find_wait_since_death(view.memory, settings.gap)


def _is_held_by_user(held: Sequence[Job]) -> bool:
    """Whether the job's own user holds it, and so knows of it."""
    return bool(held) and all(explain_reason(job.reason).code == "JobHeldUser" for job in held)


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
        acts=_suggest_job_acts(view),
        labels=_make_labels(settings, view),
        owner_muted=_is_owner_muted(view),
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
        lines += [
            f"also: {describe_end(gone, view.now)}" for gone in view.memory.gone if gone is not main
        ]
        if shared := find_shared_node(view.ended):
            lines.append(describe_shared_node(shared))
        last = last_run(view.memory)
        if main and settings.gap is None and (line := suggest_gap_line(main, view.memory)):
            lines.append(line)
        if last and is_completed(last) and not settings.done_when:
            lines.append("if that was the end of the training, `done_when` can tell sentinel so")
        if last and last.tail:
            lines += [f"last lines of {visible(get_stdout_path(last))}:", last.tail]
    return "\n".join(lines)


_USUAL_SACCT_FIELDS = "JobID,State,ExitCode,DerivedExitCode,End,NodeList"
_SACCT_FIELDS = {
    "CANCELLED": "JobID,State%30,ExitCode,End,NodeList",  # the state has who cancelled it
    "OUT_OF_MEMORY": "JobID,State,ReqMem,MaxRSS,End,NodeList",
}


def _suggest_job_commands(view: TrainingView) -> tuple[LookingCommand, ...]:
    queue = view.queue
    rows = queue.alive + queue.paused + queue.ending + queue.held + queue.coming
    over = not rows or _is_all_held(view)
    return (*words.suggest_queue_commands(rows), *(_suggest_end_commands(view) if over else ()))


def _suggest_job_acts(view: TrainingView) -> tuple[ActingCommand, ...]:
    """What submits it again, if nothing of it is queued."""
    queue = view.queue
    if queue.alive + queue.paused + queue.ending + queue.held + queue.coming:
        return ()
    how = last.how if (last := last_run(view.memory)) else None
    # otherwise its script is forgotten too
    kept = bool(how and (how.command or (last and last.end)))
    kept = kept and not (last and last.end and lost_partition(last.end))  # nothing would take it
    again = resubmit_command(how, find_culprit_node(view)) if how and kept else None
    return (again,) if again else ()


def _is_all_held(view: TrainingView) -> bool:
    """Whether nothing runs, and what is queued waits for a person: often because the last one failed."""
    return bool(view.queue.held) and not view.queue.alive and bool(last_run(view.memory))


def _suggest_end_commands(view: TrainingView) -> tuple[LookingCommand, ...]:
    """What shows how the last job ended, and its log."""
    last = last_run(view.memory)
    told_of = [last] if last else view.memory.gone[:1]
    ids = [g.seen.job_id for g in told_of if g.seen.job_id.isdigit()]
    path = get_stdout_path(last) if last else ""
    how = last.how if last else None
    books = bool(how and how.accounting) or any(g.end and g.end.source == "sacct" for g in told_of)
    forgotten = {g.seen.job_id for g in told_of if g.asked and g.end is None}
    forgotten |= {g.seen.job_id for g in told_of if _is_past_min_job_age(g, view.now)}
    asked = ids if books or (forgotten and how is None) else []  # `how` knows of no accounting
    state = last.end.state.partition(" ")[0] if last and last.end else ""
    fields = _SACCT_FIELDS.get(state, _USUAL_SACCT_FIELDS)
    return (
        *(_find_failed_node(last) if last else ()),
        *(_sacct_command(i, fields, where=not path) for i in asked),
        *(look("scontrol show job {} | cat -v", i) for i in ids if i not in forgotten),
        *(
            [show_end(path, bool(last and last.seen.user == view.reader))]
            if path[:1] == "/"
            else []
        ),
    )


def _find_failed_node(gone: GoneJob) -> tuple[LookingCommand, ...]:
    """What names the node whose failure ended the job, where Slurm did not say it."""
    end = gone.end
    nodes = (end.nodes or gone.seen.nodes) if end else ""
    unnamed = end and is_node_failure(end) and nodes and not end.failed_node
    return (look("sinfo -R -n {}", nodes),) if unnamed else ()


def _sacct_command(number: str, fields: str, *, where: bool) -> LookingCommand:
    """`where`: also the directory, in which its log lies by default."""
    return (
        look("sacct -j {} --format={},WorkDir%-80 | cat -v", number, fields)
        if where
        else look("sacct -j {} --format={}", number, fields)
    )


def _is_past_min_job_age(gone: GoneJob, now: Instant) -> bool:
    """Whether slurmctld has forgotten the job, by Slurm's default of MinJobAge."""
    return get_elapsed_s(get_end_instant(gone, now), now) > _MIN_JOB_AGE_S


def _get_first_row(queue: JobQueue) -> Job | None:
    rows = (*queue.alive, *queue.coming, *queue.paused, *queue.ending, *queue.held)
    return rows[0] if rows else None


def _is_owner_muted(view: TrainingView) -> bool:
    """Whether the owner wants no messages about the job that the labels name."""
    row, memory = _get_first_row(view.queue), view.memory
    if row is not None:
        return is_owner_muted(row)
    return bool(memory.gone) and _get_main_job(memory).seen.owner_muted


def _make_labels(settings: JobSettings, view: TrainingView) -> Mapping[str, str]:
    row = _get_first_row(view.queue)
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
    if end is None or lost_partition(end):
        return ""
    if end.failed_node or not is_node_failure(end):
        return end.failed_node
    return seen.nodes if "[" not in seen.nodes and "," not in seen.nodes else ""
