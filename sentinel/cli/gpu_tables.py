"""Output of `sentinel gpus`: tables for people, plain data for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from sentinel.alerting.notifications import format_iso
from sentinel.cli.plain_rows import is_piped
from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpu_ledger import GpuEvent, GpuStanding, LedgerEntry, Stay
from sentinel.core.lemon_policy import LemonPolicy
from sentinel.core.shown import PCI_DOMAIN
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.gpu.ledger_update import outages_text
from sentinel.gpu.lemon_score import Term

MAX_LISTED_GPUS = 100
"""GPUs in a table on a terminal; if there are more, good ones are only counted."""

STANDING_COLOURS = {"lemon": "bold red", "suspect": "yellow", "good": "green"}


class GpuDetails(Struct, frozen=True, kw_only=True):
    """All that is known of one subject."""

    entry: LedgerEntry
    standing: GpuStanding
    stays: tuple[Stay, ...]
    events: tuple[GpuEvent, ...]
    terms: tuple[Term, ...]
    policy: LemonPolicy
    now: Instant


def print_gpu_table(
    entries: Sequence[LedgerEntry],
    standings: Mapping[str, GpuStanding],
    zone: tzinfo,
    now: Instant,
    *,
    as_json: bool,
    temperatures: Mapping[str, float] = MappingProxyType({}),
    folds: bool = False,
) -> None:
    """One row a subject; its serial is in JSON and in `show`. `folds`: of many on a terminal those that
    are good are counted."""
    pairs = [
        (e, _build_gpu_row(e, standings.get(e.subject, GpuStanding()), zone, temperatures))
        for e in entries
    ]
    if as_json:
        print(json.dumps([row for _, row in pairs], indent=1))
        return
    good = [row for _, row in pairs if row["held"] == "good"]
    if folds and len(pairs) > MAX_LISTED_GPUS and not is_piped():
        pairs = [(entry, row) for entry, row in pairs if row["held"] != "good"]
    else:
        good = []
    if pairs:
        _print_gpu_table(pairs, now)
    if any(row["marked"] for _, row in pairs):
        print("* marked by hand")
    if good:
        print(f"{len(good)} GPUs are rated good; to see some: sentinel gpus list NODES")


def _print_gpu_table(pairs: Sequence[tuple[LedgerEntry, Mapping[str, Any]]], now: Instant) -> None:
    from sentinel.cli.tables import FittedTable, Text, make_console, make_plain_table

    table = make_plain_table("node", "slot", "GPU", "°C", "seen ago", "score", "rating")
    for column in table.columns:
        column.no_wrap = True
    for entry, row in pairs:
        heat, rating = row["temperature_c"], row["held"] + (" *" if row["marked"] else "")
        table.add_row(
            Text(row["node"]),
            Text(row["slot"].removeprefix(PCI_DOMAIN)),
            Text(row["gpu"]),
            Text("" if heat is None else f"{heat:.0f}"),
            Text(duration_text((now.wall - entry.seen.wall) // SECOND).partition(" ")[0]),
            Text(f"{row['score']:.1f}" if row["score"] else ""),
            Text(rating, style=STANDING_COLOURS[row["held"]]),
        )
    make_console().print(FittedTable(table, "score", "seen ago", "slot"))


def print_gpu_details(shown: GpuDetails, zone: tzinfo, *, as_json: bool) -> None:
    """Print places, events, and the terms of the score."""
    if as_json:
        print(json.dumps(build_gpu_document(shown, zone), indent=1))
    else:
        print("\n".join(_render_gpu_lines(shown, zone)))


def build_gpu_document(shown: GpuDetails, zone: tzinfo) -> dict[str, Any]:
    """Everything about a subject as JSON."""
    return {
        **_build_gpu_row(shown.entry, shown.standing, zone),
        "model": visible(shown.entry.model),
        "first": format_iso(shown.entry.first, zone),
        "reason": visible(shown.entry.reason),
        "by": visible(shown.entry.by),
        "stays": [_build_stay_row(s, zone) for s in shown.stays],
        "events": [_build_event_row(e, zone) for e in shown.events],
        "sum": [_build_term_row(t, zone) for t in shown.terms],
    }


def _build_stay_row(stay: Stay, zone: tzinfo) -> dict[str, str]:
    return {
        "node": visible(stay.node),
        "slot": visible(stay.slot),
        "from": format_iso(stay.began, zone),
        "to": format_iso(stay.ended, zone),
    }


def _build_event_row(event: GpuEvent, zone: tzinfo) -> dict[str, Any]:
    return {
        "at": format_iso(event.at, zone),
        "what": visible(event.what),
        "node": visible(event.node),
        "count": event.count,
        "text": visible(event.text),
        "by": visible(event.by),
    }


def _build_term_row(term: Term, zone: tzinfo) -> dict[str, Any]:
    return {
        "what": visible(term.what),
        "at": format_iso(term.at, zone),
        "weight": term.weight,
        "left": round(term.left, 3),
        "why": term.why,
    }


def _build_gpu_row(
    entry: LedgerEntry,
    standing: GpuStanding,
    zone: tzinfo,
    temperatures: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, Any]:
    return {
        "gpu": visible(entry.subject),
        "serial": visible(entry.serial),
        "node": visible(entry.node),
        "slot": visible(entry.slot),
        "held": standing.judged,
        "marked": standing.marked,
        "score": round(standing.score, 3),
        "seen": format_iso(entry.seen, zone),
        "temperature_c": temperatures.get(entry.subject),
    }


def _render_gpu_lines(shown: GpuDetails, zone: tzinfo) -> list[str]:
    entry, standing, policy = shown.entry, shown.standing, shown.policy
    name = " ".join(
        filter(None, [entry.subject, entry.model, entry.serial and f"serial {entry.serial}"])
    )
    lines = [visible(name), f"  rating: {_describe_standing(shown)}"]
    if entry.reason or entry.by:
        lines.append(visible(f"  said: {entry.reason or '-'} (by {entry.by})"))
    lines.append("places")
    for stay in shown.stays or ():
        span = f"{_format_minute(stay.began, zone)} to {_format_minute(stay.ended, zone)}"
        lines.append(visible(f"  {span}  {stay.node} {stay.slot}"))
    lines.append("events")
    lines += [_render_gpu_event(event, zone) for event in reversed(shown.events)] or ["  none"]
    if entry.is_node:
        lines.append(f"score: {outages_text(entry, shown.now, policy)}")
    elif shown.terms:
        lines.append(f"score (halves every {duration_text(policy.half_life)})")
        lines += [_render_score_term(term, zone) for term in shown.terms]
        total = sum(term.left for term in shown.terms)
        limits = f"suspect from {policy.suspect:g}, lemon from {policy.lemon:g}"
        lines.append(f"  {total:6.2f}  together; {limits}")
    return lines if not standing.marked else [*lines, "  a mark by hand counts more than the score"]


def _describe_standing(shown: GpuDetails) -> str:
    standing = shown.standing
    if standing.marked:
        return f"{standing.judged}, marked by hand"
    return f"{standing.judged}, score {standing.score:.2f}"


def _render_gpu_event(event: GpuEvent, zone: tzinfo) -> str:
    often = f" x{event.count}" if event.count > 1 else ""
    by = f" (by {event.by})" if event.by else ""
    where = f"  {event.node}" if event.node else ""
    text = shortened(event.text, 160)
    return visible(
        f"  {_format_minute(event.at, zone)}{where}  {event.what}{often}  {text}{by}"
    ).rstrip()


def _render_score_term(term: Term, zone: tzinfo) -> str:
    of = f"of {term.weight:g}" if term.weight else ""
    why = f"  ({term.why})" if term.why else ""
    return visible(f"  {term.left:6.2f}  {of:<8}{_format_minute(term.at, zone)}  {term.what}{why}")


def _format_minute(moment: Instant, zone: tzinfo) -> str:
    return format_iso(moment, zone)[:16].replace("T", " ")
