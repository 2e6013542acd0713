"""`sentinel nodes list|drain|undrain|maintenance|breaker`: nodes by hand, through the guard."""

import argparse
import json
import os
from collections.abc import Sequence
from typing import Any

from sentinel import app, hands
from sentinel.cli import USAGE
from sentinel.clock import SystemClock
from sentinel.core import nodeset
from sentinel.core.actions import ActionRecord, Outcome, Switch
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.model import ActionRequest
from sentinel.core.settings import Settings
from sentinel.core.slurm import Node
from sentinel.core.text import visible
from sentinel.core.values import Duration

NOPERM = 77
"""EX_NOPERM of sysexits(3)."""

_WISHED = (Outcome.DONE, Outcome.UNNEEDED)


class BadNodes(SentinelError):
    """NODES are none that Slurm knows, or the call makes no sense; nothing was changed."""

    exit_code = USAGE


class NoPrivilege(SentinelError):
    """Slurm would refuse it; nothing was changed."""

    exit_code = NOPERM


def register(commands: Any) -> None:
    """Add the parsers."""
    parser = commands.add_parser("nodes", help="nodes: what they are like, drain and undrain")
    verbs = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    shown = _add(verbs, "list", "states, reasons, and since when", call_list)
    shown.add_argument("nodes", nargs="*", metavar="NODES", help="like node-[0-3],gpu08; all")
    shown.add_argument("--history", metavar="NODE", help="every reason seen and all that was done")
    for name, text in (("drain", "no further jobs there"), ("undrain", "jobs may run there again")):
        change = _add(verbs, name, text, call_change)
        change.set_defaults(action=name)
        change.add_argument("nodes", nargs="+", metavar="NODES", help="like node-[0-3],gpu08")
        change.add_argument("--reason", default="", metavar="TEXT", required=name == "drain")
        change.add_argument("--dry-run", action="store_true", help="say what would be done and why")
        change.add_argument("--force", action="store_true", help="caps and switches do not count")
    _add_switches(verbs)
    from sentinel.cli import node_tests, probe

    probe.add(verbs)
    node_tests.add(verbs)


def call_list(args: argparse.Namespace) -> int:
    """0 when Slurm answered."""
    from sentinel.cli import node_tables

    settings, clock = settings_of(args), SystemClock()
    if args.history:
        log = hands.books(settings, dry_run=True)
        try:
            return node_tables.history(log, args.history, app.zone(settings), as_json=args.json)
        finally:
            log.close()
    nodes = hands.slurm(settings, clock).nodes()
    chosen = nodes_named(args.nodes, nodes) if args.nodes else nodes
    return node_tables.listing(chosen, clock.now(), as_json=args.json, each=bool(args.nodes))


def call_change(args: argparse.Namespace) -> int:
    """0 when every node is as wished, 1 when one is not; 64 and 77 before anything was tried."""
    settings, clock = settings_of(args), SystemClock()
    snapshot = hands.slurm(settings, clock)
    nodes = snapshot.nodes()
    chosen = nodes_named(args.nodes, nodes)
    _require_privilege(settings, snapshot)
    log = hands.books(settings, dry_run=args.dry_run)
    try:
        if not args.dry_run:
            log.observe(nodes, clock.now())
        actor = hands.actor(settings, snapshot, log, clock, dry_run=args.dry_run)
        records = _change(actor, args, chosen)
        if not args.dry_run:
            log.observe(_again(settings, snapshot, records), clock.now(), whole=False)
    finally:
        log.close()
    _report(records, args)
    wished = (*_WISHED, Outcome.INTENDED) if args.dry_run else _WISHED
    return int(any(r.outcome not in wished for r in records))


def call_switch(args: argparse.Namespace) -> int:
    """0 when thrown, or for `status` when nothing stops actions; 1 when something does."""
    settings, clock = settings_of(args), SystemClock()
    log = hands.books(settings)
    try:
        if args.verb == "on":
            seconds = _seconds(args.length)
            why = args.reason or "no reason given"
            log.switch(args.switch, Switch(since=clock.now(), seconds=seconds, why=why, by=me()))
        elif args.verb != "status":
            log.switch(args.switch, None)
        past = log.past("")
    finally:
        log.close()
    return _show_switches(past.maintenance, past.breaker, settings, clock, args)


