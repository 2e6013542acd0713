"""Types for actions: requests, outcomes, the audit log, and the ledger of nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from sentinel.core.action_limits import BreakerSettings
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.text import shortened, visible, visible_lines

MAX_EVIDENCE_ITEMS = 50
MAX_EVIDENCE_CHARS = 4000
"""How many items of evidence a record keeps, and how many characters of one item: enough for a line
of a log."""

LEFT_OUT_KEY = "left out"
"""The item that counts what is left out of the evidence."""


class ActionOutcome(str, Enum):
    """The outcome of an action, as far as it is known.

    intended: It was written down. No try is recorded yet; in a dry run there is none.
    unknown: It was perhaps tried, and nobody has seen the result yet.
    unclear: Something else happened to the target since, so nobody will ever know.
    withdrawn: It was not tried after all.
    unneeded: The target was already in the requested state. This is never stored.
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
        """Whether the action may still happen: until then nothing else may be done to the
        target."""
        return self in (ActionOutcome.INTENDED, ActionOutcome.UNKNOWN)

    @property
    def is_attempted(self) -> bool:
        """Whether the command reached Slurm, or may have reached it. Such an outcome counts for
        limits."""
        return self not in (ActionOutcome.REFUSED, ActionOutcome.WITHDRAWN, ActionOutcome.UNNEEDED)

    @property
    def has_effect(self) -> bool:
        """Whether the target was changed, or may have been changed."""
        return self in (ActionOutcome.DONE, ActionOutcome.UNCLEAR) or self.is_open


class ActionRecord(Struct, frozen=True, kw_only=True):
    """An entry of the audit log: intent, evidence, outcome.

    by: The check or person that requested the action.
    rule: The rule of the guard that forbids it; `why` is its reason.
    detail: What was seen afterwards, in words.
    commands: The commands with their exact arguments.
    ended: When it ended; None while it is open.
    checked: When the record was first read again, once for each boot that did so.
    mark: A digest of the target's mark (see Look) at the intent.
    subject: Subject of the alert, if that is not the target.
    log: Where slurmctld's log ended before the last look; empty if it could not be read.
    """

    id: str  # Unique name of the record.
    action: str  # The kind of action, as `drain`.
    target: str  # The node, job or path that the action is about.
    reason: str  # Why the action is requested, in words.
    by: str
    at: Instant  # When the intent was written.
    outcome: ActionOutcome  # The outcome of the action.
    params: Mapping[str, str] = {}  # The action's own parameters, by name.
    evidence: Mapping[str, str] = {}  # The facts that led to the request, by name.
    commands: tuple[tuple[str, ...], ...] = ()
    rule: str = ""
    why: str = ""
    detail: str = ""
    ended: Instant | None = None
    checked: tuple[Instant, ...] = ()
    mark: str = ""
    forced: bool = False  # Whether a person skipped rules with --force.
    subject: str = ""
    log: str = ""


class Look(Struct, frozen=True, kw_only=True):
    """What an action sees of its target.

    done: The target is already in the requested state.
    unneeded: Why there is nothing to do, in words.
    not_ready: Why it must not be done now.
    mark: Text that must not change between proof and change.
    """

    text: str  # The observation, in words for the log.
    done: bool = False
    unneeded: str = ""
    not_ready: str = ""
    mark: str = ""


class Answer(str, Enum):
    """The answer of Slurm to a change. Unsure: it may have happened, or may happen later."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNSURE = "unsure"


class Reply(Struct, frozen=True):
    """An answer with Slurm's own words."""

    answer: Answer  # Whether Slurm did it, refused it, or its answer is not known.
    text: str = ""  # Slurm's own words.


class ActionSwitch(Struct, frozen=True, kw_only=True):
    """Maintenance or an open breaker: it stops all actions.

    seconds: How long it lasts; None: until somebody ends it.
    """

    since: Instant  # When it was switched on.
    seconds: float | None
    why: str  # The reason, for people.
    by: str = ""  # Who switched it on.

    def get_seconds_left(self, now: Instant) -> float:
        """Seconds until its end. 0 if it is over."""
        if self.seconds is None:
            return float("inf")
        return max(0.0, self.seconds - get_elapsed_s(self.since, now))


