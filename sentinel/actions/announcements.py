"""What people hear of sentinel's own actions, from the audit log. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core import hostlist
from sentinel.core.actions import ActionOutcome, ActionRecord
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.errors import Invalid
from sentinel.core.model import Alert, Key, Status, Transition
from sentinel.core.text import shortened, visible

BY_HAND_SUFFIX = " by hand"
"""Ends the name of a person who acted through the command line, and has seen the outcome."""

MAX_RECORDS = 1000
"""Records that one pass looks through, at most."""

TERMINAL_WAIT_S = 120.0
"""Seconds for which a person may still sit before the command that acted."""

ANNOUNCED_RULES = ("suspect", "breaker")
"""Rules of the guard whose refusal is news for people; all others are in the log alone."""

_OUTCOME_STATUSES = {
    ActionOutcome.DONE: Status.OK,
    ActionOutcome.INTENDED: Status.OK,  # of a dry run
    ActionOutcome.UNKNOWN: Status.UNKNOWN,
    ActionOutcome.UNCLEAR: Status.UNKNOWN,
}


class ActionBulletin(Struct, frozen=True, kw_only=True):
    """One message about what was done, or was not, for a check. `id` is stable over restarts."""

    id: str
    check: str
    subject: str
    status: Status
    summary: str
    details: str = ""
    commands: tuple[str, ...] = ()

    def make_alert(
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

    def make_transition(self, alert: Alert, now: Instant) -> Transition:
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


class ActionPassResult(Struct, frozen=True, kw_only=True):
    """What a pass left in the log (`recent`, newest first), and what a dry run would have done."""

    recent: tuple[ActionRecord, ...] = ()
    imagined: tuple[ActionRecord, ...] = ()


def make_outcome_token(record: ActionRecord) -> str:
    """Names one outcome of one action: what was unknown and turns out done is told twice."""
    return f"{record.id}:{record.outcome.value}"


def find_unannounced(records: Iterable[ActionRecord], told: Collection[str]) -> list[ActionRecord]:
    """Those that people shall hear of and did not, the oldest first (`records`: newest first)."""
    fresh = [r for r in records if _is_announced(r) and make_outcome_token(r) not in told]
    return fresh[::-1]


def list_announced_tokens(told: Sequence[str], fresh: Iterable[ActionRecord]) -> list[str]:
    """What was told up to now, as the state keeps it: more than one look at the log holds."""
    return [*told, *map(make_outcome_token, fresh)][-2 * MAX_RECORDS :]


def make_bulletins(
    records: Sequence[ActionRecord], checks: Collection[str]
) -> list[ActionBulletin]:
    """A message for each; refusals for the same reason are one, however many nodes there are.

    What nobody among `checks` asked for is told as sentinel's own.
    """
    found: dict[tuple[str, ...], list[ActionRecord]] = {}
    for record in records:
        alike = (
            (record.by, record.action, record.rule) if record.rule == "breaker" else (record.id,)
        )
        found.setdefault(alike, []).append(record)
    return [_make_bulletin(group, checks) for group in found.values()]


def format_targets(targets: Sequence[str]) -> str:
    """Nodes as a host list, anything else one by one; at most 200 characters."""
    try:
        return shortened(hostlist.fold_hostlist(targets), 200)
    except Invalid:
        return shortened(", ".join(visible(t) for t in targets), 200)


def _is_announced(record: ActionRecord) -> bool:
    if record.outcome is ActionOutcome.REFUSED:
        return record.rule in ANNOUNCED_RULES and not record.by.endswith(BY_HAND_SUFFIX)
    tried = record.outcome.is_attempted and record.outcome is not ActionOutcome.INTENDED
    return tried and not (record.by.endswith(BY_HAND_SUFFIX) and _is_seen_at_terminal(record))


def _is_seen_at_terminal(record: ActionRecord) -> bool:
    """Whether the person at the terminal saw this outcome: it came while the command ran."""
    return record.ended is None or get_elapsed_s(record.at, record.ended) < TERMINAL_WAIT_S


def _make_bulletin(group: Sequence[ActionRecord], checks: Collection[str]) -> ActionBulletin:
    first = group[0]
    targets = format_targets([r.target for r in group])
    return ActionBulletin(
        id=make_outcome_token(first),
        check=first.by if first.by in checks else "sentinel",
        subject=first.subject if len(group) == 1 and first.subject else targets,
        status=_OUTCOME_STATUSES.get(first.outcome, Status.WARNING),
        summary=_summarize_outcome(first, targets),
        details="\n".join(f"{name}: {value}" for name, value in first.evidence.items()),
        commands=(_choose_next_command(first),),
    )


def _choose_next_command(record: ActionRecord) -> str:
    """The command to run next: only jobs are told beside an alert of another name."""
    if record.target.startswith("/"):  # a directory: what may go there now
        return f"sentinel check {shlex.quote(visible(record.by))}"
    target = shlex.quote(visible(record.target))
    what = "scontrol show job" if record.subject else "sentinel nodes list --history"
    return f"{what} {target}"


def _summarize_outcome(record: ActionRecord, targets: str) -> str:
    what = visible(f"{record.action} {targets}")
    if record.outcome is ActionOutcome.REFUSED:
        return f"{what}: not done: {visible(record.why)}"
    if record.outcome is ActionOutcome.INTENDED:
        return f"{what}: would be done ({visible(record.why)})"
    return f"{what}: {record.outcome.value}: {visible(record.detail or record.why)}"