def _change(actor: Any, args: argparse.Namespace, nodes: Sequence[Node]) -> list[ActionRecord]:
    """One after the other; a refusal for want of privilege ends it."""
    from sentinel.actions.nodes import seen
    from sentinel.engine.acting import Asker

    if not args.dry_run:
        actor.resolve([n.name for n in nodes])
    asker = Asker(name=me(), consent=True, by_hand=True, forced=args.force)
    records = []
    for node in nodes:
        request = ActionRequest(
            action=args.action, target=node.name, reason=args.reason, params=seen(node)
        )
        records.append(actor.act(request, asker))
        if records[-1].outcome is Outcome.ERROR and "Invalid user id" in records[-1].detail:
            break
    return records


def _again(settings: Settings, snapshot: Any, records: Sequence[ActionRecord]) -> list[Node]:
    """The nodes as they are now, for the ledger; what cannot be read is left to a later look."""
    from sentinel.core.errors import CannotTell

    changing, found = hands.changing(settings, snapshot), []
    for record in records:
        if record.outcome.tried:
            try:
                found.append(changing.node(record.target))
            except CannotTell:
                continue
    return [node for node in found if node]


def nodes_named(words: Sequence[str], nodes: Sequence[Node]) -> list[Node]:
    """The nodes of these host lists; BadNodes for what is none, or not known to Slurm."""
    known = {node.name: node for node in nodes}
    try:
        names = nodeset.expand(",".join(words))
    except Invalid as error:
        raise BadNodes(str(error)) from error
    unknown = [name for name in names if name not in known]
    if unknown:
        what = f"no node {unknown[0]}" if len(unknown) == 1 else f"no nodes {nodeset.fold(unknown)}"
        raise BadNodes(f"Slurm knows {what} (see: sentinel nodes list)")
    return [known[name] for name in names]


def _require_privilege(settings: Settings, snapshot: Any) -> None:
    from sentinel.slurm.privilege import REMEDY, privilege

    found = privilege(snapshot, settings.slurm.change_prefix)
    if found.may is False:
        raise NoPrivilege(visible(f"no right to change nodes: {found.why}; {REMEDY}"))


def _report(records: Sequence[ActionRecord], args: argparse.Namespace) -> None:
    from sentinel.cli import node_tables

    if args.json:
        print(json.dumps([node_tables.plain(r, dry_run=args.dry_run) for r in records], indent=1))
        return
    for record in records:
        print("\n".join(node_tables.told(record, dry_run=args.dry_run)))


def _add_switches(verbs: Any) -> None:
    texts = {
        "maintenance": ("stop all actions of sentinel for a while", ("on", "off", "status")),
        "breaker": ("what stopped all actions by itself", ("close", "status")),
    }
    for name, (text, choices) in texts.items():
        switch = _add(verbs, name, text, call_switch)
        switch.set_defaults(switch=name)
        switch.add_argument("verb", choices=choices)
        if name == "maintenance":
            switch.add_argument("--for", dest="length", metavar="TIME", help="e.g. 2h; until `off`")
            switch.add_argument("--reason", default="", metavar="TEXT")


def _show_switches(
    maintenance: Switch | None,
    breaker: Switch | None,
    settings: Settings,
    clock: SystemClock,
    args: argparse.Namespace,
) -> int:
    from sentinel.cli import node_tables

    standing = Switch(since=clock.now(), seconds=None, why="the configuration", by=settings.path)
    found = {
        "maintenance": standing if settings.guard.maintenance else maintenance,
        "breaker": breaker,
    }
    active = {k: s for k, s in found.items() if s and s.left(clock.now())}
    if args.json:
        print(json.dumps(node_tables.switches(active, clock.now()), indent=1))
    else:
        print("\n".join(node_tables.switch_lines(active, clock.now())))
    return int(bool(active)) if args.verb == "status" else 0


def _seconds(length: str | None) -> float | None:
    try:
        return float(Duration.parse(length)) if length else None
    except Invalid as error:
        raise BadNodes(f"--for: {error}") from error


def me() -> str:
    """Who typed it, root's sudo seen through."""
    from getpass import getuser

    try:
        name = os.environ.get("SUDO_USER") or getuser()
    except (KeyError, OSError):
        name = f"uid {os.getuid()}"
    return visible(f"{name}@{os.uname().nodename} by hand")


def settings_of(args: argparse.Namespace) -> Settings:
    """The configuration that applies, or the built-in one."""
    return app.find_settings(args.config) or app.embedded()


def _add(verbs: Any, name: str, text: str, function: Any) -> Any:
    parser = verbs.add_parser(name, help=text)
    parser.add_argument("-c", "--config", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="one JSON document and nothing else")
    parser.set_defaults(call=function)
    return parser
