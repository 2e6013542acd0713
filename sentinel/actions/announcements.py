"""Messages about sentinel's own actions, made from the audit log. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core import hostlist
from sentinel.core.actions import ActionOutcome, ActionRecord
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.errors import Invalid
from sentinel.core.guidance import NO_GUIDANCE, LookingCommand, look
from sentinel.core.model import Alert, Key, Status, Transition
from sentinel.core.text import shortened, visible

BY_HAND_SUFFIX = " by hand"
"""The end of a requester's name if a person acted through the command line. That person has seen
the outcome."""

MAX_RECORDS = 1000
"""How many records one pass reads at most."""

TERMINAL_WAIT_S = 120.0
"""For this many seconds, the person is expected to wait for the command that acts."""

ANNOUNCED_RULES = ("suspect", "breaker")
"""Rules of the guard whose refusals are reported to people. Refusals by other rules are only in the
log."""

_OUTCOME_STATUSES = {
    ActionOutcome.DONE: Status.OK,
    ActionOutcome.INTENDED: Status.OK,  # in a dry run
    ActionOutcome.UNKNOWN: Status.UNKNOWN,
    ActionOutcome.UNCLEAR: Status.UNKNOWN,
}


class ActionBulletin(Struct, frozen=True, kw_only=True):
    """A message about an action for a check, which was done or refused. `id` stays the same after a
    restart."""

    id: str
    check: str  # Name of the check.
    subject: str  # What the alert is about.
    status: Status  # How bad it is.
    summary: str  # One line for people.
    details: str = ""  # Further lines.
    command: LookingCommand  # What a person would run next.

    def make_alert(
        self, key: Key, alert: Alert | None, kind: str, labels: Mapping[str, str], now: Instant
    ) -> Alert:
        """The alert that the message belongs to, or a substitute with the same fields."""
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
        return replace(
            alert,
            details=self.details,
            commands=(self.command.render(),),
            acts=(),
            values={},
            guidance=NO_GUIDANCE,
        )

    def make_transition(self, alert: Alert, now: Instant) -> Transition:
        """The message as a change of its alert."""
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
    """The records of a pass (`recent`, newest first), and what a dry run would have done."""

    recent: tuple[ActionRecord, ...] = ()
    imagined: tuple[ActionRecord, ...] = ()  # Records of actions that a dry run left out.


def make_outcome_token(record: ActionRecord) -> str:
    """Identifies one outcome of one action. If an unknown outcome turns out as done, it is reported
    again."""
    return f"{record.id}:{record.outcome.value}"


def find_unannounced(records: Iterable[ActionRecord], told: Collection[str]) -> list[ActionRecord]:
    """The records to report that were not reported yet, oldest first (`records`: newest first)."""
    fresh = [r for r in records if _is_announced(r) and make_outcome_token(r) not in told]
    return fresh[::-1]


def list_announced_tokens(told: Sequence[str], fresh: Iterable[ActionRecord]) -> list[str]:
    """The tokens of all outcomes that were reported, for the state. They cover more than one
    reading of the log."""
    return [*told, *map(make_outcome_token, fresh)][-2 * MAX_RECORDS :]


def make_bulletins(
    records: Sequence[ActionRecord], checks: Collection[str]
) -> list[ActionBulletin]:
    """One message per record. Refusals with the same reason are one message, however many nodes
    they are about.

    Records that none of `checks` requested are reported as sentinel's own.
    """
    found: dict[tuple[str, ...], list[ActionRecord]] = {}
    for record in records:
        alike = (
            (record.by, record.action, record.rule) if record.rule == "breaker" else (record.id,)
        )
        found.setdefault(alike, []).append(record)
    return [_make_bulletin(group, checks) for group in found.values()]


def format_targets(targets: Sequence[str]) -> str:
    """The targets as text of at most 200 characters: nodes as a host list, anything else one by
    one."""
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
        command=_choose_next_command(first),
    )


def _choose_next_command(record: ActionRecord) -> LookingCommand:
    """The command to run next. It is given only for jobs, because their alert may have another
    name."""
    if record.target.startswith("/"):  # a directory: say what may be started there now
        return look("sentinel check {}", record.by)
    if record.subject:
        return look("scontrol show job {} | cat -v", record.target)
    return look("sentinel nodes list --history {}", record.target)


def _summarize_outcome(record: ActionRecord, targets: str) -> str:
    what = visible(f"{record.action} {targets}")
    if record.outcome is ActionOutcome.REFUSED:
        return f"{what}: not done: {visible(record.why)}"
    if record.outcome is ActionOutcome.INTENDED:
        return f"{what}: would be done ({visible(record.why)})"
    return f"{what}: {record.outcome.value}: {visible(record.detail or record.why)}"
