"""`sentinel status`: what fires, what ran, what is unsent, who leads; from the state alone."""

import argparse
import json
from typing import Any

from sentinel import app
from sentinel.cli.state import State
from sentinel.core.clock import Instant, elapsed
from sentinel.core.model import Alert, Outgoing, Run
from sentinel.core.text import visible
from sentinel.core.values import duration_text


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser("status", help="what fires, last and next runs, unsent messages")
    parser.add_argument("-c", "--config", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="one JSON document and nothing else")
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    """Always 0: it reports, it does not judge."""
    with State(args.config) as state:
        store, now = state.store, state.now
        facts: dict[str, Any] = {
            "state": app.state_of(state.settings),
            "leader": store.leader(),
            "notices": state.notices,
            "alerts": [_alert(a, now) for a in store.alerts() if not a.over],
            "checks": _checks(state.settings, {r.check: r for r in store.runs()}, now),
            "unsent": [_unsent(row, now) for row in store.outbox()],
        }
    if args.json:
        print(json.dumps(facts, indent=1))
    else:
        _show(facts)
    return 0


def _alert(alert: Alert, now: Instant) -> dict[str, Any]:
    return {
        "id": alert.id,
        "check": alert.key.check,
        "subject": visible(alert.key.subject),
        "status": alert.status.value,
        "state": "firing" if alert.firing else "pending",
        "for_s": round(elapsed(alert.since, now)),
        "summary": visible(alert.summary),
        "told": sorted(alert.told),
    }


def _checks(settings: Any, runs: dict[str, Run], now: Instant) -> list[dict[str, Any]]:
    from sentinel.engine.schedule import next_run

    zone = app.zone(settings)
    rows = []
    for check in settings.checks:
        run = runs.get(check.name)
        following = next_run(check, run.at if run else None, now, zone)
        rows.append(
            {
                "check": check.name,
                "kind": check.common.kind,
                "status": run.status.value if run else None,
                "summary": visible(run.summary) if run else "has not run yet",
                "ran_s_ago": round(elapsed(run.at, now)) if run else None,
                "next_run": following.astimezone(zone).isoformat(timespec="seconds"),
            }
        )
    return rows


def _unsent(row: Outgoing, now: Instant) -> dict[str, Any]:
    return {
        "channel": row.channel,
        "alert": row.notification.alert,
        "reason": row.notification.reason,
        "attempts": row.attempts,
        "waiting_s": round(elapsed(row.created, now)),
        "error": visible(row.error),
    }


def _show(facts: dict[str, Any]) -> None:
    from rich.text import Text

    from sentinel.cli.tables import COLOURS, about, console, plain_table, status_cell
    from sentinel.core.model import Status

    out = console()
    who = f"service: {facts['leader']}" if facts["leader"] else "no service or tick is at work"
    out.print(Text(f"{who}; state in {facts['state']}"))
    for notice in facts["notices"]:
        out.print(Text(visible(notice), style=COLOURS[Status.CRITICAL]))
    if not facts["alerts"]:
        out.print(Text("no alerts", style=COLOURS[Status.OK]))
    else:
        table = plain_table("alert", "", "check", "for", "summary")
        for a in facts["alerts"]:
            table.add_row(
                Text(a["id"]),
                status_cell(Status(a["status"])) if a["state"] == "firing" else Text("pending"),
                about(a["check"], a["subject"]),
                Text(duration_text(a["for_s"])),
                Text(a["summary"]),
            )
        out.print(table)
    table = plain_table("check", "", "ran", "next", "summary")
    for c in facts["checks"]:
        ran = f"{duration_text(c['ran_s_ago'])} ago" if c["ran_s_ago"] is not None else "never"
        state = status_cell(Status(c["status"])) if c["status"] else Text("–")
        table.add_row(
            Text(c["check"]), state, Text(ran), Text(c["next_run"][11:19]), Text(c["summary"])
        )
    out.print(table)
    for u in facts["unsent"]:
        tried = f"{u['attempts']} attempts: {u['error']}" if u["attempts"] else "not tried yet"
        out.print(
            Text(
                f"unsent for {duration_text(u['waiting_s'])}: {u['reason']} {u['alert']} to {u['channel']} ({tried})"
            )
        )
