"""`sentinel status`: all there is to see, once; from the state alone."""

import argparse
import json
from datetime import datetime
from typing import Any

from sentinel.cli import config_option, json_option
from sentinel.cli.state import State
from sentinel.core.clock import Instant, elapsed
from sentinel.core.model import Outgoing
from sentinel.core.text import visible
from sentinel.wiring import app

SHOWN = 12
"""File systems, jobs and groups of nodes that are shown; `top` and the page show all."""

FOLDS = 10
"""Rows of alerts, alike ones as one: with all else it is read within 80 lines."""

ACTIONS = 5
MORE = (
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
    config_option(parser)
    form = parser.add_mutually_exclusive_group()
    json_option(form)
    form.add_argument(
        "--metrics", action="store_true", help="print metrics in the form that Prometheus reads"
    )
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
        "alerts": [_alert(a) for a in found.alerts],
        "checks": [_check(c, found.at, state.zone) for c in found.checks],
        "unsent": [_unsent(row, now) for row in store.outbox()],
        **{name: told[name] for name in MORE},
        "actions": told["actions"][:SHOWN],
    }


def _alert(a: Any) -> dict[str, Any]:
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


def _check(c: Any, now: float, zone: Any) -> dict[str, Any]:
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
    out.print(Text.assemble(panels.watch(f, zone), f"; {by}"))
    out.print(panels.headline(f))
    sections = [("alerts", panels.folded(f.alerts, f.at, FOLDS), True)]
    sections += [
        ("jobs", panels.jobs(f.jobs[:SHOWN], f), bool(f.jobs)),
        ("file systems", panels.disks(f.disks[:SHOWN], f.at), bool(f.disks)),
        ("nodes", panels.nodes(f, f.nodes[:SHOWN]), f.nodes_seen is not None),
        ("GPUs under suspicion", panels.gpus(f), bool(f.gpus)),
        ("checks", panels.checks(f.checks, f, zone), bool(f.checks)),
        ("done", panels.actions(f, zone, ACTIONS), bool(f.actions)),
    ]
    for title, what, there in sections:
        if there:
            out.print(Text(f"\n{title}", style="bold"))
            out.print(what)
    for line in panels.unsent(f):
        out.print(line)
