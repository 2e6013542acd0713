"""Describes a standstill in words."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.core.text import format_ranges, shortened
from sentinel.stacks.parse.standstill import SILENT, Culprit, CulpritReason, Standstill

SHOWN = 4
"""How many culprits are named."""


def describe_standstill(found: Standstill) -> str:
    """The result in one line, the culprits first."""
    parts = [_culprit_line(one, found.circle) for one in found.culprits[:SHOWN]]
    if more := found.culprits[SHOWN:]:
        parts.append(f"{sum(len(one.ranks) for one in more)} more ranks likewise")
    if not found.culprits:
        parts.append(_describe_nobody(found))
    if found.silent and not any(one.why is CulpritReason.SILENT for one in found.culprits):
        parts.append(f"no dump of {_show_ranks(found.silent)} of {found.ranks}")
    return "; ".join(parts)


def _describe_nobody(found: Standstill) -> str:
    if not found.open:
        return "no rank waits in a collective"
    if len(found.silent) >= SILENT * found.ranks:
        return f"{found.open} ranks wait in collectives, too few dumps to tell for whom"
    return (
        f"{found.open} ranks wait in collectives that all of them have joined: look at the network"
        " or at one GPU"
    )


def _culprit_line(one: Culprit, circle: bool) -> str:
    several = len(one.ranks) > 1
    who, what = _show_ranks(one.ranks), _describe_collective(one)
    others = f"{one.waiting} other{'s' if one.waiting != 1 else ''}"
    wait = "wait" if one.waiting != 1 else "waits"
    if one.why is CulpritReason.UNFINISHED:
        have = f"{'have' if several else 'has'} not finished {what}, as {others} did"
        return f"{who} {have}: look at {'their GPUs' if several else 'its GPU'}"
    if one.why is CulpritReason.ODD:
        rest = f", {others} of the group in another collective" if one.waiting else ""
        return f"{who} {'are' if several else 'is'} in {what}{rest}: the program goes another way there"
    if one.why is CulpritReason.SILENT:
        return (
            f"{who} left no dump, and {others} {wait} with {'them' if several else 'it'} in {what}"
        )
    kept = " (they wait for each other)" if circle else ""
    return f"{who} {'are' if several else 'is'} not in {what}, in which {others} {wait}{kept}"


def _describe_collective(one: Culprit) -> str:
    place = f" ({one.place})" if one.place else ""
    return f"the {one.collective}{place} number {one.seq} of {one.group}"


def _show_ranks(ranks: Sequence[int]) -> str:
    return shortened(f"{'rank' if len(ranks) == 1 else 'ranks'} {format_ranges(ranks)}", 160)
