"""What sentinel says about itself: the state it writes and the channels it tells through."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from sentinel.alerting.observations import Outcome
from sentinel.alerting.state_machine import Policy
from sentinel.core.clock import Instant, elapsed
from sentinel.core.model import Finding, Report, Status, covered
from sentinel.core.ports import Store
from sentinel.core.text import visible
from sentinel.core.values import duration_text

NAME = "sentinel"
"""The name and kind of this check; no configured check may take it."""

POLICY = Policy(kind=NAME)
PATIENCE = 300.0
"""Seconds a channel may fail before the others hear of it; retries usually heal it sooner."""


NEWS = 86400.0
"""Seconds for which a notice (a damaged state was set aside) counts as trouble."""


class Notices:
    """What has happened and is over: it is told, and after a day it is no trouble any more."""

    def __init__(self, texts: Iterable[str], now: Instant) -> None:
        self._kept: list[tuple[Instant, str]] = []
        self.add(texts, now)

    def add(self, texts: Iterable[str], now: Instant) -> None:
        """Take what is new."""
        self._kept += [(now, text) for text in texts]

    def current(self, now: Instant) -> list[str]:
        """What still counts; the rest is forgotten."""
        self._kept = [(at, text) for at, text in self._kept if elapsed(at, now) < NEWS]
        return [text for _, text in self._kept]


def news(store: Store) -> tuple[str, ...]:
    """What a store that mends itself has to tell; nothing where it does not."""
    told: tuple[str, ...] = getattr(store, "take_notices", tuple)()
    return told


def writing(store: Store, now: Instant) -> list[str]:
    """Why the state is not written just now; empty while it is."""
    trouble = getattr(store, "trouble", None)
    if trouble is None:
        return []
    age = duration_text(elapsed(trouble.since, now))
    lost = "; so many that samples are lost" if trouble.lost_detail else ""
    return [f"{trouble.why}; not written for {age}, {trouble.waiting} writes wait in memory{lost}"]


class Trouble(Struct, frozen=True):
    """A channel that does not take messages; `sure`: waiting will not help."""

    since: Instant
    text: str
    sure: bool = False


def outcome(
    state: Iterable[str],
    channels: Mapping[str, Trouble | None],
    names: Iterable[str],
    now: Instant,
    more: Sequence[Finding] = (),
    memory: Mapping[str, Any] | None = None,
) -> Outcome:
    """The run of the check that watches sentinel; `state` are one-line troubles, none if fine.

    Of a channel that is not in `channels` nothing is known: that neither opens nor ends an
    alert about it.
    """
    findings = [_state(list(state))]
    findings += [_channel(name, channels, now) for name in names]
    findings += more
    seen = (f.subject for f in findings if f.status is not Status.UNKNOWN)
    return Outcome(
        check=NAME,
        kind=NAME,
        itself=Finding(subject="", status=Status.OK, summary="running"),
        report=Report(
            findings=tuple(findings),
            coverage=covered("subjects", (f.subject for f in findings), seen),
            memory=memory,
        ),
        seconds=0.0,
    )


def _state(troubles: list[str]) -> Finding:
    if not troubles:
        return Finding(subject="state", status=Status.OK, summary="written")
    summary = "; ".join(visible(t) for t in troubles)
    return Finding(subject="state", status=Status.CRITICAL, summary=summary)


def _channel(name: str, channels: Mapping[str, Trouble | None], now: Instant) -> Finding:
    subject = f"channel {name}"
    if name not in channels:
        return Finding(subject=subject, status=Status.UNKNOWN, summary="nothing sent yet")
    trouble = channels[name]
    if trouble is None:
        return Finding(subject=subject, status=Status.OK, summary="delivers")
    age = elapsed(trouble.since, now)
    if not trouble.sure and age < PATIENCE:
        return Finding(subject=subject, status=Status.OK, summary="retrying")
    since = f" (for {duration_text(age)})" if age >= 1 else ""
    summary = visible(trouble.text) + since
    command = f"sentinel notify test {name}"
    return Finding(subject=subject, status=Status.WARNING, summary=summary, commands=(command,))
