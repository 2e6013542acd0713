"""Makes records of the audit log from requests, verdicts and observations. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from sentinel.actions.guard import explain_breaker_trip, find_newest_record
from sentinel.core.actions import (
    ActionHistory,
    ActionOutcome,
    ActionRecord,
    ActionSwitch,
    GuardVerdict,
    Look,
    Situation,
)
from sentinel.core.clock import Instant
from sentinel.core.digests import blake2b
from sentinel.core.model import ActionRequest
from sentinel.core.text import shortened, visible

MAX_REASON_CHARS = 1000


def apply_verdict(record: ActionRecord, verdict: GuardVerdict) -> ActionRecord:
    """The record with the guard's verdict."""
    if verdict.allowed:
        return replace(record, why=verdict.why)
    return replace(
        record, outcome=ActionOutcome.REFUSED, rule=verdict.rule, why=verdict.why, ended=record.at
    )


def make_breaker_switch(
    situation: Situation, past: ActionHistory, now: Instant
) -> ActionSwitch | None:
    """The breaker, if it has to open or to stay open longer. None otherwise."""
    why = explain_breaker_trip(situation, past, now)
    cooldown = float(situation.breaker.cooldown)
    return ActionSwitch(since=now, seconds=cooldown, why=why, by="sentinel") if why else None


def is_repeated_refusal(record: ActionRecord, past: ActionHistory) -> bool:
    """Whether the newest record about the same action and target is a refusal by the same rule. A
    repeated refusal is recorded only once."""
    last = find_newest_record(past.records, record.action, record.target)
    return (
        record.outcome is ActionOutcome.REFUSED
        and last is not None
        and (last.outcome, last.rule) == (ActionOutcome.REFUSED, record.rule)
    )


def get_ineffective_outcome(record: ActionRecord, look: Look) -> ActionOutcome:
    """The outcome if the request is not done. Only a target in exactly the same state as before
    proves that nothing happened to it."""
    return (
        ActionOutcome.NO_EFFECT if record.mark == make_fingerprint(look) else ActionOutcome.UNCLEAR
    )


def make_fingerprint(look: Look) -> str:
    """A digest of the fields that must not change."""
    return blake2b(look.mark.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def normalize_reason(reason: str) -> str:
    """A reason as it is stored, so that a record's request is the one that was carried out."""
    return shortened(" ".join(visible(reason).split()), MAX_REASON_CHARS)


def rebuild_request(record: ActionRecord) -> ActionRequest:
    """The request that led to this record, so that a later pass can check whether it is done."""
    return ActionRequest(
        action=record.action, target=record.target, reason=record.reason, params=record.params
    )
