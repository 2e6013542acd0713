"""`sentinel status`: shows everything once, from the state alone."""

import argparse
import json
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.alerting.outbox import find_next_attempt
from sentinel.cli import add_config_option, add_json_option
from sentinel.cli.state import OpenState
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.model import Outgoing, Status
from sentinel.core.script_memory import SCRIPTS_KEY, count_scripts, describe_scripts
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.wiring import app, status

MAX_ROWS = 12
"""File systems, jobs and groups of nodes that are shown at most; `top` and the page show all."""

MAX_ALERT_ROWS = 10
"""Rows of alerts at most, alike ones as one row, so that everything fits into 80 lines."""

MAX_WELL_ROWS = 2
"""Trainings, and file systems, without problems that are shown at most."""

MAX_RUN_ROWS = 5
"""Trainings whose last day and week are shown."""

MAX_ACTION_ROWS, ACTIONS_DAY_S = 5, 86_400.0
MAX_NAMES_CHARS = 120
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
    """Print the status. Returns 0, since it reports and does not judge; 3 if something must not be
    read."""
    with OpenState(args.config) as state:
        found = read_status_facts(state)
        if not args.metrics:  # metrics contain only the notices of the state
            told = status.list_delivery_problems(state.settings, state.load_channel_settings)
            scripts = describe_scripts(state.store.read_memory(SCRIPTS_KEY))
            found = replace(found, notices=(*told, *scripts))
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
    return status.read_state_facts(
        state.store, status.build_file_surroundings(state.settings), state.now, ()
    )


def _build_status_document(state: OpenState, found: Any) -> dict[str, Any]:
    store, now = state.store, state.now
    told = to_builtins(found)
    return {
        "config": state.settings.path or None,
        "state": app.describe_state_location(state.settings),
        "leader": store.read_leader(),
        "notices": list(found.notices),
        "alerts": [_build_status_alert(a) for a in found.alerts],
        "checks": [_build_status_check(c, found.at, state.zone) for c in found.checks],
        "unsent": [_build_unsent_row(row, now, state.zone) for row in store.read_outbox()],
        "looks": [
            {"check": check, "user": user, "delay_s": round(delay)}
            for check, user, delay in _list_looks(found)
        ],
        "scripts": to_builtins(count_scripts(store.read_memory(SCRIPTS_KEY))),
        **{name: told[name] for name in DOCUMENT_FIELDS},
        "actions": told["actions"][:MAX_ROWS],
    }


def _list_looks(f: Any) -> list[tuple[str, str, float]]:
    """By check and user, how long ago the training was looked at that waits longest; these first."""
    delays: dict[tuple[str, str], float] = {}
    for job in f.jobs:
        if job.user:
            key = (job.check, job.user)
            delays[key] = max(delays.get(key, 0.0), f.at - job.seen)
    return sorted(((*key, delay) for key, delay in delays.items()), key=lambda row: -row[2])


def _describe_looks(f: Any) -> list[str]:
    """A line about the users whose trainings wait longest for a look; none for a user alone."""
    looks = _list_looks(f)
    each = (f"{user} {duration_text(delay)} ago ({check})" for check, user, delay in looks)
    text = shortened(", ".join(each), MAX_NAMES_CHARS)
    return [f"last looks at users' trainings: {text}"] if len(looks) > 1 else []


