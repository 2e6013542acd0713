"""The journal of a chain: what happened in each slot, and which slots were missed."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from sentinel.chain.model import Chain
from sentinel.core.values import duration_text

What = Literal["begin", "ran", "busy", "repeat", "failed"]

MAX_SLOTS_LOOKED_BACK = 20_000
"""How many past slots are counted at most."""

FIRST_PASS_LATE_S = 60.0
"""Seconds after its due time from which on a first pass that left no entry is missing."""

MAX_GAPS = 3
"""How many missed slots make a chain count as silent, and no longer as busy."""


class JournalEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the journal: at `at` (epoch seconds) a link did this for a slot.

    The values of `what`: `begin`: the link started. `ran`: the pass ended well. `busy`: another
    process was using the state. `repeat`: another link had already run the slot. `failed`: the pass
    ended with an error, which is in `text`.
    """

    slot: int
    what: What
    at: float
    job: str = ""
    text: str = ""


class SlotGap(Struct, frozen=True):
    """Consecutive slots that nobody ran: the first and the last (epoch seconds), and their number."""

    first: int
    last: int
    count: int


class ChainStanding(Struct, frozen=True, kw_only=True):
    """Summary of a chain: it ran `ran` of `slots` slots.

    `failed` and `busy` are how many passes ended with an error, and how many found another process
    at work. `repeated` counts slots that were run more than once. It must be 0. `late` is the
    largest delay in seconds. `last` is the last slot that was run, or 0. `last_at` is the time of
    the newest entry.
    """

    slots: int = 0
    ran: int = 0
    failed: int = 0
    busy: int = 0
    repeated: int = 0
    late: float = 0.0
    last: int = 0
    last_at: float = 0.0
    gaps: tuple[SlotGap, ...] = ()


def find_run_job(entries: Sequence[JournalEntry], slot: int) -> str:
    """The job that completed the slot. Empty if no job did."""
    return next((e.job or "?" for e in entries if e.slot == slot and e.what == "ran"), "")


def sum_journal(chain: Chain, entries: Sequence[JournalEntry], now: float) -> ChainStanding:
    """Summarise a journal. The current slot counts once its outcome is known."""
    entries = _valid_entries(chain, entries, now)
    if not entries:
        return ChainStanding()
    runs = [e for e in entries if e.what == "ran"]
    done = _accounted_slots(entries)
    first = min(e.slot for e in entries)
    current = chain.slot_at(now)
    slots = [s for s in range(first, current + 1, chain.every) if s in done or s != current]
    missing = [s for s in slots if s not in done]
    began = {e.slot: e.at for e in reversed(entries) if e.what == "begin"}
    return ChainStanding(
        slots=len(slots),
        ran=len({e.slot for e in runs}),
        failed=sum(e.what == "failed" for e in entries),
        busy=sum(e.what == "busy" for e in entries),
        repeated=len(runs) - len({e.slot for e in runs}),
        late=max((at - slot for slot, at in began.items()), default=0.0),
        last=max((e.slot for e in runs), default=0),
        last_at=max(e.at for e in entries),
        gaps=_find_gaps(missing, chain.every),
    )


def seconds_silent(chain: Chain, found: ChainStanding, now: float) -> float:
    """Seconds since the last entry, or since the installation if there is none.

    It is 0 for a relay, because the service in the job makes the passes.
    """
    last = found.last_at or chain.installed or now
    return 0.0 if chain.mode == "relay" else max(0.0, now - last)


def describe_first_failure(chain: Chain, entries: Sequence[JournalEntry], now: float) -> str:
    """Why there was no pass yet although one was due. Empty if a pass was made, or if none is due
    yet."""
    entries = _valid_entries(chain, entries, now)
    failed = [e for e in entries if e.what == "failed"]
    if any(e.what == "ran" for e in entries):
        return ""
    if failed:
        job = f" in job {failed[0].job}" if failed[0].job else ""
        return f"the first pass failed{job}: {failed[0].text or 'it left no reason'}"
    if chain.mode == "relay" or not chain.installed:
        return ""
    due = chain.slot_at(chain.installed) + chain.every
    patience = 2 * chain.every if entries else FIRST_PASS_LATE_S  # one that began may still work
    if now - due <= patience:
        return ""
    return f"no job of it made a pass since {duration_text(now - chain.installed)}"


def find_closed_gap(chain: Chain, entries: Sequence[JournalEntry], now: float) -> SlotGap | None:
    """The gap that the current slot has just ended. None if there was none."""
    gaps = sum_journal(chain, entries, now).gaps
    if not gaps:
        return None
    done = _accounted_slots(_valid_entries(chain, entries, now))
    after = sum(1 for slot in done if slot > gaps[-1].last)
    return gaps[-1] if after <= 1 else None


def _valid_entries(chain: Chain, entries: Sequence[JournalEntry], now: float) -> list[JournalEntry]:
    """The entries about slots of this chain.

    Entries with another spacing are left out. So are entries from a host whose clock was wrong
    (1970, or the future): entries from the future would hide a silence.
    """
    newest = chain.slot_at(now) + chain.every
    oldest = newest - MAX_SLOTS_LOOKED_BACK * chain.every
    return [e for e in entries if oldest < e.slot <= newest and e.slot % chain.every == 0]


def _accounted_slots(entries: Sequence[JournalEntry]) -> set[int]:
    """Slots whose outcome is known."""
    return {e.slot for e in entries if e.what in ("ran", "busy", "failed")}


def _find_gaps(missing: Sequence[int], every: int) -> tuple[SlotGap, ...]:
    found: list[SlotGap] = []
    for slot in missing:
        if found and found[-1].last + every == slot:
            found[-1] = SlotGap(found[-1].first, slot, found[-1].count + 1)
        else:
            found.append(SlotGap(slot, slot, 1))
    return tuple(found)
