"""Keeps the Xids that still matter: those that were seen in the log and are not yet known to be
repaired. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.gpu.judge import STATUS, Problem
from sentinel.checks.gpu.sight import Sight, subject_of, what_of
from sentinel.core.clock import SECOND, Instant
from sentinel.core.model import Status
from sentinel.core.stored_memory import decode_memory
from sentinel.core.values import clock_text
from sentinel.gpu import xid_table
from sentinel.gpu.advice import Advice
from sentinel.gpu.model import RemappedRows, RetiredPages

INIT = "init failed"
"""The driver could not start a GPU. A later try may succeed, and then nvidia-smi shows the GPU."""

MEMORY = ("xid 48", "xid 171", "xid 172")
"""Uncorrectable memory errors. A reset repairs them too if a row was remapped (63) or the driver
asked for a recovery action (154). Otherwise they need a person."""

RECORDED = ("xid 63", "xid 177")
"""Recorded remappings, which take effect with the next reset; programs may go on until then."""


class Open(Struct, frozen=True, kw_only=True):
    """One kind of event of one subject that is not repaired yet."""

    subject: str  # The GPU or node that it is about.
    what: str  # Its kind and number.
    node: str  # Name of the node.
    boot: str  # Id of the boot in which it happened.
    at: int  # when it was last seen, µs UTC
    advice: str  # The action that it requires.
    text: str  # The driver's line.
    meaning: str = ""  # What it means.
    count: int = 1  # How often it was seen.


def remembered(memory: Mapping[str, Any]) -> list[Open]:
    """The open events that the last run stored."""
    return decode_memory(memory.get("open"), list[Open]) or []


def kept(before: Sequence[Open], forgotten: Mapping[tuple[str, str], int]) -> list[Open]:
    """The open events without those that a person has since declared void. `forgotten` says when,
    in µs UTC, by subject and kind of event."""
    return [one for one in before if forgotten.get((one.subject, one.what), -1) < one.at]


def updated(
    before: Sequence[Open],
    sights: Mapping[str, Sight],
    cleared: Mapping[str, int],
    now: Instant,
    remember: float,
) -> tuple[Open, ...]:
    """The earlier open events that are not repaired, and the new ones.

    An event is repaired if the node was rebooted, NVIDIA's recovery action is None (for what a
    reset repairs), somebody cleared the GPU (`cleared`, µs UTC), or it is older than `remember`
    seconds."""
    known = {_key(one): one for one in before}
    fresh = set()
    for sight in sights.values():
        for new in _new(sight):
            fresh.add(_key(new))
            known[_key(new)] = _merged(known.get(_key(new)), new)
    awaited = {(one.node, one.subject) for one in known.values() if _awaits_reset(one)}
    return tuple(
        one
        for key, one in known.items()
        if not _over(one, cleared, now, remember)
        and (key in fresh or not _mended(one, sights.get(one.node), awaited))
    )


def _awaits_reset(one: Open) -> bool:
    """Whether a reset repairs it; so does a new try for a GPU that could not be started."""
    return one.advice == Advice.RESET.value or one.what in (f"xid {xid_table.RECOVERY}", INIT)


def _key(one: Open) -> tuple[str, str, str]:
    return one.node, one.subject, one.what


def _new(sight: Sight) -> Iterable[Open]:
    for one in sight.kernel:
        event = one.event
        if event.advice in STATUS:
            yield Open(
                subject=subject_of(sight, event),
                what=what_of(event),
                node=sight.node,
                boot=one.boot,
                at=one.at,
                advice=event.advice.value,
                text=event.text,
                meaning=event.meaning,
            )


def _merged(old: Open | None, new: Open) -> Open:
    if old is None or old.boot != new.boot:
        return new
    return replace(new, count=old.count + 1)


def _over(one: Open, cleared: Mapping[str, int], now: Instant, remember: float) -> bool:
    old = now.wall - one.at > remember * SECOND
    return old or cleared.get(one.subject, 0) >= one.at


def _mended(one: Open, sight: Sight | None, awaited: Collection[tuple[str, str]]) -> bool:
    """Whether the event is repaired. `awaited`: subjects with their nodes for which a reset was
    due."""
    if sight is None or not sight.boot:
        return False
    if sight.boot != one.boot:
        return True
    beside = one.what in MEMORY and (one.node, one.subject) in awaited
    return (beside or _awaits_reset(one)) and _well(sight, one.subject)


def _well(sight: Sight, subject: str) -> bool:
    """Whether the driver itself says that nothing has to be done. Old drivers do not say it."""
    gpu = next((g for g in sight.gpus if g.uuid == subject), None)
    if gpu is None or gpu.recovery != "None":
        return False
    rows, pages = gpu.remapped or RemappedRows(), gpu.retired or RetiredPages()
    waits = rows.pending or pages.pending or gpu.repairs
    return not (waits or rows.failed or gpu.unrepairable)


def problem(one: Open, now: Instant) -> Problem:
    """The problem in one line: the event, its meaning, and what to do."""
    status = STATUS.get(Advice(one.advice), Status.WARNING)
    if one.what in RECORDED:
        status = Status.WARNING
    name = one.what.replace("sxid", "SXid").replace("xid", "Xid")
    at = clock_text(one.at / SECOND, now.wall / SECOND)
    often = f", {one.count} times" if one.count > 1 else ""
    return status, f"{one.meaning} ({name} {at}{often})"
