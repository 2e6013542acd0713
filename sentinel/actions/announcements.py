"""What people hear of sentinel's own actions, from the audit log. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core import hostlist
from sentinel.core.actions import ActionRecord, Outcome
from sentinel.core.clock import Instant, elapsed
from sentinel.core.errors import Invalid
from sentinel.core.model import Alert, Key, Status, Transition
from sentinel.core.text import shortened, visible

BY_HAND = " by hand"
"""Ends the name of a person who acted through the command line, and has seen the outcome."""

MOST = 1000
"""Records that one pass looks through, at most."""

PATIENCE = 120.0
"""Seconds for which a person may still sit before the command that acted."""

A_PERSON_MUST_LOOK = ("suspect", "breaker")
"""Rules of the guard whose refusal is news for people; all others are in the log alone."""

_STATUS = {
    Outcome.DONE: Status.OK,
    Outcome.INTENDED: Status.OK,  # of a dry run
    Outcome.UNKNOWN: Status.UNKNOWN,
    Outcome.UNCLEAR: Status.UNKNOWN,
}


class Bulletin(Struct, frozen=True, kw_only=True):
    """One message about what was done, or was not, for a check. `id` is stable over restarts."""

    id: str
    check: str
    subject: str
    status: Status
    summary: str
    details: str = ""
    commands: tuple[str, ...] = ()

    def about(
        self, key: Key, alert: Alert | None, kind: str, labels: Mapping[str, str], now: Instant
    ) -> Alert:
        """The alert it belongs to, or one that stands in for it, with its words."""
        if alert is None:
            alert = Alert(
                key=key,
                id=self.id.partition(":")[0],
                kind=kind,
                status=self.status,
                summary=self.summary,
                since=now,
                last=now,
                labels=labels,
            )
        return replace(alert, details=self.details, commands=self.commands, values={})

    def transition(self, alert: Alert, now: Instant) -> Transition:
        """What it tells, as a change of its alert."""
        return Transition(
            id=self.id,
            alert=alert.id,
            key=alert.key,
            kind=alert.kind,
            reason="action",
            status=self.status,
            severity=alert.severity,
            summary=self.summary,
            at=now,
            since=alert.since,
        )


class Done(Struct, frozen=True, kw_only=True):
    """What a pass left in the log (`recent`, newest first), and what a dry run would have done."""

    recent: tuple[ActionRecord, ...] = ()
    imagined: tuple[ActionRecord, ...] = ()


def token(record: ActionRecord) -> str:
    """Names one outcome of one action: what was unknown and turns out done is told twice."""
    return f"{record.id}:{record.outcome.value}"


def news(records: Iterable[ActionRecord], told: Collection[str]) -> list[ActionRecord]:
    """Those that people shall hear of and did not, the oldest first (`records`: newest first)."""
    fresh = [r for r in records if _telling(r) and token(r) not in told]
    return fresh[::-1]


def remembered(told: Sequence[str], fresh: Iterable[ActionRecord]) -> list[str]:
    """What was told up to now, as the state keeps it: more than one look at the log holds."""
    return [*told, *map(token, fresh)][-2 * MOST :]


def bulletins(records: Sequence[ActionRecord], checks: Collection[str]) -> list[Bulletin]:
    """A message for each; refusals for the same reason are one, however many nodes there are.

    What nobody among `checks` asked for is told as sentinel's own.
    """
    found: dict[tuple[str, ...], list[ActionRecord]] = {}
    for record in records:
        alike = (
            (record.by, record.action, record.rule) if record.rule == "breaker" else (record.id,)
        )
        found.setdefault(alike, []).append(record)
    return [_bulletin(group, checks) for group in found.values()]


def names(targets: Sequence[str]) -> str:
    """Nodes as a host list, anything else one by one; at most 200 characters."""
    try:
        return shortened(hostlist.fold(targets), 200)
    except Invalid:
        return shortened(", ".join(visible(t) for t in targets), 200)


def _telling(record: ActionRecord) -> bool:
    if record.outcome is Outcome.REFUSED:
        return record.rule in A_PERSON_MUST_LOOK and not record.by.endswith(BY_HAND)
    tried = record.outcome.tried and record.outcome is not Outcome.INTENDED
    return tried and not (record.by.endswith(BY_HAND) and _seen(record))


def _seen(record: ActionRecord) -> bool:
    """Whether the person at the terminal saw this outcome: it came while the command ran."""
    return record.ended is None or elapsed(record.at, record.ended) < PATIENCE


def _bulletin(group: Sequence[ActionRecord], checks: Collection[str]) -> Bulletin:
    first = group[0]
    targets = names([r.target for r in group])
    return Bulletin(
        id=token(first),
        check=first.by if first.by in checks else "sentinel",
        subject=first.subject if len(group) == 1 and first.subject else targets,
        status=_STATUS.get(first.outcome, Status.WARNING),
        summary=_summary(first, targets),
        details="\n".join(f"{name}: {value}" for name, value in first.evidence.items()),
        commands=(_look_closer(first),),
    )


def _look_closer(record: ActionRecord) -> str:
    """The command to run next: only jobs are told beside an alert of another name."""
    if record.target.startswith("/"):  # a directory: what may go there now
        return f"sentinel check {shlex.quote(visible(record.by))}"
    target = shlex.quote(visible(record.target))
    what = "scontrol show job" if record.subject else "sentinel nodes list --history"
    return f"{what} {target}"


def _summary(record: ActionRecord, targets: str) -> str:
    what = visible(f"{record.action} {targets}")
    if record.outcome is Outcome.REFUSED:
        return f"{what}: not done: {visible(record.why)}"
    if record.outcome is Outcome.INTENDED:
        return f"{what}: would be done ({visible(record.why)})"
    return f"{what}: {record.outcome.value}: {visible(record.detail or record.why)}"
