"""What is asked for when a training hangs, and when. Pure."""

import re
from collections.abc import Mapping

from msgspec import Struct

from sentinel.checks.log.words import Watched
from sentinel.core.clock import Instant, elapsed
from sentinel.core.jobdeeds import Sighting, about
from sentinel.core.model import ActionRequest, Status
from sentinel.core.patterns import expanded
from sentinel.core.slurm import Job
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


class Means(Struct, frozen=True, kw_only=True):
    """The actions that are wished for when it hangs, and what they need to be told.

    `patterns`: those of `progress` by name; `file` the kill-switch file; `signal` for cancel.
    """

    names: tuple[str, ...] = ()
    patterns: Mapping[str, str] = {}
    file: str = ""
    signal: str = ""

    def params(self, name: str, job: Job) -> dict[str, str]:
        """What is this action's own."""
        own = {
            "killswitch": {"file": expanded(self.file, job)} if self.file else {},
            "cancel": {"signal": self.signal} if self.signal else {},
        }
        return own.get(name, {})


def wish(one: Watched, means: Means, tail: str, now: Instant) -> Wish:
    """One per action, stacks first; `tail` are the last lines of the log.

    A job that still works according to a witness is looked at and not touched.
    """
    job = one.sight.job
    if job is None or not one.verdict.hung:
        return Wish(job=job.job_id if job else "")
    ordered = sorted(means.names, key=lambda name: name not in HARMLESS)
    critical = one.verdict.status is Status.CRITICAL
    evidence = {
        "finding": one.verdict.summary,
        "log": visible(one.sight.file),
        "witnesses": one.testimony.words,
        "last lines": tail,
    }
    made = tuple(
        about(
            name,
            job,
            f"hang: {one.verdict.summary}",
            seen=_sighting(one, means.patterns),
            params=means.params(name, job),
            evidence={key: value for key, value in evidence.items() if value},
        )
        for name in ordered
        if critical or name in HARMLESS
    )
    return Wish(job=job.job_id, requests=made, asked=now if made else one.seen.asked)


def _sighting(one: Watched, patterns: Mapping[str, str]) -> Sighting | None:
    """What is read again right before anything is done: the number that stood still, where one
    file has it, else the size of the file that was written last."""
    path, look = max(one.sight.looks.items(), key=lambda p: p[1].mtime, default=("", None))
    if look is None:
        return None
    name = one.verdict.name
    if len(one.sight.looks) > 1 or name not in patterns or name not in one.seen.marks:
        return Sighting(path=path, size=look.size)
    number = one.seen.marks[name].value
    return Sighting(path=path, size=look.size, pattern=patterns[name], number=number)


def by_line(pattern: str) -> str:
    """The text of a pattern in which `^` and `$` mean lines, its own leading flags kept."""
    flags = re.match(r"\(\?([aiLmsux]+)\)", pattern)
    rest = pattern[flags.end() :] if flags else pattern
    return f"(?m{flags[1].replace('m', '') if flags else ''}){rest}"
