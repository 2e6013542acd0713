"""`sentinel incidents [ID]`: what happened, whom it hurts, who has it; alerts of one cause together."""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sentinel.alerting.orders import Said, acknowledge, end, remark, silence_alerts
from sentinel.alerting.processor import iso
from sentinel.alerting.silences import Deed
from sentinel.cli import config_option, json_option, postmortem
from sentinel.cli.common import user
from sentinel.cli.state import State
from sentinel.core.clock import SECOND, Instant
from sentinel.core.text import shortened, visible
from sentinel.status import incidents, plot
from sentinel.status.incidents import Known, Story
from sentinel.wiring.app import BadCall

PAST = 10_000
"""Changes of alerts that are looked through for incidents that are over."""

DRAWN = 14 * 86_400
PLOTS: Mapping[str, plot.Unit] = {
    "used_percent": "percent",
    "free_bytes": "bytes",
    "progress": "number",
    "running": "number",
    "available": "number",
}
LINES = 12
"""Seconds of history that an export draws, of which numbers, and how many lines at most."""

USAGE = {
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
        "action, what is done to it: " + ", ".join(f"{d} {what}" for d, what in USAGE.items()),
    )
    config_option(parser)
    form = parser.add_mutually_exclusive_group()
    json_option(form)
    form.add_argument("--html", action="store_true", help="export one HTML file, with plots")
    text = "how long `silence` lasts, for example 2h"
    parser.add_argument("--for", dest="length", default="", metavar="TIME", help=text)
    parser.add_argument("--note", default="", metavar="TEXT", help="a note that others see")
    text = "the name that others see; default: yours"
    parser.add_argument("--who", default="", metavar="NAME", help=text)
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    """0. `ack` and `silence` take every alert of the incident that fires now, and none that joins
    later."""
    deed, words = _deed(args.words)
    with State(args.config, writing=deed not in ("", "export")) as state:
        known = known_of(state)
        if deed in DEEDS:
            print(DEEDS[deed](words, args, known, state))
            return 0
        if not words:
            rows = [incidents.row(i, members, known) for i, members in incidents.opened(known)]
            print(json.dumps(rows, indent=1)) if args.json else _list(rows)
            return 0
        story = incidents.story(_find(words[0], known), known)
        picture = _picture(story, state) if args.html else ""
    if args.json:
        print(json.dumps(story, indent=1))
    elif args.html:
        print("\n".join(postmortem.html(story, picture)))
    else:
        print("\n".join(postmortem.markdown(story) if deed == "export" else _lines(story)))
    return 0


