"""`sentinel incidents [ID]`: what happened, whom it hurts, who has it; alerts of one cause together."""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sentinel.alerting.incidents import stands_still, weight
from sentinel.alerting.orders import Said, acknowledge
from sentinel.alerting.processor import iso
from sentinel.cli.common import user
from sentinel.cli.state import State
from sentinel.core.clock import elapsed
from sentinel.core.model import Alert, Transition, worst
from sentinel.core.text import shortened, visible, visible_lines
from sentinel.core.values import duration_text
from sentinel.wiring.app import BadCall

PAST = 10_000
"""Changes of alerts that are looked through for incidents that are over."""


def register(commands: Any) -> None:
    """Add the parser."""
    parser = commands.add_parser("incidents", help="alerts of one cause together; who has them")
    parser.add_argument(
        "words", nargs="*", metavar="[ack|export] ID", help="one of them, whole: its story"
    )
    parser.add_argument("-c", "--config", metavar="FILE", help="go by this configuration")
    parser.add_argument("--json", action="store_true", help="one JSON document and nothing else")
    parser.add_argument("--note", default="", metavar="TEXT", help="of ack: shown wherever it is")
    parser.add_argument("--who", default="", metavar="NAME", help="of ack: default: you")
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    """0. `ack` takes every alert of the incident that fires now, and none that joins later."""
    deed, name = _words(args.words)
    with State(args.config, writing=deed == "ack") as state:
        if not name:
            rows = [_row(i, members, state) for i, members in _open(state)]
            print(json.dumps(rows, indent=1)) if args.json else _list(rows)
            return 0
        incident = _find(name, state)
        if deed == "ack":
            return _acknowledge(incident, args, state)
        story = _story(incident, state)
    if args.json:
        print(json.dumps(story, indent=1))
    else:
        print("\n".join(_markdown(story) if deed == "export" else _lines(story)))
    return 0


def _words(words: Sequence[str]) -> tuple[str, str]:
    deed, name = (words[0], words[1:]) if words and words[0] in ("ack", "export") else ("", words)
    if len(name) > 1 or (deed and not name):
        raise BadCall(f"sentinel incidents {deed or ''} ID: name one incident".replace("  ", " "))
    return deed, name[0] if name else ""


def _open(state: State) -> list[tuple[str, list[Alert]]]:
    """Each with its alerts, the cause first; the most important first."""
    found: dict[str, list[Alert]] = {}
    for alert in state.store.alerts():
        if alert.firing and not alert.over:
            found.setdefault(alert.incident or alert.id, []).append(alert)
    for incident, members in found.items():
        members.sort(key=lambda a: (a.id != incident, weight(a, state.now), a.key))
    return sorted(found.items(), key=lambda i: min(weight(a, state.now) for a in i[1]))


def _find(word: str, state: State) -> str:
    """By its id or the beginning of it, or by the id of one of its alerts."""
    known = {a.id: a.incident or a.id for a in state.store.alerts()}
    known |= {t.alert: t.incident or t.alert for t in state.store.history(PAST)}
    fitting = {i for i in known.values() if i.startswith(word)} or {
        i for a, i in known.items() if a.startswith(word)
    }
    if len(fitting) != 1:
        several = f"{len(fitting)} incidents begin with" if fitting else "no incident has the id"
        raise BadCall(visible(f"{several} {word!r}; see: sentinel incidents"))
    return fitting.pop()


def _row(incident: str, members: Sequence[Alert], state: State) -> dict[str, Any]:
    cause, acks = members[0], state.store.orders().acks
    trainings = [a for a in members if stands_still(a.kind, a.key.subject, a.severity)]
    users = dict.fromkeys(a.labels["user"] for a in members if a.labels.get("user"))
    have = dict.fromkeys(acks[a.id].said for a in members if a.id in acks)
    return {
        "incident": incident,
        "severity": worst(a.severity for a in members).value,
        "title": visible(f"{_named(cause)}: {cause.summary}"),
        "since": iso(min((a.since for a in members), key=lambda at: at.wall), state.zone),
        "for": duration_text(max(elapsed(a.since, state.now) for a in members)),
        "alerts": len(members),
        "trainings": [visible(a.key.subject) for a in trainings],
        "users": [visible(u) for u in users],
        "acknowledged_by": [visible(h) for h in have],
    }


