"""How requests, verdicts and looks become records of the audit log. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from sentinel.actions.guard import newest, trip
from sentinel.core.actions import (
    ActionRecord,
    Look,
    Outcome,
    Past,
    Situation,
    Switch,
    Verdict,
)
from sentinel.core.clock import Instant
from sentinel.core.digests import blake2b
from sentinel.core.model import ActionRequest
from sentinel.core.text import shortened, visible

LONGEST_REASON = 1000


def judged(record: ActionRecord, verdict: Verdict) -> ActionRecord:
    """The record with the guard's word on it."""
    if verdict.allowed:
        return replace(record, why=verdict.why)
    return replace(
        record, outcome=Outcome.REFUSED, rule=verdict.rule, why=verdict.why, ended=record.at
    )


def opened(situation: Situation, past: Past, now: Instant) -> Switch | None:
    """The breaker, where it has to open or to stay open longer."""
    why = trip(situation, past, now)
    cooldown = float(situation.breaker.cooldown)
    return Switch(since=now, seconds=cooldown, why=why, by="sentinel") if why else None


def said_before(record: ActionRecord, past: Past) -> bool:
    """Whether this is a refusal that repeats itself: it is written down once."""
    last = newest(past.records, record.action, record.target)
    return (
        record.outcome is Outcome.REFUSED
        and last is not None
        and (last.outcome, last.rule) == (Outcome.REFUSED, record.rule)
    )


def ineffective(record: ActionRecord, look: Look) -> Outcome:
    """Only a target that is just as it was before proves that nothing happened to it."""
    return Outcome.NO_EFFECT if record.mark == fingerprint(look) else Outcome.UNCLEAR


def fingerprint(look: Look) -> str:
    """A digest of what must not change."""
    return blake2b(look.mark.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def tidy(reason: str) -> str:
    """A reason as it is stored, so that a record's request is the one that was carried out."""
    return shortened(" ".join(visible(reason).split()), LONGEST_REASON)


def request_of(record: ActionRecord) -> ActionRequest:
    """What was asked for, to look whether it is done."""
    return ActionRequest(
        action=record.action, target=record.target, reason=record.reason, params=record.params
    )
