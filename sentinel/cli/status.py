"""`sentinel status`: all there is to see, once; from the state alone."""

import argparse
import json
from datetime import datetime
from typing import Any

from sentinel.cli import add_config_option, add_json_option
from sentinel.cli.state import OpenState
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.model import Outgoing
from sentinel.core.text import visible
from sentinel.wiring import app

MAX_ROWS = 12
"""File systems, jobs and groups of nodes that are shown; `top` and the page show all."""

MAX_ALERT_ROWS = 10
"""Rows of alerts, alike ones as one: with all else it is read within 80 lines."""

MAX_ACTION_ROWS = 5
DOCUMENT_FIELDS = (
    "incidents",
    "disks",
    "jobs",
    "queue",
    "nodes",
    "nodes_seen",
    "nodes_trouble",
    "gpus",
    "silences",
)


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser(
        "status", help="what is wrong now, when each check ran and runs next, unsent messages"
    )
    add_config_option(parser)
    form = parser.add_mutually_exclusive_group()
    add_json_option(form)
    form.add_argument(
        "--metrics", action="store_true", help="print metrics in the form that Prometheus reads"
    )
    parser.set_defaults(call=call_status)


def call_status(args: argparse.Namespace) -> int:
    """0: it reports, it does not judge; 3 where there is something that it may not read."""
    with OpenState(args.config) as state:
        found = read_status_facts(state)
        known = _build_status_document(state, found) if args.json else {}
    if args.json:
        print(json.dumps(known, indent=1))
    elif args.metrics:
        from sentinel.web.metrics import render_metrics

        print(render_metrics(found).decode(), end="")
    else:
        print_status(found, state)
    return 0


def read_status_facts(state: OpenState) -> Any:
    """The facts of this state."""
    from sentinel.wiring import status

    return status.read_state_facts(
        state.store, status.build_file_surroundings(state.settings), state.now, ()
    )


def _build_status_document(state: OpenState, found: Any) -> dict[str, Any]:
    from msgspec import to_builtins

    store, now = state.store, state.now
    told = to_builtins(found)
    return {
        "config": state.settings.path or None,
        "state": app.describe_state_location(state.settings),
        "leader": store.read_leader(),
        "notices": list(found.notices),
        "alerts": [_build_status_alert(a) for a in found.alerts],
        "checks": [_build_status_check(c, found.at, state.zone) for c in found.checks],
        "unsent": [_build_unsent_row(row, now) for row in store.read_outbox()],
        **{name: told[name] for name in DOCUMENT_FIELDS},
        "actions": told["actions"][:MAX_ROWS],
    }


def _build_status_alert(a: Any) -> dict[str, Any]:
    return {
        "id": a.id,
        "incident": a.incident,
        "cluster": a.cluster,
        "check": a.check,
        "subject": a.subject,
        "status": a.status.value,
        "state": a.state,
        "for_s": round(a.for_s),
        "seen": a.seen,
        "stale": a.stale,
        "summary": a.summary,
        "told": sorted(a.told),
    }


def _build_status_check(c: Any, now: float, zone: Any) -> dict[str, Any]:
    following = None if c.next is None else datetime.fromtimestamp(c.next, zone)
    return {
        "check": c.name,
        "kind": c.kind,
        "status": c.status.value if c.status else None,
        "stale": c.stale,
        "summary": c.summary,
        "ran_s_ago": None if c.ran is None else round(max(0.0, now - c.ran)),
        "next_run": following.isoformat(timespec="seconds") if following else None,
    }


def _build_unsent_row(row: Outgoing, now: Instant) -> dict[str, Any]:
    return {
        "channel": row.channel,
        "alert": row.notification.alert,
        "reason": row.notification.reason,
        "attempts": row.attempts,
        "waiting_s": round(get_elapsed_s(row.created, now)),
        "error": visible(row.error),
    }


def print_status(f: Any, state: OpenState) -> None:
    """On a terminal: what is wrong first, then what there is."""
    from rich.text import Text

    from sentinel.cli import panels
    from sentinel.cli.tables import make_console

    out, zone = make_console(), state.zone
    by = f"configuration: {app.describe_config_source(state.settings)}; state in {app.describe_state_location(state.settings)}"
    out.print(Text.assemble(panels.render_watcher(f, zone), f"; {by}"))
    out.print(panels.render_headline(f))
    sections = [("alerts", panels.render_folded_alerts(f.alerts, f.at, MAX_ALERT_ROWS), True)]
    sections += [
        ("jobs", panels.render_jobs(f.jobs[:MAX_ROWS], f), bool(f.jobs)),
        ("file systems", panels.render_disks(f.disks[:MAX_ROWS], f.at), bool(f.disks)),
        ("nodes", panels.render_nodes(f, f.nodes[:MAX_ROWS]), f.nodes_seen is not None),
        ("GPUs under suspicion", panels.render_gpus(f), bool(f.gpus)),
        ("checks", panels.render_checks(f.checks, f, zone), bool(f.checks)),
        ("done", panels.render_actions(f, zone, MAX_ACTION_ROWS), bool(f.actions)),
    ]
    for title, what, there in sections:
        if there:
            out.print(Text(f"\n{title}", style="bold"))
            out.print(what)
    for line in panels.render_unsent(f):
        out.print(line)