def _story(incident: str, state: State) -> dict[str, Any]:
    members = dict(_open(state)).get(incident, [])
    past = [t for t in reversed(state.store.history(PAST)) if (t.incident or t.alert) == incident]
    row = _row(incident, members, state) if members else _over(incident, past, state)
    return {
        **row,
        "members": [
            {
                "alert": a.id,
                "check": a.key.check,
                "subject": visible(a.key.subject),
                "severity": a.severity.value,
                "summary": visible(a.summary),
                "details": visible_lines(a.details),
                "commands": [visible(c) for c in a.commands],
                "told": sorted(a.told),
                "held_back": visible(a.held),
            }
            for a in members
        ],
        "timeline": [
            {
                "at": iso(t.at, state.zone),
                "reason": t.reason,
                "severity": t.severity.value,
                "about": visible(f"{t.key.check} {t.key.subject}".strip()),
                "summary": visible(t.summary),
            }
            for t in past
        ],
    }


def _over(incident: str, past: Sequence[Transition], state: State) -> dict[str, Any]:
    first = next((t for t in past if t.alert == incident), past[0])
    return {
        "incident": incident,
        "severity": worst(t.severity for t in past).value,
        "title": visible(f"{_named(first)}: {first.summary}"),
        "since": iso(first.since, state.zone),
        "for": duration_text(elapsed(first.since, past[-1].at)),
        "alerts": 0,
        "trainings": [],
        "users": [],
        "acknowledged_by": [],
    }


def _named(of: Alert | Transition) -> str:
    return f"{of.key.check} {of.key.subject}".strip()


def _acknowledge(incident: str, args: argparse.Namespace, state: State) -> int:
    members = dict(_open(state)).get(incident)
    if not members:
        raise BadCall(f"incident {incident} is over: there is nothing to acknowledge")
    said = Said(args.who or user(), "cli", args.note)
    for alert in members:
        state.store.acknowledge(acknowledge(state.store.alerts(), alert.id, said, state.now))
    print(f"{incident}: {said.who} has its {len(members)} alerts; what joins later is told")
    return 0


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
        table.add_row(
            row["incident"],
            status_cell(Status(row["severity"])),
            str(row["alerts"]),
            row["for"],
            Text(shortened(row["title"], 160) + hurts + have),
        )
    console().print(table)


def _facts(story: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "since", f"{story['since']} ({story['for']})"
    yield "state", f"{story['alerts']} alerts fire" if story["alerts"] else "over"
    for name in ("trainings", "users", "acknowledged_by"):
        if story[name]:
            yield name.replace("_", " "), ", ".join(story[name])


def _lines(story: dict[str, Any]) -> Iterator[str]:
    yield f"{story['severity']} {story['title']}"
    for name, value in _facts(story):
        yield f"  {name}: {value}"
    if story["members"]:
        yield "alerts:"
    for m in story["members"]:
        yield f"  {m['alert']} {m['severity']} {m['check']} {m['subject']}: {m['summary']}"
        if m["held_back"]:
            yield f"    {m['held_back']}"
        yield from (f"    $ {command}" for command in m["commands"][:3])
    yield "what happened:"
    for t in story["timeline"]:
        yield f"  {t['at']}  {t['about']}: {t['reason']} ({t['severity']}): {t['summary']}"


def _markdown(story: dict[str, Any]) -> Iterator[str]:
    """A post-mortem to go on writing in."""
    yield f"# {_plain(story['title'])}\n"
    yield from (f"- {name}: {_plain(value)}" for name, value in _facts(story))
    yield "\n## What happened\n"
    yield "| when | what | | |\n|---|---|---|---|"
    for t in story["timeline"]:
        yield f"| {t['at']} | {_plain(t['about'])} | {t['reason']} | {_plain(t['summary'])} |"
    yield from _evidence(story["members"])
    yield "\n## Cause\n\n## What we do about it\n"


def _evidence(members: Iterable[dict[str, Any]]) -> Iterator[str]:
    for m in members:
        if m["details"]:
            yield f"\n### {_plain(m['check'])} {_plain(m['subject'])}\n"
            yield from (f"    {line}" for line in m["details"].splitlines())


def _plain(text: str) -> str:
    """Text of jobs and logs stays text in a table of Markdown."""
    return "".join("\\" + c if c in "\\`*_{}[]<>|#" else c for c in text.replace("\n", " "))
