"""`sentinel alerts list|history|show` and `sentinel explain`."""

import argparse
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import to_builtins

from sentinel.alerting.notifications import describe_alert, describe_hold, format_iso
from sentinel.alerting.silences import Ack, Silence
from sentinel.cli import orders
from sentinel.cli.common import add_action_parser
from sentinel.cli.plain_rows import format_check_subject, is_piped, print_rows, shorten_gpu
from sentinel.cli.state import OpenState, select_named_alerts
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.guidance import Guidance
from sentinel.core.hostlist import fold_hostlist
from sentinel.core.model import Alert, Death, Status, Transition
from sentinel.core.text import shortened, visible, visible_lines
from sentinel.core.values import age_text
from sentinel.status.silences import describe_match
from sentinel.wiring import app

MIN_TABLE_COLUMNS = 100
"""On a narrower terminal each summary of the history has lines of its own: as a column it would have
twenty characters."""


def register(commands: Any) -> None:
    """Add the parsers."""
    parser = commands.add_parser(
        "alerts", help="list alerts, see what was sent before, acknowledge and silence"
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add_action_parser(actions, "list", "all alerts that fire or wait to fire", call_alerts_list)
    history = add_action_parser(
        actions, "history", "what was sent, the newest first", call_alerts_history
    )
    history.add_argument(
        "-n",
        "--limit",
        type=_parse_line_count,
        default=50,
        metavar="N",
        help="show at most N lines; default 50",
    )
    add_action_parser(
        actions, "silences", "the silences that are in force or will be", call_silences
    )
    add_action_parser(
        actions, "show", "one alert with all that is known of it", call_explain
    ).add_argument("alert", nargs="+", metavar="ALERT")
    orders.register_orders(actions)
    explain = add_action_parser(
        commands,
        "explain",
        "why an alert fired and who was told, or why a check is silent",
        call_explain,
    )
    explain.add_argument(
        "alert",
        nargs="+",
        metavar="ALERT|CHECK",
        help="the alert's id or name, also with its check (disks /scratch), or the name of a check",
    )


def call_alerts_list(args: argparse.Namespace) -> int:
    """Print pending and firing alerts."""
    with OpenState(args.config) as state:
        rows = _build_alert_rows(state)
        silences = [_describe_silence(s, state) for s in state.list_silences()]
    none = "no alerts"
    if not rows and app.has_state(state.settings):
        where = f"no alerts in the state {visible(app.describe_state_location(state.settings))}"
        if args.json or is_piped():
            print(f"sentinel: {where}", file=sys.stderr)
        else:
            none = where
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    print(*silences, sep="\n", end="\n" if silences else "")
    _print_alert_table(rows) if rows else print(none)
    return 0


def call_silences(args: argparse.Namespace) -> int:
    """Print the silences that people gave by hand, and those in the file."""
    with OpenState(args.config) as state:
        found = state.list_silences()
        lines = [_describe_silence(s, state) for s in found]
        rows = [
            {
                "silence": s.id,
                "until": format_iso(Instant(wall=s.ends), state.zone),
                "by": visible(s.who),
                "match": visible(describe_match(s.match)),
                "reason": visible(s.reason),
            }
            for s in found
        ]
    print(json.dumps(rows, indent=1) if args.json else "\n".join(lines) or "no silences")
    return 0


def call_alerts_history(args: argparse.Namespace) -> int:
    """Print changes of alerts, the newest first."""
    with OpenState(args.config) as state:
        rows = [_build_transition_row(t, state) for t in state.store.read_transitions(args.limit)]
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    _print_transitions(rows) if rows else print("no message was sent yet")
    return 0


def call_explain(args: argparse.Namespace) -> int:
    """Print one alert with its history and deliveries. It is named by its id, which may be
    shortened, a message's key, or its name. For a check without such an alert, print why it is
    silent."""
    name = " ".join(args.alert)
    with OpenState(args.config) as state:
        check = next((c for c in state.settings.checks if c.name == name), None)
        if check is not None and len(select_named_alerts(state.list_current_alerts(), name)) != 1:
            from sentinel.cli import explain

            return explain.explain_check(check, state, as_json=args.json)
        alert = state.resolve_alert_id(name)
        from sentinel.cli.incidents import load_incident_facts
        from sentinel.status.incidents import build_timeline

        known = load_incident_facts(state)
        past = [t for t in known.history if t.alert == alert]
        mine = {
            alert,
            *(a.incident for a in known.alerts if a.id == alert),
            *(t.incident for t in past),
        }
        remarks = [r for r in known.orders.remarks if r.incident in mine or r.alert == alert]
        facts = {
            "alert": alert,
            "incident": next((i for i in mine if i and i != alert), ""),
            "now": next((a for a in _build_alert_rows(state) if a["id"] == alert), None),
            "transitions": [_build_transition_row(t, state) for t in past],
            "timeline": build_timeline(past, remarks, known),
            "deliveries": [
                _build_delivery_row(*d, state) for d in state.store.read_deliveries(alert)
            ],
        }
        open_one = next((a for a in known.alerts if a.id == alert), None)
    at = datetime.fromtimestamp(state.now.wall / SECOND, state.zone)
    if args.json:
        print(json.dumps(facts, indent=1))
    else:
        from sentinel.cli.placed_commands import place_commands  # lists need it not

        commands, acts = (
            place_commands(open_one, acts=acting, named=state.name_config) if open_one else ()
            for acting in (False, True)
        )
        _print_alert_story(facts, at, commands, acts, state)
    return 0


def _parse_line_count(text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,6}", text):
        raise argparse.ArgumentTypeError(f"{visible(text)!r} is no number of lines")
    return int(text)


def _build_alert_rows(state: OpenState) -> list[dict[str, Any]]:
    """Rows of pending and firing alerts."""
    acks = state.store.read_orders().acks
    return [
        _build_alert_row(a, acks.get(a.id), state) for a in state.store.read_alerts() if a.is_bad
    ]


def _build_alert_row(alert: Alert, ack: Ack | None, state: OpenState) -> dict[str, Any]:
    return {
        "id": alert.id,
        "cluster": alert.key.cluster,
        "check": alert.key.check,
        "kind": alert.kind,
        "subject": visible(alert.key.subject),
        "labels": {visible(name): visible(value) for name, value in alert.labels.items()},
        "status": alert.status.value,
        "state": "firing" if alert.firing else "pending",
        "since": format_iso(alert.shown_since, state.zone),
        "for_s": int(get_elapsed_s(alert.shown_since, state.now)),
        "summary": describe_alert(alert, state.now),
        "details": visible_lines(alert.details),
        "guidance": {k: visible(v) for k, v in to_builtins(alert.guidance).items()},
        "commands": [visible(c) for c in alert.commands],
        "acts": [visible(c) for c in alert.acts],
        "deaths": [_build_death_row(one, state) for one in alert.deaths],
        "told": {name: format_iso(told.at, state.zone) for name, told in alert.told.items()},
        "acknowledged_by": ack.who if ack else None,
        "ack_note": ack.note if ack else "",
        "held_back": describe_hold(alert.on_hold, state.zone),
        "flapping": alert.flapping,
        "owner_muted": alert.owner_muted,
        "clear_since": format_iso(alert.clear_since, state.zone) if alert.clear_since else None,
        "runs": alert.runs,
    }


def _build_death_row(death: Death, state: OpenState) -> dict[str, Any]:
    return {
        "job": visible(death.job),
        "end": visible(death.end),
        "exit": death.exit,
        "ended": _format_end(death, state),
        "told": format_iso(death.told, state.zone) if death.told else None,
        "submitted_by": visible(death.line),
        "last_lines": visible_lines(death.last_lines),
    }


def _format_end(death: Death, state: OpenState) -> str | None:
    if death.ended is None:
        return None
    return format_iso(Instant(wall=death.ended * SECOND), state.zone)


def _describe_silence(silence: Silence, state: OpenState) -> str:
    ends = format_iso(Instant(wall=silence.ends), state.zone)
    few = "" if silence.alerts is None else f"{len(silence.alerts)} alerts of then"
    nodes = "" if silence.nodes is None else f"node={fold_hostlist(silence.nodes)}"
    parts = (describe_match(silence.match), nodes, few)
    what = " ".join(filter(None, parts)) or "everything"
    words = f"silence {silence.id} until {ends} by {silence.who}: {what} {silence.reason}"
    return visible(words).rstrip()


def _build_transition_row(t: Transition, state: OpenState) -> dict[str, Any]:
    return {
        "at": format_iso(t.at, state.zone),
        "reason": t.reason,
        "status": t.status.value,
        "severity": t.severity.value,
        "alert": t.alert,
        "key": t.id,
        "check": t.key.check,
        "subject": visible(t.key.subject),
        "summary": visible(t.summary),
    }


def _build_delivery_row(row: Any, sent: Any, receipt: str, state: OpenState) -> dict[str, Any]:
    return {
        "channel": row.channel,
        "reason": row.notification.reason,
        "committed": format_iso(row.created, state.zone),
        "sent": format_iso(sent, state.zone) if sent else None,
        "attempts": row.attempts,
        "answer": visible(receipt or row.error),
    }


def _print_alert_story(
    facts: dict[str, Any],
    at: datetime,
    commands: Sequence[str],
    acts: Sequence[str],
    state: OpenState,
) -> None:
    now = facts["now"]
    if now:
        subject = "" if now["subject"] in ("", now["check"]) else f" {now['subject']}"
        age = age_text(now["for_s"])
        when = f"last death {age} ago" if len(now["deaths"]) > 1 else f"for {age}"
        print(f"{now['state']} {now['status']}: {now['check']}{subject} {when}")
        _print_wrapped(now["summary"])
        _print_mute_reasons(now)
        for line in now["details"].splitlines():
            print(f"  | {line}")
        _print_deaths(now["deaths"])
        for line in Guidance(**now["guidance"]).list_lines():
            _print_wrapped(line)
        if commands:
            print("look closer:", *(f"  {c}" for c in commands), sep="\n")
        if acts:
            print("to act on it:", *(f"  {c}" for c in acts), sep="\n")
    else:
        last = facts["transitions"][-1:]
        names = dict.fromkeys(n for t in last for n in (t["check"], t["subject"]) if n)
        what = f" ({' '.join(names)})" if names else ""
        print(f"alert {facts['alert']}{what} is over")
    if facts["incident"]:
        every = state.name_config(f"sentinel incidents {facts['incident']}")
        print(f"part of an incident; all of it: {every}")
    from sentinel.cli.time_line import render_time_line  # lists of alerts do not need it

    for line in render_time_line(facts, at):
        _print_wrapped(line, indent="", hanging=" " * 6)


def _print_deaths(deaths: list[dict[str, Any]]) -> None:
    """Print how each job ended, the newest last. One death alone stands in the summary."""
    for death in deaths if len(deaths) > 1 else ():
        code = f" with exit code {death['exit']}" if death["exit"] else ""
        ended = f", ended {death['ended'][:19].replace('T', ' ')}" if death["ended"] else ""
        told = "" if death["told"] else ", not told yet"
        by = f": {death['submitted_by']}" if death["submitted_by"] else ""
        _print_wrapped(f"job {death['job']} {death['end'] or 'gone'}{code}{ended}{told}{by}")
        for line in death["last_lines"].splitlines():
            print(f"    | {line}")


def _print_wrapped(sentences: str, indent: str = "  ", hanging: str = "") -> None:
    """Print sentences with an indent; on a terminal no word of them is cut at its edge. `hanging`:
    the further indent of all lines but the first."""
    width = max(20, shutil.get_terminal_size().columns - len(indent))
    lines = [sentences]
    if not is_piped():
        lines = textwrap.wrap(sentences, width, break_on_hyphens=False, subsequent_indent=hanging)
    for line in lines:
        print(f"{indent}{line}")


def _print_mute_reasons(now: dict[str, Any]) -> None:
    if now["acknowledged_by"]:
        print(f"  acknowledged by {visible(now['acknowledged_by'])}: no repeats, no escalation")
    if now["ack_note"]:
        print(f"  note: {visible(now['ack_note'])}")
    if now["held_back"]:
        print(f"  not told just now: {visible(now['held_back'])}")
    if now["owner_muted"]:
        print("  its owner is not told of it here: a wish in the job's comment says so")
    if now["flapping"]:
        print("  flapping: changes are counted, not told, until it settles")


def _print_alert_table(rows: list[dict[str, Any]]) -> None:
    header = ("alert", "", "check", "for", "summary")
    cells = [
        (
            a["id"],
            a["status"] if a["state"] == "firing" else "pending",
            format_check_subject(a["check"], a["subject"]),
            age_text(a["for_s"]),
            _describe_acknowledger(a) + a["summary"],
        )
        for a in rows
    ]
    if is_piped():
        print_rows(header, cells)
        return
    from sentinel.cli.tables import Text, make_console, make_plain_table, render_status

    table = make_plain_table(*header)
    for a, (name, state, _, long, summary) in zip(rows, cells, strict=True):
        what = format_check_subject(a["check"], shorten_gpu(a["subject"], a["labels"]))
        firing = a["state"] == "firing"
        coloured = render_status(Status(a["status"])) if firing else Text(state)
        table.add_row(name, coloured, Text(what), long, Text(summary))
    make_console().print(table)


def _describe_acknowledger(a: dict[str, Any]) -> str:
    """Who has acknowledged the alert, to print before the summary."""
    note = f": {shortened(visible(a['ack_note']), 60)}" if a["ack_note"] else ""
    return f"[{visible(a['acknowledged_by'])} has it{note}] " if a["acknowledged_by"] else ""


def _print_transitions(rows: list[dict[str, Any]]) -> None:
    header = ("at", "reason", "alert", "check", "summary")
    cells = [
        (
            t["at"][:19].replace("T", " "),
            t["reason"],
            t["alert"],
            format_check_subject(t["check"], t["subject"]),
            t["summary"],
        )
        for t in rows
    ]
    if is_piped():
        print_rows(header, cells)
        return
    from sentinel.cli.tables import Text, make_console, make_plain_table

    out = make_console()
    if out.width < MIN_TABLE_COLUMNS:
        for *row, summary in cells:
            out.print(Text("  ".join(row), "bold"))
            _print_wrapped(summary)
        return
    table = make_plain_table(*header)
    for at, reason, alert, what, summary in cells:
        table.add_row(at, reason, alert, Text(what), Text(summary))
    out.print(table)
