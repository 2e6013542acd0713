"""What sentinel changes, and what became of it: the nouns of the guard, its log, its ledger."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from sentinel.core.action_limits import BreakerSettings
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.text import shortened, visible, visible_lines

MAX_EVIDENCE_ITEMS = 50
MAX_EVIDENCE_CHARS = 4000
"""Items and characters of one of them that a record keeps: a log line, not a log."""


class ActionOutcome(str, Enum):
    """What is known of an action.

    intended: written before it was tried; unknown: tried, or perhaps not, and not yet seen;
    unclear: something else happened to the target since, so nobody will ever know;
    withdrawn: not tried after all; unneeded: as wished already, and never stored.
    """

    INTENDED = "intended"
    DONE = "done"
    NO_EFFECT = "no effect"
    ERROR = "error"
    UNKNOWN = "unknown"
    UNCLEAR = "unclear"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    UNNEEDED = "unneeded"

    @property
    def is_open(self) -> bool:
        """It may still happen: nothing else may be done to the target."""
        return self in (ActionOutcome.INTENDED, ActionOutcome.UNKNOWN)

    @property
    def is_attempted(self) -> bool:
        """Slurm was told, or may have been: it counts for caps."""
        return self not in (ActionOutcome.REFUSED, ActionOutcome.WITHDRAWN, ActionOutcome.UNNEEDED)

    @property
    def has_effect(self) -> bool:
        """The target was changed, or may have been."""
        return self in (ActionOutcome.DONE, ActionOutcome.UNCLEAR) or self.is_open


class ActionRecord(Struct, frozen=True, kw_only=True):
    """An entry of the audit log: intent, evidence, outcome.

    `by` is the check or person that asked; `rule` and `why` are the guard's; `detail` is what
    was seen afterwards; `commands` are the very arguments. `ended` None while it is open.
    `checked`: when each boot that read it again did so first. `mark`: a digest of the target's
    mark (see Look) at the intent. `subject`: of the alert it belongs to, if not the target.
    `log`: where slurmctld's log ended before the last look; empty where it could not be read.
    """

    id: str
    action: str
    target: str
    reason: str
    by: str
    at: Instant
    outcome: ActionOutcome
    params: Mapping[str, str] = {}
    evidence: Mapping[str, str] = {}
    commands: tuple[tuple[str, ...], ...] = ()
    rule: str = ""
    why: str = ""
    detail: str = ""
    ended: Instant | None = None
    checked: tuple[Instant, ...] = ()
    mark: str = ""
    forced: bool = False
    subject: str = ""
    log: str = ""


class Look(Struct, frozen=True, kw_only=True):
    """What an action sees of its target.

    `done`: its own wish is visible. `unneeded`: there is nothing to do, in words. `not_ready`:
    why it must not be done now. `mark`: whatever must not change between proof and change.
    """

    text: str
    done: bool = False
    unneeded: str = ""
    not_ready: str = ""
    mark: str = ""


class Answer(str, Enum):
    """What Slurm said to a change; unsure: it may have happened, or may happen later."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNSURE = "unsure"


class Reply(Struct, frozen=True):
    """An answer with Slurm's own words."""

    answer: Answer
    text: str = ""


class ActionSwitch(Struct, frozen=True, kw_only=True):
    """Maintenance or an open breaker: stops all actions, for `seconds` or (None) until undone."""

    since: Instant
    seconds: float | None
    why: str
    by: str = ""

    def get_seconds_left(self, now: Instant) -> float:
        """Seconds it still lasts; 0 when it is over."""
        if self.seconds is None:
            return float("inf")
        return max(0.0, self.seconds - get_elapsed_s(self.since, now))


class NodeReading(Struct, frozen=True, kw_only=True):
    """A line of the ledger of nodes: a state and reason, from when it was first seen.

    `left`: when the node left service, where this reading is that of its leaving; `returned`: when
    it was first seen in service again, where it is that of its return.
    """

    node: str
    state: str
    reason: str
    user: str
    reason_time: int | None
    out: bool
    seen: Instant
    left: Instant | None = None
    returned: Instant | None = None


class ActionHistory(Struct, frozen=True, kw_only=True):
    """What is stored, of one moment: enough to judge one request by.

    `records` are those of the target, and of all targets those of the last hour or the newest
    thousand, whichever are more; `left` the newest readings of nodes leaving service, `returned`
    those of the last hours of nodes that came back.
    """

    records: tuple[ActionRecord, ...] = ()
    left: tuple[NodeReading, ...] = ()
    returned: tuple[NodeReading, ...] = ()
    maintenance: ActionSwitch | None = None
    breaker: ActionSwitch | None = None


class Situation(Struct, frozen=True, kw_only=True):
    """What is seen just now. `partitions`: those of the target, with all their nodes.

    `unwell`: what is wrong with Slurm; `not_ready`: why the target is no fit one; `returning`: the
    kinds of actions that return nodes to service; `marked`: the nodes that carry a mark of such a
    return within the hour; `waits`: others' returns are waited for, not only counted.
    """

    enabled: bool
    nodes: int
    partitions: Mapping[str, frozenset[str]] = {}
    unwell: str = ""
    not_ready: str = ""
    maintenance: bool = False
    forced: bool = False
    breaker: BreakerSettings = BreakerSettings()
    returning: frozenset[str] = frozenset()
    marked: frozenset[str] = frozenset()
    waits: bool = False


class GuardVerdict(Struct, frozen=True):
    """Whether, why, and which rule said so (empty where all agreed)."""

    allowed: bool
    why: str
    rule: str = ""


class GuardDecision(Struct, frozen=True, kw_only=True):
    """What `AuditLog.record_intent` writes: the judged record, unless it is no news, and an open breaker."""

    record: ActionRecord
    write: bool = True
    breaker: ActionSwitch | None = None


def limit_evidence(evidence: Mapping[str, str]) -> dict[str, str]:
    """Evidence as it is stored: of limited size, nothing in it a terminal would obey."""
    return {
        shortened(visible(key), 100): shortened(visible_lines(value), MAX_EVIDENCE_CHARS)
        for key, value in list(evidence.items())[:MAX_EVIDENCE_ITEMS]
    }
