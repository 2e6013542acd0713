"""Output of `sentinel nodes`: tables for people, plain data for programs."""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

from rich.text import Text

from sentinel.alerting.notifications import format_iso
from sentinel.cli.tables import make_console, make_plain_table
from sentinel.core import hostlist
from sentinel.core.actions import ActionOutcome, ActionRecord, ActionSwitch, NodeReading
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Node
from sentinel.core.guidance import quote_command
from sentinel.core.ports import AuditLog
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.nodes.history import is_out
from sentinel.slurm.node_states import format_state

MAX_HISTORY_ROWS = 10_000


def print_node_table(nodes: Sequence[Node], now: Instant, *, as_json: bool, each: bool) -> int:
    """Print a summary by state, and below it the nodes that are out or have a reason (`each`: all
    nodes). Returns 0."""
    rows = [_build_node_row(node, now) for node in nodes]
    if as_json:
        print(json.dumps({"summary": _count_node_states(nodes), "nodes": rows}, indent=1))
        return 0
    _print_table(("nodes", "state", "names"), _summarize_states(nodes))
    shown = [r for r, n in zip(rows, nodes, strict=True) if each or is_out(n) or n.reason]
    if shown:
        print()
        ages = ("" if r["for_s"] is None else duration_text(r["for_s"]) for r in shown)
        shown = [{**r, "for": age} for r, age in zip(shown, ages, strict=True)]
        _print_table(("node", "state", "for", "by", "reason"), shown)
    return 0


def print_node_history(log: AuditLog, node: str, zone: tzinfo, *, as_json: bool) -> int:
    """Print the ledger and the audit log of one node, the oldest first. Returns 0."""
    readings = log.readings(node, MAX_HISTORY_ROWS + 1)
    records = log.records(node, MAX_HISTORY_ROWS + 1)
    if max(len(readings), len(records)) > MAX_HISTORY_ROWS:
        rest = f"only the newest {MAX_HISTORY_ROWS} states and actions are shown"
        print(f"sentinel: {visible(node)}: {rest}", file=sys.stderr)
    events = [_build_reading_event(r, zone) for r in readings[:MAX_HISTORY_ROWS]]
    for record in records[:MAX_HISTORY_ROWS]:
        events += _build_action_events(record, zone)
    events.sort(key=lambda event: event["wall"])
    rows = [{k: v for k, v in event.items() if k != "wall"} for event in events]
    if as_json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        print("\n".join(map(visible, _render_event_lines(row))))
    if not rows:
        print(f"{visible(node)}: nothing is known of it yet")
    return 0


def render_action_result(record: ActionRecord, *, dry_run: bool) -> list[str]:
    """The result of one request, in lines."""
    return [visible(line) for line in _list_result_lines(record, dry_run=dry_run)]


def _list_result_lines(record: ActionRecord, *, dry_run: bool) -> list[str]:
    if dry_run and record.outcome is ActionOutcome.INTENDED:
        lines = [
            f"{record.target}: would {record.action} ({record.why}); {_describe_seen_state(record)}"
        ]
        return [*lines, *(f"  {quote_command(*c)}" for c in record.commands)]
    if record.outcome is ActionOutcome.REFUSED:
        forced = (
            "" if record.rule in ("state", "slurm", "unresolved") else "; --force sets it aside"
        )
        return [f"{record.target}: not done ({record.rule}): {record.why}{forced}"]
    if record.outcome is ActionOutcome.UNNEEDED:
        return [f"{record.target}: nothing to do: {record.detail}"]
    return [f"{record.target}: {record.action}: {record.outcome.value}: {record.detail}"]


def build_action_row(record: ActionRecord, *, dry_run: bool) -> dict[str, Any]:
    """A record as JSON."""
    return {
        "id": record.id,
        "node": record.target,
        "action": record.action,
        "outcome": record.outcome.value,
        "rule": record.rule,
        "why": visible(record.why),
        "detail": visible(record.detail),
        "reason": record.reason,
        "by": record.by,
        "forced": record.forced,
        "dry_run": dry_run,
        "commands": [list(c) for c in record.commands],
        "evidence": dict(record.evidence),
    }


