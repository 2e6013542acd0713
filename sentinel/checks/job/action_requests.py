"""The actions that `job` requests: to hold a job that restarts too often, and to submit a dead job
again. Pure."""

from __future__ import annotations

import json
import re
from signal import NSIG, Signals, valid_signals

from msgspec import structs

from sentinel.actions.job_requests import make_job_request
from sentinel.checks.job.done import (
    last_run,
)
from sentinel.checks.job.ends import find_early_end_s
from sentinel.checks.job.memory import (
    MAX_JOBS,
    GoneJob,
    JobRevival,
    Memory,
)
from sentinel.checks.job.output import (
    OutputError,
    find_error,
    find_last_step,
)
from sentinel.checks.job.rules import find_restart_storm
from sentinel.checks.job.settings import DAY_S, JobSettings
from sentinel.checks.job.view import TrainingView
from sentinel.core.clock import SECOND, get_elapsed_s
from sentinel.core.model import ActionRequest, Finding, Status
from sentinel.core.run_ledger import InterruptionCause
from sentinel.slurm.job_states import end_meaning
from sentinel.slurm.submission import resubmit_argv


def request_holds(
    settings: JobSettings, view: TrainingView, finding: Finding
) -> tuple[tuple[ActionRequest, ...], Memory]:
    """Request a hold of the job that would start next, once per restart. Also returns the memory of
    it.

    If a person releases the job, it is left alone until the training has died once more.
    """
    text, memory = find_restart_storm(settings, view), view.memory
    if not text or not memory.restarts or view.finished or "hold" not in settings.on_storm:
        return (), structs.replace(memory, asked={})
    wishes = {
        wish.target: wish
        for wish in (
            make_job_request(
                "hold",
                job,
                f"restart storm: {text}",
                subject=view.subject,
                evidence={"finding": finding.summary, "restarts": text},
            )
            for job in view.queue.coming[:MAX_JOBS]
        )
    }
    newest = memory.restarts[-1]
    fresh = tuple(w for target, w in wishes.items() if memory.asked.get(target) != newest)
    asked = {**memory.asked, **dict.fromkeys(wishes, newest)}
    return fresh, structs.replace(memory, asked=dict(list(asked.items())[-MAX_JOBS:]))


MAX_REVIVALS_PER_DAY = 3
"""How often a training is submitted again per day. A training that dies more often needs a
person."""

_PASSING_RESULT_PATTERN = re.compile(
    r"remote process exited or there was a network error|unhandled system error"
)
"""What the same program may not meet again of NCCL's results (ncclGetErrorString in src/init.cc of NCCL
2.28); it meets an invalid usage or argument each time."""

MAX_REVIVALS_KEPT = 20

_ENDED_ON_PURPOSE = frozenset({2, 9})
"""SIGINT, which a person sends (`scancel --signal=INT`), and SIGKILL, as which a lack of memory ends."""
# Signals that a program's own fault raises (signal(7): ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS). Any other was
# sent: by a person, or by srun to the peers of a task that failed, and then an error says why.
_OF_ITSELF = frozenset({4, 5, 6, 7, 8, 11, 31})
_PASSING_CAUSES: frozenset[InterruptionCause] = frozenset(
    ("gpu", "network", "node", "file_system", "preemption", "slurm")
)
"""Causes that lie outside the program, so that the same job may succeed next time."""
_SENT = sorted(valid_signals() - _OF_ITSELF)
_SENT_NAMES = "|".join(one.name for one in _SENT if isinstance(one, Signals))
_SENT_PATTERN = re.compile(
    rf"KeyboardInterrupt|{_SENT_NAMES}|(?i:signal)\W{{1,3}}(?:{'|'.join(map(str, map(int, _SENT)))})\b"
)
"""What others sent, by name or number: SIGTERM, Lightning's SIGTERMException, `signal 15`."""
_STEP_NUMBER_PATTERN = re.compile(r"(.*) ([\d,]+)")


