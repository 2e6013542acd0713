"""Whether a training that has died is to be submitted again (`on_death: [resubmit]`). Pure."""

import json
import re

from msgspec import structs

from sentinel.checks.job.done import last_run
from sentinel.checks.job.memory import Gone, Memory, Revival
from sentinel.checks.job.output import cause, last_step
from sentinel.checks.job.settings import DAY, JobSettings
from sentinel.checks.job.view import View
from sentinel.core.clock import elapsed
from sentinel.core.model import ActionRequest, Finding, Status
from sentinel.slurm.submission import again

MOST = 3
"""Times in a day; what dies more often needs a person."""

KEPT = 20
_CURABLE = ("FAILED", "NODE_FAIL", "TIMEOUT")
_MISTAKE = re.compile(
    r"(?i)\bImportError|ModuleNotFoundError|AssertionError|\bAssertion\b.*failed|MemoryError|"
    r"out ?of ?memory|oom[-_ ]?kill"
)
_KILLED = 9


def revival(
    settings: JobSettings, view: View, finding: Finding, node: str
) -> tuple[tuple[ActionRequest, ...], Memory]:
    """The wish, and the memory of it; none where anything speaks against it. `node`: the culprit."""
    memory, last = view.memory, last_run(view.memory)
    if "resubmit" not in settings.on_death or finding.status is not Status.CRITICAL or last is None:
        return (), memory
    step = last_step(last.tail or "")
    words = again(last.how, node) if last.how else ()
    waits = elapsed(last.at, view.now) < finding.patience or view.kill_switch is not False
    if waits or view.queue.held or not words or not _curable(last) or _hopeless(view, step):
        return (), memory
    told = Revival(job=last.seen.id, at=view.now, step=step)
    wish = ActionRequest(
        action="resubmit",
        target=last.seen.id,
        reason=f"it died at {step or 'a step that is not known'}",
        subject=view.subject,
        params={"user": last.seen.user, "workdir": last.how.workdir if last.how else "",
                "words": json.dumps(words)},
        evidence={"finding": finding.summary},
    )  # fmt: skip
    return (wish,), structs.replace(memory, revived=(*memory.revived, told)[-KEPT:])


def _curable(last: Gone) -> bool:
    """Whether the same again may go well: no mistake in the program, and not its memory."""
    end = last.end
    if end is None or end.state not in _CURABLE or end.signal == _KILLED:
        return False
    if end.exit_code == 128 + _KILLED or _MISTAKE.search(last.tail or ""):
        return False
    told = last_step(last.tail or "") or cause(last.tail or "")
    return end.state != "FAILED" or bool(told)  # of a failure its own words have to be seen


def _hopeless(view: View, step: str) -> bool:
    """It was submitted again for this death, at this step, or three times today."""
    before, last = view.memory.revived, last_run(view.memory)
    today = [one for one in before if elapsed(one.at, view.now) < DAY]
    again_here = any(one.step == step or (last and one.job == last.seen.id) for one in before)
    return again_here or len(today) >= MOST
