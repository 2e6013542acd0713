"""`sentinel status`: all there is to see, once; from the state alone."""

import argparse
import json
from typing import Any

from sentinel.cli.state import State
from sentinel.core.clock import Instant, elapsed
from sentinel.core.model import Alert, Outgoing, Run
from sentinel.core.text import visible
from sentinel.wiring import app

SHOWN = 12
"""File systems, jobs and groups of nodes that are shown; `top` and the page show all."""

ACTIONS = 5
MORE = ("disks", "jobs", "queue", "nodes", "nodes_seen", "nodes_trouble", "gpus", "silences")


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser("status", help="what fires, last and next runs, unsent messages")
    parser.add_argument(
        "-c", "--config", metavar="FILE", help="the configuration; default: the one that applies"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document and nothing else")
    form.add_argument("--metrics", action="store_true", help="as Prometheus reads it")
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    """0: it reports, it does not judge; 3 where there is something that it may not read."""
    with State(args.config) as state:
        found = look(state)
        known = _document(state, found) if args.json else {}
    if args.json:
        print(json.dumps(known, indent=1))
    elif args.metrics:
        from sentinel.web.metrics import metrics

        print(metrics(found).decode(), end="")
    else:
        show(found, state)
    return 0


def look(state: State) -> Any:
    """The facts of this state."""
    from sentinel.wiring import status

    return status.seen(state.store, status.of_settings(state.settings), state.now, ())


def _document(state: State, found: Any) -> dict[str, Any]:
    from msgspec import to_builtins

    store, now = state.store, state.now
    told = to_builtins(found)
    return {
        "config": state.settings.path or None,
        "state": app.state_shown(state.settings),
        "leader": store.leader(),
        "notices": list(found.notices),
        "alerts": [_alert(a, now) for a in store.alerts() if not a.over],
        "checks": _checks(state.settings, {r.check: r for r in store.runs()}, now),
        "unsent": [_unsent(row, now) for row in store.outbox()],
        **{name: told[name] for name in MORE},
        "actions": told["actions"][:SHOWN],
    }


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


def show(f: Any, state: State) -> None:
    """On a terminal: what is wrong first, then what there is."""
    from rich.text import Text

    from sentinel.cli import panels
    from sentinel.cli.tables import console

    out, zone = console(), state.zone
    by = f"configuration: {app.by_what(state.settings)}; state in {app.state_shown(state.settings)}"
    out.print(Text.assemble(panels.watch(f), f"; {by}"))
    out.print(panels.headline(f))
    sections = [("alerts", panels.alerts(f.alerts), True)]
    sections += [
        ("checks", panels.checks(f.checks, f, zone), bool(f.checks)),
        ("file systems", panels.disks(f.disks[:SHOWN]), bool(f.disks)),
        ("jobs", panels.jobs(f.jobs[:SHOWN], f), bool(f.jobs)),
        ("nodes", panels.nodes(f, f.nodes[:SHOWN]), f.nodes_seen is not None),
        ("GPUs under suspicion", panels.gpus(f), bool(f.gpus)),
        ("done", panels.actions(f, zone, ACTIONS), bool(f.actions)),
    ]
    for title, what, there in sections:
        if there:
            out.print(Text(f"\n{title}", style="bold"))
            out.print(what)
    for line in panels.unsent(f):
        out.print(line)
