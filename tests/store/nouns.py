"""Nouns to store, with hostile text wherever a user's text may be."""

from typing import Any

from sentinel.core.clock import Instant, shift_instant
from sentinel.core.model import (
    Alert,
    Batch,
    CheckRun,
    Key,
    Notification,
    Outgoing,
    Sample,
    Status,
    Transition,
)
from sentinel.testing import START

HOSTILE = "\x00 '; DROP TABLE alerts; -- \ud800 \udcff 😀 \u202e \\u0000 %s {} " + "é" * 50_000


def at(seconds: float = 0) -> Instant:
    """So many seconds after the start of the test."""
    return shift_instant(START, seconds)


def key(subject: str = "/scratch", check: str = "fs") -> Key:
    return Key("h100", check, subject)


def alert(subject: str = "/scratch", **more: Any) -> Alert:
    given = {"id": f"alert-{subject}", "kind": "fs", "status": Status.CRITICAL, "since": at()}
    return Alert(**{**given, "key": key(subject), "summary": "full", "last": at(1), **more})


def transition(
    number: int = 1, about: str = "alert-/scratch", moment: Instant = START
) -> Transition:
    return Transition(
        id=f"transition-{number}",
        alert=about,
        key=key(),
        kind="fs",
        reason="firing",
        status=Status.CRITICAL,
        severity=Status.CRITICAL,
        summary=f"number {number}",
        at=moment,
        since=START,
    )


def notification(about: str = "alert-/scratch", summary: str = "full") -> Notification:
    return Notification(
        at="2027-01-15T08:00:00+00:00",
        cluster="h100",
        check="fs",
        kind="fs",
        subject="/scratch",
        severity=Status.CRITICAL,
        status=Status.CRITICAL,
        reason="firing",
        summary=summary,
        since="2027-01-15T08:00:00+00:00",
        key="h100/fs/scratch",
        alert=about,
    )


def outgoing(
    summary: str = "full", channel: str = "mail", about: str = "alert-/scratch"
) -> Outgoing:
    return Outgoing(channel=channel, notification=notification(about, summary), created=at())


def run(check: str = "fs", status: Status = Status.OK) -> CheckRun:
    return CheckRun(check=check, kind="fs", at=at(), status=status, summary="fine", duration=0.25)


def told(*summaries: str) -> Batch:
    """A batch with one message each."""
    return Batch(at=at(), outbox=tuple(outgoing(s) for s in summaries))


def measured(value: float, moment: Instant = START, name: str = "used") -> Batch:
    return Batch(at=moment, samples={"fs": (Sample("/scratch", name, value),)})


def remembered(value: Any, check: str = "fs", moment: Instant = START) -> Batch:
    return Batch(at=moment, memory={check: {"value": value}})


def summaries(rows: list[Outgoing]) -> list[str]:
    return [row.notification.summary for row in rows]