class NodeReading(Struct, frozen=True, kw_only=True):
    """A line of the ledger of nodes: a state and its reason, since they were first seen.

    left: When the node left service, if this reading is the one of its leaving.
    returned: When it was first seen in service again, if this reading is the one of its return.
    """

    node: str  # The node's name.
    state: str  # Its state, as Slurm writes it.
    reason: str  # The reason that Slurm showed.
    user: str  # Who gave the reason. Empty if Slurm did not say.
    # When the reason was given, in epoch seconds. None if Slurm did not say.
    reason_time: int | None
    out: bool  # Whether the node is out of service in this state.
    seen: Instant  # When this state and reason were first seen.
    left: Instant | None = None
    returned: Instant | None = None


class ActionHistory(Struct, frozen=True, kw_only=True):
    """Stored facts of one moment, enough to judge one request.

    records: All records of the target. Of the other targets: those of the last hour or the newest
        thousand, whichever are more.
    left: The newest readings of nodes that left service.
    returned: Readings of the last hours of nodes that came back.
    """

    records: tuple[ActionRecord, ...] = ()
    left: tuple[NodeReading, ...] = ()
    returned: tuple[NodeReading, ...] = ()
    maintenance: ActionSwitch | None = None  # The switch that stops all actions, if it is on.
    breaker: ActionSwitch | None = None  # The circuit breaker, if it is open.


class Situation(Struct, frozen=True, kw_only=True):
    """What is seen now, before an action is judged.

    partitions: The partitions of the target, with all their nodes.
    unwell: What is wrong with Slurm; empty: nothing.
    not_ready: Why the target must not be changed now; empty: it may.
    returning: Kinds of actions that return nodes to service.
    marked: Nodes that carry a mark of such a return within the hour.
    waits: Returns by others are waited for, and not only counted.
    shared: Sentinel acts on jobs of many users, as root does.
    """

    enabled: bool  # Whether the kind of action is switched on.
    nodes: int  # How many nodes the cluster has.
    partitions: Mapping[str, frozenset[str]] = {}
    unwell: str = ""
    not_ready: str = ""
    maintenance: bool = False  # Whether the configuration switches maintenance on.
    forced: bool = False  # Whether a person skips rules with --force.
    breaker: BreakerSettings = BreakerSettings()
    """When this many nodes have left service, the breaker opens."""
    returning: frozenset[str] = frozenset()
    marked: frozenset[str] = frozenset()
    waits: bool = False
    shared: bool = False


class GuardVerdict(Struct, frozen=True):
    """Whether the action is allowed, with the reason and the rule that forbids it."""

    allowed: bool  # Whether the action is allowed.
    why: str  # The reason, for people.
    rule: str = ""  # The rule that forbids it. Empty if no rule does.


class GuardDecision(Struct, frozen=True, kw_only=True):
    """The decision about a request, which `AuditLog.record_intent` writes."""

    record: ActionRecord  # The request as it was judged.
    write: bool = True  # Whether the record is news and has to be stored.
    breaker: ActionSwitch | None = None  # The breaker, if this request opened it.


def limit_evidence(evidence: Mapping[str, str]) -> dict[str, str]:
    """The evidence as it is stored. Its size is limited, and characters that a terminal would obey
    are escaped. An item of its own counts what is left out, also if evidence is limited again."""
    items = [(key, value) for key, value in evidence.items() if key != LEFT_OUT_KEY]
    kept = {
        shortened(visible(key), 100): shortened(visible_lines(value), MAX_EVIDENCE_CHARS)
        for key, value in items[:MAX_EVIDENCE_ITEMS]
    }
    before = re.fullmatch(r"(\d{1,9}) more", evidence.get(LEFT_OUT_KEY, ""))
    left_out = max(0, len(items) - MAX_EVIDENCE_ITEMS) + (int(before[1]) if before else 0)
    return {**kept, LEFT_OUT_KEY: f"{left_out} more"} if left_out else kept
