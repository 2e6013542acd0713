"""What is asked for while a training is started again and again. Pure."""

from msgspec import structs

from sentinel.actions.job_requests import about
from sentinel.checks.job.memory import JOBS, Memory
from sentinel.checks.job.rules import storm
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.view import View
from sentinel.core.model import ActionRequest, Finding


def requests(
    settings: JobSettings, view: View, finding: Finding
) -> tuple[tuple[ActionRequest, ...], Memory]:
    """A hold of whatever would start next, once for each restart, and the memory of that.

    What a person lets go again is left alone until the training has died once more.
    """
    text, memory = storm(settings, view), view.memory
    if not text or not memory.restarts or view.finished or "hold" not in settings.on_storm:
        return (), structs.replace(memory, asked={})
    wishes = {
        wish.target: wish
        for wish in (
            about(
                "hold",
                job,
                f"restart storm: {text}",
                subject=view.subject,
                evidence={"finding": finding.summary, "restarts": text},
            )
            for job in view.queue.coming[:JOBS]
        )
    }
    newest = memory.restarts[-1]
    fresh = tuple(w for target, w in wishes.items() if memory.asked.get(target) != newest)
    asked = {**memory.asked, **dict.fromkeys(wishes, newest)}
    return fresh, structs.replace(memory, asked=dict(list(asked.items())[-JOBS:]))
