"""Requests for actions on jobs. They contain the check's observation, so that it can be verified.

Checks make them with `make_job_request`. The actions on jobs (requeue, cancel, killswitch, stacks,
…) compare the observation with the present state right before they act. If the log has grown since,
the job does not hang.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest
from sentinel.core.patterns import compile_pattern

LOG_TAIL_BYTES = 2**20
"""In this many bytes at the end of a log the number is searched again, as the check does."""


def make_exclude_command(target: str, before: str, node: str) -> tuple[str, ...]:
    """The command that adds a node to the nodes that a pending job excludes already (`before`)."""
    names = ",".join(filter(None, [before, node]))
    return ("scontrol", "update", f"JobId={target}", f"ExcNodeList={names}")


def make_job_target(job: Job) -> str:
    """The target: one element of an array, all pending elements if the row stands for them, or all
    parts of a heterogeneous job."""
    return job.array_id if "[" in job.id else job.id.partition("+")[0]


class StillLogSighting(Struct, frozen=True, kw_only=True):
    """A log that stands still: its file and size, or the last number that `pattern` captured.

    With a pattern only the number counts, because a hung job may continue to write warnings.
    """

    path: str  # Path of the log.
    size: int | None = None  # Its size in bytes.
    pattern: str = ""
    number: float | None = None  # The number that stood still.


def make_job_request(
    action: str,
    job: Job,
    reason: str,
    *,
    subject: str = "",
    seen: StillLogSighting | None = None,
    params: Mapping[str, str] | None = None,
    evidence: Mapping[str, str] | None = None,
) -> ActionRequest:
    """The request for an action on this run of the job. `subject` is that of the alert. `params`
    are those of the action, such as `signal`, `file` or `node`. An action refuses a param that it
    does not know."""
    started = {} if job.started is None else {"started": str(job.started)}
    return ActionRequest(
        action=action,
        target=make_job_target(job),
        reason=reason,
        subject=subject,
        params={**started, "user": job.user, **_format_sighting(seen), **(params or {})},
        evidence=evidence or {},
    )


def parse_sighting(params: Mapping[str, str]) -> StillLogSighting | None:
    """The observation behind the request. None if it names no log."""
    if "path" not in params:
        return None
    number, size = params.get("number", ""), params.get("size", "")
    return StillLogSighting(
        path=params["path"],
        size=int(size) if size.isdigit() else None,
        pattern=params.get("pattern", ""),
        number=float(number) if number else None,
    )


def describe_log_change(before: StillLogSighting, size: int | None, tail: str) -> str:
    """What has changed in the log, in words. Empty if nothing has.

    If `size` is None, the file is gone. Raises CannotTell for an invalid number.
    """
    if size is None:
        return f"{before.path} is gone"
    if before.pattern:
        now = find_last_number(tail, before.pattern)
        return (
            ""
            if now == before.number
            else f"its progress went from {_format_number(before.number)} to {_format_number(now)}"
        )
    if before.size is not None and size != before.size:
        return f"its log went from {before.size} to {size} bytes"
    return ""


def find_last_number(text: str, pattern: str) -> float | None:
    """The number in the last complete line that matches. None if no line does."""
    finished = text[: text.rfind("\n") + 1] or text
    found = None
    for match in compile_pattern(pattern).finditer(finished):
        found = match
    if found is None:
        return None
    try:
        return float(found[1].replace(",", "").replace("_", ""))
    except (ValueError, IndexError, AttributeError):
        raise CannotTell(f"`{pattern}` captured no number") from None


def _format_sighting(seen: StillLogSighting | None) -> dict[str, str]:
    if seen is None:
        return {}
    given = {"path": seen.path, "size": seen.size, "pattern": seen.pattern, "number": seen.number}
    return {k: _format_exact(v) for k, v in given.items() if v not in (None, "")}


def _format_exact(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _format_number(number: float | None) -> str:
    return "none" if number is None else f"{number:.15g}"