def build_switch_rows(active: Mapping[str, ActionSwitch], now: Instant) -> dict[str, Any]:
    """What stops actions now, as JSON."""
    return {
        name: {
            "why": visible(s.why),
            "by": s.by,
            "since_s": round(get_elapsed_s(s.since, now)),
            "left_s": None if s.seconds is None else round(s.get_seconds_left(now)),
        }
        for name, s in active.items()
    }


def render_switch_lines(active: Mapping[str, ActionSwitch], now: Instant) -> list[str]:
    """What stops actions now, in lines for people."""
    lines = []
    for name, switch in active.items():
        left = "until it is switched off"
        if switch.seconds is not None:
            left = f"for another {duration_text(switch.get_seconds_left(now))}"
        by = f" (by {visible(switch.by)})" if switch.by else ""
        lines.append(f"{name}: no actions {left}: {visible(switch.why)}{by}")
    return lines or ["actions are allowed: no maintenance, breaker closed"]


def _build_node_row(node: Node, now: Instant) -> dict[str, Any]:
    since = node.reason_time
    return {
        "node": visible(node.name),
        "state": format_state(node),
        "base": node.state,
        "flags": sorted(node.flags),
        "reason": visible(node.reason),
        "by": visible(node.reason_user),
        "reason_time": since,
        "for_s": None if since is None else max(0, now.wall // SECOND - since),
        "partitions": list(node.partitions),
    }


def _count_node_states(nodes: Sequence[Node]) -> dict[str, int]:
    return dict(Counter(format_state(n) for n in nodes).most_common())


def _summarize_states(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    names: dict[str, list[str]] = {}
    for node in nodes:
        names.setdefault(format_state(node), []).append(node.name)
    return [
        {"nodes": count, "state": state, "names": hostlist.fold_for_people(names[state])}
        for state, count in _count_node_states(nodes).items()
    ]


def _build_reading_event(reading: NodeReading, zone: tzinfo) -> dict[str, Any]:
    return {
        "wall": reading.seen.wall,
        "at": format_iso(reading.seen, zone),
        "what": "seen",
        "state": reading.state,
        "reason": visible(reading.reason),
        "by": visible(reading.user),
        "reason_at": _format_reason_time(reading.reason_time, zone),
    }


def _build_action_events(record: ActionRecord, zone: tzinfo) -> list[dict[str, Any]]:
    """The intent, and the outcome if it came later."""
    first = {
        "wall": record.at.wall,
        "at": format_iso(record.at, zone),
        "what": "refused" if record.outcome is ActionOutcome.REFUSED else "intended",
        **build_action_row(record, dry_run=False),
    }
    if record.outcome is ActionOutcome.REFUSED:
        return [first]
    del first["outcome"], first["detail"]
    if record.outcome is ActionOutcome.INTENDED:
        return [first]
    ended = record.ended or record.at
    return [
        first,
        {
            "wall": ended.wall,
            "at": format_iso(ended, zone),
            "what": record.outcome.value,
            "id": record.id,
            "action": record.action,
            "detail": visible(record.detail),
        },
    ]


def _render_event_lines(row: Mapping[str, Any]) -> list[str]:
    if row["what"] == "seen":
        by = f" by {row['by']} at {row['reason_at']}" if row["reason"] else ""
        reason = f": {row['reason']}{by}" if row["reason"] else ""
        return [f"{row['at']}  seen {row['state']}{reason}"]
    if "evidence" not in row:
        return [f"{row['at']}  {row['action']} {row['id']}: {row['what']}: {row['detail']}"]
    why = f" ({row['rule']})" if row["rule"] else ""
    head = f"{row['at']}  {row['action']} {row['id']}: {row['what']}{why}: {row['why']}"
    reason = f"; reason: {row['reason']}" if row["reason"] else ""
    lines = [f"{head}; by {row['by']}{reason}"]
    for key, value in row["evidence"].items():
        lines += [f"    {key}: {line}" for line in value.splitlines()]
    return lines


def _describe_seen_state(record: ActionRecord) -> str:
    return f"now {record.evidence.get('seen', '?')}"


def _format_reason_time(time: int | None, zone: tzinfo) -> str:
    return "" if time is None else format_iso(Instant(wall=time * SECOND), zone)


def _print_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    table = make_plain_table(*columns)
    for row in rows:
        table.add_row(*(Text(str(row[c])) for c in columns))
    make_console().print(table)
