"""Rows of the ledger for tests, in minutes from one moment on."""

from typing import Any

from sentinel.core.run_ledger import EndCause, LedgerKind, LedgerRow

MINUTE = 60_000_000
EPOCH = 1_790_000_000
"""Seconds UTC at minute 0."""


def at(minute: float) -> int:
    """The moment, µs UTC."""
    return EPOCH * 1_000_000 + int(minute * MINUTE)


def span(kind: LedgerKind, began: float, ended: float, job: str = "1", **more: Any) -> LedgerRow:
    """A row of the run `llm`."""
    return LedgerRow(run="llm", kind=kind, began=at(began), ended=at(ended), job=job, **more)


def held(
    began: float,
    ended: float,
    job: str = "1",
    gpus: int = 8,
    cause: EndCause = "",
    submitted: float | None = None,
) -> LedgerRow:
    """A job that held GPUs."""
    when = None if submitted is None else EPOCH + int(submitted * 60)
    return span("held", began, ended, job, gpus=gpus, cause=cause, submitted=when)


def steps(
    began: float, ended: float, first: float, last: float, job: str = "1", **more: Any
) -> LedgerRow:
    """A span in which a job made steps."""
    return span("steps", began, ended, job, first_step=first, last_step=last, **more)


def saved(minute: float, step: float | None) -> LedgerRow:
    """A complete checkpoint."""
    return span("saved", minute, minute, "", last_step=step)
