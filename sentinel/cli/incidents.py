"""`sentinel incidents [ID]`: alerts of one cause together, who is affected, and who takes care of
them."""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sentinel.alerting.notifications import format_iso
from sentinel.alerting.orders import (
    Author,
    acknowledge_alert,
    make_remark,
    silence_alerts,
    silence_end,
)
from sentinel.alerting.silences import RemarkKind
from sentinel.cli import add_config_option, add_json_option, postmortem
from sentinel.cli.state import OpenState
from sentinel.core.clock import SECOND, Instant
from sentinel.core.model import Status
from sentinel.core.text import shortened, visible
from sentinel.core.values import age_text
from sentinel.homes import get_invoking_user
from sentinel.status import incidents, plot
from sentinel.status.incidents import IncidentInputs, Story
from sentinel.wiring.app import UsageError

MAX_TRANSITIONS = 10_000
"""Changes of alerts that are searched for incidents that are over."""

PLOT_HISTORY_S = 14 * 86_400
PLOT_UNITS: Mapping[str, plot.Unit] = {
    "used_percent": "percent",
    "free_bytes": "bytes",
    "progress": "number",
    "running": "number",
    "available": "number",
}
MAX_PLOT_LINES = 12
"""Seconds of history that an export draws, of which numbers, and how many lines at most."""

ACTION_USAGE = {
    "ack": "ID...",
    "silence": "ID... --for TIME",
    "assign": "ID NAME",
    "comment": "ID TEXT",
    "split": "ID ALERT",
    "close": "ID CAUSE",
    "export": "ID",
}


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser(
        "incidents", help="alerts that have one cause, shown together, and who takes care of them"
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="[ACTION] ID",
        help="without words: the incidents that are open. With an ID: the story of that one. With an "
        "action, what is done to it: "
        + ", ".join(f"{d} {what}" for d, what in ACTION_USAGE.items()),
    )
    add_config_option(parser)
    form = parser.add_mutually_exclusive_group()
    add_json_option(form)
    form.add_argument("--html", action="store_true", help="export one HTML file, with plots")
    text = "how long `silence` lasts, for example 2h"
    parser.add_argument("--for", dest="length", default="", metavar="TIME", help=text)
    parser.add_argument("--note", default="", metavar="TEXT", help="a note that others see")
    text = "the name that others see; default: yours"
    parser.add_argument("--who", default="", metavar="NAME", help=text)
    parser.set_defaults(call=call_incidents)


def call_incidents(args: argparse.Namespace) -> int:
    """List, show, export or answer incidents. Returns 0. `ack` and `silence` apply to every alert
    of the incident that fires now, and to none that joins later."""
    deed, words = _parse_action(args.words)
    _refuse_options(deed, words, args)
    with OpenState(args.config, writing=deed not in ("", "export")) as state:
        known = load_incident_facts(state)
        if deed in INCIDENT_ACTIONS:
            print(INCIDENT_ACTIONS[deed](words, args, known, state))
            return 0
        if not words:
            rows = [
                incidents.make_incident_row(i, members, known)
                for i, members in incidents.group_open_incidents(known)
            ]
            print(json.dumps(rows, indent=1)) if args.json else _print_incident_table(rows)
            return 0
        story = incidents.describe_incident(_find_incident(words[0], known), known)
        picture = _draw_story_plot(story, state) if args.html else ""
    if args.json:
        print(json.dumps(story, indent=1))
    elif args.html:
        print("\n".join(postmortem.render_story_html(story, picture)))
    else:
        print(
            "\n".join(
                postmortem.render_story_markdown(story)
                if deed == "export"
                else _render_story_lines(story, known, state)
            )
        )
    return 0