def _deed(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    deed, rest = (words[0], words[1:]) if words and words[0] in USAGE else ("", words)
    least = 2 if deed in ("assign", "comment", "split", "close") else 1 if deed else 0
    if len(rest) < least or (deed in ("", "export") and len(rest) > 1):
        text = f"sentinel incidents {deed} {USAGE[deed]}" if deed else "sentinel incidents ID"
        raise BadCall(f"{text}: name one incident" if least < 2 else text)
    return deed, rest


def known_of(state: State) -> Known:
    """What the state says, for the stories of incidents."""
    return Known(
        alerts=state.store.alerts(),
        history=list(reversed(state.store.history(PAST))),
        orders=state.store.orders(),
        now=state.now,
        zone=state.zone,
    )


def _find(word: str, known: Known) -> str:
    """By its id or the beginning of it, or by the id of one of its alerts."""
    of = {a.id: a.incident or a.id for a in known.alerts}
    of |= {t.alert: t.incident or t.alert for t in known.history if t.alert not in of}
    fitting = {i for i in of.values() if i.startswith(word)} or {
        i for a, i in of.items() if a.startswith(word)
    }
    if len(fitting) != 1:
        several = f"{len(fitting)} incidents begin with" if fitting else "no incident has the id"
        raise BadCall(visible(f"{several} {word!r}; see: sentinel incidents"))
    return fitting.pop()


def _ack(words: Sequence[str], args: argparse.Namespace, known: Known, state: State) -> str:
    said = Said(args.who or user(), "cli", args.note)
    lines = []
    for incident in dict.fromkeys(_find(word, known) for word in words):
        members = _members(incident, known)
        for alert in members:
            state.store.acknowledge(acknowledge(known.alerts, alert.id, said, known.now))
        lines.append(
            f"{incident}: {visible(said.who)} has its {len(members)} alerts; what joins later is told"
        )
    return "\n".join(lines)


def _silence(words: Sequence[str], args: argparse.Namespace, known: Known, state: State) -> str:
    if not args.length:
        raise BadCall("a silence always ends: give --for 2h")
    names = dict.fromkeys(_find(word, known) for word in words)
    members = [alert for name in names for alert in _members(name, known)]
    said = Said(args.who or user(), "cli", args.note)
    order = silence_alerts(members, end(args.length, known.now), said, known.now)
    state.store.silence(order)
    until = iso(Instant(wall=order.ends), known.zone)
    return (
        f"{len(members)} alerts silenced until {until}, and none that joins later; end it with: "
        f"sentinel alerts unsilence {order.id}"
    )


def _split(words: Sequence[str], args: argparse.Namespace, known: Known, state: State) -> str:
    incident = _find(words[0], known)
    fitting = [a for a in _members(incident, known) if a.id.startswith(words[1])]
    if len(fitting) != 1 or fitting[0].id == incident:
        why = "is its cause" if fitting else "is not one of its alerts"
        raise BadCall(visible(f"{words[1]!r} {why}; see: sentinel incidents {incident}"))
    _remark(incident, "split", "", args, known, state, fitting[0].id)
    return f"{fitting[0].id}: no part of {incident} any more; it is told by itself"


def _say(deed: Deed, answer: str) -> "Call":
    def say(words: Sequence[str], args: argparse.Namespace, known: Known, state: State) -> str:
        incident, text = _find(words[0], known), " ".join(words[1:])
        _remark(incident, deed, text, args, known, state)
        fire = len(dict(incidents.opened(known)).get(incident, []))
        if deed == "close" and fire:
            _ack([incident], args, known, state)
            return f"{incident}: {answer}; its {fire} alerts are acknowledged until they end"
        return f"{incident}: {answer.format(visible(text))}"

    return say


def _remark(
    incident: str,
    deed: Deed,
    text: str,
    args: argparse.Namespace,
    known: Known,
    state: State,
    alert: str = "",
) -> None:
    said = Said(args.who or user(), "cli")
    state.store.remark(remark(incident, deed, said, known.now, text, alert))


Call = Callable[[Sequence[str], argparse.Namespace, Known, State], str]
DEEDS: dict[str, Call] = {
    "ack": _ack,
    "silence": _silence,
    "split": _split,
    "assign": _say("assign", "assigned to {}"),
    "comment": _say("comment", "noted"),
    "close": _say("close", "closed with its cause"),
}


def _members(incident: str, known: Known) -> list[Any]:
    members = dict(incidents.opened(known)).get(incident)
    if not members:
        raise BadCall(f"incident {incident} is over: there is nothing to acknowledge or silence")
    return members


def _picture(story: Story, state: State) -> str:
    """What was measured of its alerts' subjects, with what happened; empty where nothing was."""
    since, lines = state.now.wall - DRAWN * SECOND, list[plot.Line]()
    for member in story["members"]:
        for name, unit in PLOTS.items():
            rows = state.store.samples(member["check"], member["subject"], name, since)
            parts = plot.pieces([(at.wall / SECOND, value) for at, value in rows])
            title = f"{member['check']} {member['subject']}: {name.replace('_', ' ')}"
            if len(rows) > 1:
                lines.append(plot.Line(name=name, title=title, unit=unit, parts=parts))
    marks = [
        plot.Mark(
            at=datetime.fromisoformat(t["at"]).timestamp(),
            kind="alert",
            text=f"{t['about']}: {t['reason']}: {t['summary']}",
        )
        for t in story["timeline"]
    ]
    course = plot.Course(
        title=story["title"],
        first=min((p[0] for line in lines for p in line.points), default=0.0),
        now=state.now.wall / SECOND,
        zone=state.zone,
        lines=lines[:LINES],
        marks=marks,
    )
    return plot.svg(course) if lines else ""


def _list(rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        print("no incidents")
        return
    from rich.text import Text

    from sentinel.cli.tables import console, plain_table, status_cell
    from sentinel.core.model import Status

    table = plain_table("incident", "", "alerts", "for", "what")
    for row in rows:
        hurts = f" [{', '.join(row['trainings'][:3])}]" if row["trainings"] else ""
        have = f" ({row['acknowledged_by'][0]} has it)" if row["acknowledged_by"] else ""
        whose = f" (assigned to {row['assigned_to']})" if row["assigned_to"] else ""
        note = f" ({shortened(row['comment'], 80)})" if row["comment"] else ""
        table.add_row(
            row["incident"],
            status_cell(Status(row["severity"])),
            str(row["alerts"]),
            row["for"],
            Text(shortened(row["title"], 160) + hurts + have + whose + note),
        )
    console().print(table)


def _lines(story: Story) -> Iterator[str]:
    yield f"{story['severity']} {story['title']}"
    for name, value in postmortem.facts(story):
        yield f"  {name}: {value}"
    yield from (f"    {line}" for line in postmortem.earlier(story))
    if story["members"]:
        yield "alerts:"
    for m in story["members"]:
        yield f"  {m['alert']} {m['severity']} {m['check']} {m['subject']}: {m['summary']}"
        if m["held_back"]:
            yield f"    {m['held_back']}"
        yield from (f"    $ {command}" for command in m["commands"][:3])
    yield "what happened:"
    for t in story["timeline"]:
        degree = f" ({t['severity']})" if t["severity"] else ""
        yield f"  {t['at']}  {t['about']}: {t['reason']}{degree}: {t['summary']}"
