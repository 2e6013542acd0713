"""What is asked for when a training hangs, and when. Pure."""

from msgspec import Struct

from sentinel.checks.log.progress import numbers
from sentinel.checks.log.words import Watched
from sentinel.core.clock import Instant, elapsed
from sentinel.core.model import ActionRequest, Status
from sentinel.core.text import visible

AGAIN = 1800.0
"""Seconds after which what was asked for is asked for again, while it still hangs."""

HARMLESS = ("stacks",)
"""What may be asked for though a witness contradicts; and what comes before all else."""


class Wish(Struct, frozen=True, kw_only=True):
    """The requests about one job, and when they were made."""

    job: str
    requests: tuple[ActionRequest, ...] = ()
    asked: Instant | None = None


def due(one: Watched, now: Instant) -> bool:
    """Once per hang, and again after a while."""
    if not one.verdict.hung or one.sight.job is None:
        return False
    return one.seen.asked is None or elapsed(one.seen.asked, now) >= AGAIN


def wish(one: Watched, names: tuple[str, ...], tail: str, now: Instant) -> Wish:
    """One per action, stacks first; `tail` are the last lines of the log.

    A job that still works according to a witness is looked at and not touched.
    """
    job = one.sight.job
    key = job.job_id if job else ""
    if not one.verdict.hung:
        return Wish(job=key)
    ordered = sorted(names, key=lambda name: name not in HARMLESS)
    critical = one.verdict.status is Status.CRITICAL
    made = tuple(_request(one, name, tail) for name in ordered if critical or name in HARMLESS)
    return Wish(job=key, requests=made, asked=now if made else one.seen.asked)


def _request(one: Watched, name: str, tail: str) -> ActionRequest:
    """`params` are what was seen, to be read again right before the change."""
    seen, job = one.seen, one.sight.job
    counted = numbers(seen.marks.items())
    number = next(iter(counted.values()), None)
    params = {
        "path": one.sight.path,
        "size": str(one.sight.size if one.sight.size is not None else ""),
        "number": f"{number:.15g}" if number is not None else "",
        "started": str(job.started if job and job.started is not None else ""),
    }
    evidence = {
        "finding": one.verdict.summary,
        "log": visible(one.sight.path),
        "witnesses": one.testimony.words,
        "last lines": tail,
    }
    return ActionRequest(
        action=name,
        target=job.job_id if job else "",
        reason=f"hang: {one.verdict.summary}",
        params=params,
        evidence={key: value for key, value in evidence.items() if value},
    )