def _parse_action(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    deed, rest = (words[0], words[1:]) if words and words[0] in ACTION_USAGE else ("", words)
    least = 2 if deed in ("assign", "comment", "split", "close") else 1 if deed else 0
    if len(rest) < least or (deed in ("", "export") and len(rest) > 1):
        text = (
            f"sentinel incidents {deed} {ACTION_USAGE[deed]}" if deed else "sentinel incidents ID"
        )
        raise UsageError(f"{text}: name one incident" if least < 2 else text)
    return deed, rest


def _refuse_options(deed: str, words: Sequence[str], args: argparse.Namespace) -> None:
    """Refuse options that this action would ignore."""
    used = {
        "": {"json", "html"} if words else {"json"},
        "export": {"json", "html"},
        "ack": {"who", "note"},
        "silence": {"who", "note", "length"},
    }.get(deed, {"who"})
    names = {"json": "json", "html": "html", "length": "for", "note": "note", "who": "who"}
    for name, option in names.items():
        if getattr(args, name) and name not in used:
            what = f"sentinel incidents {deed}" if deed else "showing incidents"
            one = " without an ID" if name == "html" and not deed else ""
            raise UsageError(f"--{option} changes nothing with {what}{one}; leave it out")


def load_incident_facts(state: OpenState) -> IncidentInputs:
    """The contents of the state that stories of incidents need."""
    return IncidentInputs(
        alerts=state.store.read_alerts(),
        history=list(reversed(state.store.read_transitions(MAX_TRANSITIONS))),
        orders=state.store.read_orders(),
        now=state.now,
        zone=state.zone,
    )


def _find_incident(word: str, known: IncidentInputs) -> str:
    """The incident with this id or beginning of an id, or with an alert of this id. Raises
    UsageError."""
    of = {a.id: a.incident or a.id for a in known.alerts}
    of |= {t.alert: t.incident or t.alert for t in known.history if t.alert not in of}
    fitting = {i for i in of.values() if i.startswith(word)} or {
        i for a, i in of.items() if a.startswith(word)
    }
    if len(fitting) != 1:
        several = f"{len(fitting)} incidents begin with" if fitting else "no incident has the id"
        is_cut = not fitting and len(known.history) >= MAX_TRANSITIONS
        among = f" (of the newest {MAX_TRANSITIONS} changes of alerts)" if is_cut else ""
        raise UsageError(visible(f"{several} {word!r}{among}; see: sentinel incidents"))
    return fitting.pop()


def _acknowledge_incidents(
    words: Sequence[str], args: argparse.Namespace, known: IncidentInputs, state: OpenState
) -> str:
    said = Author(args.who or get_invoking_user(), "cli", args.note)
    lines = []
    for incident in dict.fromkeys(_find_incident(word, known) for word in words):
        members = _get_firing_members(incident, known)
        for alert in members:
            state.store.put_ack(acknowledge_alert(known.alerts, alert.id, said, known.now))
        lines.append(
            f"{incident}: {visible(said.who)} has its {len(members)} alerts; what joins later is told"
        )
    return "\n".join(lines)


def _silence_incidents(
    words: Sequence[str], args: argparse.Namespace, known: IncidentInputs, state: OpenState
) -> str:
    if not args.length:
        raise UsageError("a silence always ends: give --for 2h")
    names = dict.fromkeys(_find_incident(word, known) for word in words)
    members = [alert for name in names for alert in _get_firing_members(name, known)]
    said = Author(args.who or get_invoking_user(), "cli", args.note)
    order = silence_alerts(members, silence_end(args.length, known.now), said, known.now)
    state.store.put_silence(order)
    until = format_iso(Instant(wall=order.ends), known.zone)
    return (
        f"{len(members)} alerts silenced until {until}, and none that joins later; end it with: "
        f"{state.name_config(f'sentinel alerts unsilence {order.id}')}"
    )


def _split_off_alert(
    words: Sequence[str], args: argparse.Namespace, known: IncidentInputs, state: OpenState
) -> str:
    incident = _find_incident(words[0], known)
    fitting = [a for a in _get_firing_members(incident, known) if a.id.startswith(words[1])]
    if len(fitting) != 1 or fitting[0].id == incident:
        why = "is its cause" if fitting else "is not one of its alerts"
        see = state.name_config(f"sentinel incidents {incident}")
        raise UsageError(visible(f"{words[1]!r} {why}; see: {see}"))
    _store_remark(incident, "split", "", args, known, state, fitting[0].id)
    return f"{fitting[0].id}: taken out of {incident}; it has messages of its own now"


def _make_remark_action(deed: RemarkKind, answer: str) -> "IncidentAction":
    def write_remark(
        words: Sequence[str], args: argparse.Namespace, known: IncidentInputs, state: OpenState
    ) -> str:
        incident, text = _find_incident(words[0], known), " ".join(words[1:])
        _store_remark(incident, deed, text, args, known, state)
        fire = len(dict(incidents.group_open_incidents(known)).get(incident, []))
        if deed == "close" and fire:
            _acknowledge_incidents([incident], args, known, state)
            return f"{incident}: {answer}; its {fire} alerts are acknowledged until they end"
        return f"{incident}: {answer.format(visible(text))}"

    return write_remark


def _store_remark(
    incident: str,
    deed: RemarkKind,
    text: str,
    args: argparse.Namespace,
    known: IncidentInputs,
    state: OpenState,
    alert: str = "",
) -> None:
    said = Author(args.who or get_invoking_user(), "cli")
    state.store.put_remark(make_remark(incident, deed, said, known.now, text, alert))


IncidentAction = Callable[[Sequence[str], argparse.Namespace, IncidentInputs, OpenState], str]
INCIDENT_ACTIONS: dict[str, IncidentAction] = {
    "ack": _acknowledge_incidents,
    "silence": _silence_incidents,
    "split": _split_off_alert,
    "assign": _make_remark_action("assign", "assigned to {}"),
    "comment": _make_remark_action("comment", "noted"),
    "close": _make_remark_action("close", "closed with its cause"),
}


def _get_firing_members(incident: str, known: IncidentInputs) -> list[Any]:
    members = dict(incidents.group_open_incidents(known)).get(incident)
    if not members:
        raise UsageError(f"incident {incident} is over: there is nothing to acknowledge or silence")
    return members


def _draw_story_plot(story: Story, state: OpenState) -> str:
    """An SVG of the values of its alerts' subjects, with the events; empty if there are no
    values."""
    since, lines = state.now.wall - PLOT_HISTORY_S * SECOND, list[plot.ChartLine]()
    for member in story["members"]:
        for name, unit in PLOT_UNITS.items():
            rows = state.store.read_samples(member["check"], member["subject"], name, since)
            parts = plot.split_points([(at.wall / SECOND, value) for at, value in rows])
            title = f"{member['check']} {member['subject']}: {name.replace('_', ' ')}"
            if len(rows) > 1:
                lines.append(plot.ChartLine(name=name, title=title, unit=unit, parts=parts))
    marks = [
        plot.ChartMark(
            at=datetime.fromisoformat(t["at"]).timestamp(),
            kind="alert",
            text=f"{t['about']}: {t['reason']}: {t['summary']}",
        )
        for t in story["timeline"]
    ]
    course = plot.Chart(
        title=story["title"],
        first=min((p[0] for line in lines for p in line.all_points), default=0.0),
        now=state.now.wall / SECOND,
        zone=state.zone,
        lines=lines[:MAX_PLOT_LINES],
        marks=marks,
    )
    return plot.render_svg(course) if lines else ""


def _print_incident_table(rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        print("no incidents")
        return
    from sentinel.cli.tables import Text, make_console, make_plain_table, render_status

    table = make_plain_table("incident", "", "alerts", "for", "what")
    for row in rows:
        hurts = f" (stands still: {', '.join(row['trainings'][:3])})" if row["trainings"] else ""
        have = f" ({row['acknowledged_by'][0]} has it)" if row["acknowledged_by"] else ""
        whose = f" (assigned to {row['assigned_to']})" if row["assigned_to"] else ""
        note = f" ({shortened(row['comment'], 80)})" if row["comment"] else ""
        table.add_row(
            row["incident"],
            render_status(Status(row["severity"])),
            str(row["alerts"]),
            age_text(row["for_s"]),
            Text(shortened(row["title"], 160) + hurts + have + whose + note),
        )
    make_console().print(table)


def _render_story_lines(story: Story, known: IncidentInputs, state: OpenState) -> Iterator[str]:
    yield f"{story['severity']} {story['title']}"
    for name, value in postmortem.list_story_facts(story):
        yield f"  {name}: {value}"
    yield from (f"    {line}" for line in postmortem.describe_earlier_incidents(story))
    from sentinel.cli.placed_commands import place_commands  # the list needs it not

    alerts = {alert.id: alert for alert in known.alerts}
    if story["members"]:
        yield "alerts:"
    for m in story["members"]:
        yield f"  {m['alert']} {m['severity']} {m['check']} {m['subject']}: {m['summary']}"
        if m["held_back"]:
            yield f"    {m['held_back']}"
        shown = place_commands(alerts[m["alert"]], "$ ", 3, named=state.name_config)
        yield from (f"    {line}" for line in shown)
    yield "what happened:"
    for t in story["timeline"]:
        degree = f" ({t['severity']})" if t["severity"] else ""
        yield f"  {t['at']}  {t['about']}: {t['reason']}{degree}: {t['summary']}"
