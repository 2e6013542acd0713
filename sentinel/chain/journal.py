"""What became of each slot: the journal of a chain, and the gaps in it."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from sentinel.chain.model import Chain

What = Literal["begin", "ran", "busy", "repeat", "failed"]

MAX_SLOTS_LOOKED_BACK = 20_000
"""Slots before this moment that are counted at most."""

MAX_GAPS = 3
"""Slots without a run that make a chain silent rather than busy."""


class JournalEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the journal: at `at` (epoch seconds) a link did this about a slot.

    `begin`: it set to work; `ran`: the tick ended; `busy`: another was at work on the state;
    `repeat`: the slot had been run by another link; `failed`: the tick ended badly (`text`).
    """

    slot: int
    what: What
    at: float
    job: str = ""
    text: str = ""


class SlotGap(Struct, frozen=True):
    """Slots in a row that nobody ran: the first, the last (epoch seconds), how many."""

    first: int
    last: int
    count: int


class ChainStanding(Struct, frozen=True, kw_only=True):
    """How a chain has done: `ran` slots out of `slots`, seconds late at most, and its gaps.

    `last` is the last slot with a run, 0 where there is none, `last_at` when anything was noted;
    `repeated` counts slots that were run more than once, which never may be.
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
    """The job that has run the slot to its end; empty when nobody has."""
    return next((e.job or "?" for e in entries if e.slot == slot and e.what == "ran"), "")


def sum_journal(chain: Chain, entries: Sequence[JournalEntry], now: float) -> ChainStanding:
    """The sum of a journal. The slot of this moment is not yet missing."""
    entries = _valid_entries(chain, entries, now)
    if not entries:
        return ChainStanding()
    runs = [e for e in entries if e.what == "ran"]
    done = _accounted_slots(entries)
    first = min(e.slot for e in entries)
    slots = range(first, chain.slot_at(now) + 1, chain.every)
    missing = [s for s in slots if s not in done and s != chain.slot_at(now)]
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
    """Seconds since anything was noted, or since it was installed; 0 for a relay, whose service
    makes the passes."""
    last = found.last_at or chain.installed or now
    return 0.0 if chain.mode == "relay" else max(0.0, now - last)


def find_closed_gap(chain: Chain, entries: Sequence[JournalEntry], now: float) -> SlotGap | None:
    """The gap that ended with the slot of this moment, if one did."""
    gaps = sum_journal(chain, entries, now).gaps
    if not gaps:
        return None
    done = _accounted_slots(_valid_entries(chain, entries, now))
    after = sum(1 for slot in done if slot > gaps[-1].last)
    return gaps[-1] if after <= 1 else None


def _valid_entries(chain: Chain, entries: Sequence[JournalEntry], now: float) -> list[JournalEntry]:
    """The entries about slots of this chain: of the same spacing, and not by the clock of a host
    that believed to be in 1970, or in a future in which silence would be no silence."""
    newest = chain.slot_at(now) + chain.every
    oldest = newest - MAX_SLOTS_LOOKED_BACK * chain.every
    return [e for e in entries if oldest < e.slot <= newest and e.slot % chain.every == 0]


def _accounted_slots(entries: Sequence[JournalEntry]) -> set[int]:
    """Slots of which it is known what became of them."""
    return {e.slot for e in entries if e.what in ("ran", "busy", "failed")}


def _find_gaps(missing: Sequence[int], every: int) -> tuple[SlotGap, ...]:
    found: list[SlotGap] = []
    for slot in missing:
        if found and found[-1].last + every == slot:
            found[-1] = SlotGap(found[-1].first, slot, found[-1].count + 1)
        else:
            found.append(SlotGap(slot, slot, 1))
    return tuple(found)