def _build_status_alert(a: Any) -> dict[str, Any]:
    return {
        "id": a.id,
        "incident": a.incident,
        "cluster": a.cluster,
        "check": a.check,
        "subject": a.subject,
        "status": a.status.value,
        "state": a.state,
        "for_s": int(a.for_s),
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


def _build_unsent_row(row: Outgoing, now: Instant, zone: tzinfo) -> dict[str, Any]:
    return {
        "channel": row.channel,
        "alert": row.notification.alert,
        "reason": row.notification.reason,
        "attempts": row.attempts,
        "waiting_s": round(get_elapsed_s(row.created, now)),
        "error": visible(row.error),
        "next_attempt": _format_next_attempt(row, now, zone),
    }


def _format_next_attempt(row: Outgoing, now: Instant, zone: tzinfo) -> str | None:
    wait = find_next_attempt(row, now)
    if wait is None:
        return None
    return datetime.fromtimestamp(now.wall / SECOND + wait, zone).isoformat(timespec="seconds")


def print_status(f: Any, state: OpenState) -> None:
    """Print what is wrong and who takes care of it, then what there is, then who runs the checks.
    Each fact is shown once; things without problems are counted, so that fifteen lines are enough
    if all is well."""
    from sentinel.cli import panels
    from sentinel.cli.tables import Text, make_console

    out, zone = make_console(), state.zone
    out.print(panels.render_headline(f))
    for notice in f.notices:
        out.print(Text(notice, style="bold yellow"))
    common = _find_common_staleness(f)
    for reason in common:
        out.print(Text(f"{reason}; what follows is from then", style="bold yellow"))
    doubtful = _list_doubtful_checks(f, common)
    f = _point_to_alerts(_leave_out_staleness(f, common))
    if f.alerts:
        out.print(panels.render_folded_alerts(f, MAX_ALERT_ROWS))
    for line in (*panels.render_unsent(f), *map(Text, _describe_looks(f))):
        out.print(line)
    jobs, disks = _choose_rows(f.trainings), _choose_rows(f.disks)
    done = any(a.at >= f.at - ACTIONS_DAY_S for a in f.actions)
    sections = [
        ("checks", panels.render_checks(doubtful, f, zone), bool(doubtful)),
        ("", panels.render_jobs(jobs, f), bool(f.jobs or f.queue)),
        ("", _render_strips(f), bool(f.runs)),
        ("", panels.render_disks(disks, f.at), bool(disks)),
        (
            "",
            panels.render_nodes(f, f.nodes[:MAX_ROWS]),
            f.nodes_seen is not None and bool(f.node_states or f.nodes_trouble),
        ),
        ("GPUs under suspicion", panels.render_gpus(f), bool(f.gpus)),
        (
            "done in the last 24 hours",
            panels.render_actions(f, zone, MAX_ACTION_ROWS),
            done,
        ),
    ]
    for title, what, there in sections:
        if there:
            out.print(*([Text(f"\n{title}", style="bold")] if title else []), what, sep="\n")
    if rest := len(f.trainings) + len(f.disks) - len(jobs) - len(disks):
        out.print(Text(f"and {rest} more of these: sentinel top", style="dim"))
    ok = [c.name for c in f.checks if c.status is Status.OK and c not in doubtful]
    if names := shortened(", ".join(map(visible, ok)), MAX_NAMES_CHARS):
        out.print(Text(f"{len(ok)} check{'s' * (len(ok) != 1)} ok: {names}", style="dim"))
    if f.last_pass_at is None and (why := status.read_first_failure(state.settings, f.at)):
        out.print(Text(why, style="bold yellow"), soft_wrap=True)
    out.print(Text.assemble(panels.render_watcher(f, zone), _describe_places(state.settings)))


def _describe_places(settings: Any) -> str:
    where = app.describe_config_source(settings), app.describe_state_location(settings)
    return "; configuration: {}; state in {}".format(*where)


def _render_strips(f: Any) -> Any:
    if not f.runs:
        return ""  # most states have no ledger: they start without the modules of strips
    from rich.console import Group

    from sentinel.cli.run_strips import render_run_strips

    return Group(*render_run_strips(f.runs[:MAX_RUN_ROWS], f.at))


def _choose_rows(rows: Sequence[Any]) -> list[Any]:
    """Rows with problems, and a few of the others."""
    bad = [row for row in rows if row.status is not Status.OK or row.stale][:MAX_ROWS]
    return [*bad, *[row for row in rows if row not in bad][:MAX_WELL_ROWS]]


def _find_common_staleness(f: Any) -> list[str]:
    """Reasons why several rows are not current, which are printed only once."""
    rows = [*f.alerts, *f.jobs, *f.disks, *f.checks]
    reasons = Counter(row.stale for row in rows if row.stale)
    return [reason for reason, count in reasons.items() if count > 1]


def _leave_out_staleness(f: Any, common: Sequence[str]) -> Any:
    """The facts without the reasons that are printed already."""
    kept = {
        name: tuple(replace(row, stale="") if row.stale in common else row for row in rows)
        for name, rows in (("alerts", f.alerts), ("jobs", f.jobs), ("disks", f.disks))
    }
    return replace(f, **kept)


def _point_to_alerts(f: Any) -> Any:
    """The facts, where a training refers to an alert above that says the same."""
    said = {(a.elsewhere, a.check, a.subject, _drop_age(a.summary)): a.id for a in f.alerts}
    rows = ((said.get((j.elsewhere, j.check, j.subject, _drop_age(j.summary))), j) for j in f.jobs)
    return replace(
        f, jobs=tuple(replace(j, summary=f"alert {found}") if found else j for found, j in rows)
    )


def _drop_age(summary: str) -> str:
    return re.sub(r"\bfor \d+\w+( \d+\w+)?", "for", summary)


def _list_doubtful_checks(f: Any, common: Sequence[str]) -> list[Any]:
    """Checks with a problem that no alert and no row shows already."""
    told = {a.check for a in f.alerts}
    return [
        c
        for c in f.checks
        if (c.stale or c.blind or c.status is not Status.OK)
        and c.stale not in common
        and c.name not in told
    ]