def request_revival(
    settings: JobSettings, view: TrainingView, finding: Finding, node: str
) -> tuple[tuple[ActionRequest, ...], Memory]:
    """The request to submit the dead job again (empty if anything speaks against it), and the
    memory of it. `node` is the node that caused the death."""
    memory, last = view.memory, last_run(view.memory)
    if "resubmit" not in settings.on_death or finding.status is not Status.CRITICAL or last is None:
        return (), memory
    step = find_last_step(last.tail or "")
    words = resubmit_argv(last.how, node, "singleton", exact=True) if last.how else ()
    waits = get_elapsed_s(last.at, view.now) < finding.patience or view.kill_switch is not False
    if (
        waits
        or view.queue.held
        or not words
        or not _may_succeed_again(last)
        or _was_revived_in_vain(view, step)
    ):
        return (), memory
    told = JobRevival(job=last.seen.id, at=view.now, step=step)
    wish = ActionRequest(
        action="resubmit",
        target=last.seen.id,
        reason=f"it died at {step or 'a step that is not known'}",
        subject=view.subject,
        params={"user": last.seen.user, "workdir": last.how.workdir if last.how else "",
                "words": json.dumps(words), "name": last.seen.name,
                "since": str(view.now.wall // SECOND)},
        evidence={"finding": finding.summary},
    )  # fmt: skip
    return (wish,), structs.replace(memory, revived=(*memory.revived, told)[-MAX_REVIVALS_KEPT:])


def _may_succeed_again(last: GoneJob) -> bool:
    """Whether it is known that the same job may succeed next time: by its state, or by an error that may pass. What
    a person has ended stays ended, and any other error may be a person's wish, or the program's own."""
    end = last.end
    if end is None or not end_meaning(end).may_resubmit or find_early_end_s(last):
        return False
    tail = last.tail or ""
    said = find_error(tail)
    codes = {code - 128 for code in (end.exit_code, end.or_exit_code) if code}
    signals = {signal for signal in (end.signal, *codes) if signal and 0 < signal < NSIG}
    if _ENDED_ON_PURPOSE & signals or _find_output_cause(said) in (None, "memory"):
        return False
    if end.state != "FAILED":  # then the state says why
        return True
    from sentinel.checks.log.trouble_cause import MAY_PASS_KIND_NAMES

    if end.signal and end.signal not in _OF_ITSELF:  # it was sent to the script itself
        return False
    if said.line:
        passes = said.kind in MAY_PASS_KIND_NAMES or (
            said.kind == "NCCL error" and _PASSING_RESULT_PATTERN.search(said.line)
        )
        return bool(passes) and not _SENT_PATTERN.search(said.line)
    return bool(signals & _OF_ITSELF and find_last_step(tail))


def _find_output_cause(said: OutputError) -> InterruptionCause | None:
    """What the output names as the cause, by the rules of `log`, `memory` also for that of a GPU. None if
    they were taken out, since then nothing can tell."""
    try:
        from sentinel.checks.log.trouble_cause import NO_MEMORY_KIND_NAMES, find_kind_cause
    except ModuleNotFoundError:  # the kind `log` was taken out
        return None
    if said.kind in NO_MEMORY_KIND_NAMES:
        return "memory"
    return find_kind_cause(said.kind or "")


def _has_passing_cause(last: GoneJob) -> bool:
    """Whether it is known that the cause lies outside the program: by its state, or by its output."""
    by_state = last.end is not None and last.end.state != "FAILED"
    return by_state or _find_output_cause(find_error(last.tail or "")) in _PASSING_CAUSES


def _was_revived_in_vain(view: TrainingView, step: str) -> bool:
    """Whether it was already submitted again for this death, at this step, or as often as one day
    allows. After an unknown cause also if its step has not moved beyond that of an earlier time."""
    before, last = view.memory.revived, last_run(view.memory)
    today = [one for one in before if get_elapsed_s(one.at, view.now) < DAY_S]
    again_here = any(one.step == step or (last and one.job == last.seen.id) for one in before)
    if again_here or len(today) >= MAX_REVIVALS_PER_DAY:
        return True
    known = last is not None and _has_passing_cause(last)
    return not known and any(not _has_moved(one.step, step) for one in before)


def _has_moved(before: str, now: str) -> bool:
    """Whether the second step is a later one of the same kind: `iteration 20` after `iteration 10`."""
    first, second = _STEP_NUMBER_PATTERN.fullmatch(before), _STEP_NUMBER_PATTERN.fullmatch(now)
    if first is None or second is None or first[1] != second[1]:
        return False
    return int(second[2].replace(",", "")) > int(first[2].replace(",", ""))
