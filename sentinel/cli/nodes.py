"""`sentinel nodes list|drain|undrain|maintenance|breaker`: nodes by hand, through the guard.

`sentinel nodes probe NODES`: ask nodes themselves how they are, one round trip each.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from sentinel.cli import common, node_tables, node_tests
from sentinel.cli.common import by_hand, names, nodes_named, say_count, seconds, settings_of, verb
from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core.actions import ActionRecord, Outcome, Switch
from sentinel.core.cluster import Node
from sentinel.core.errors import SentinelError
from sentinel.core.model import ActionRequest
from sentinel.core.node_answers import described, word
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.nodes.probe import EVERYTHING, NodeProbe, Unread
from sentinel.wiring import actions, app
from sentinel.wiring.app import BadCall


def add(verbs: Any) -> None:
    """Add the parser below `nodes`."""
    parser = common.verb(verbs, "probe", "log in to nodes and ask what state they are in", call)
    parser.add_argument(
        "nodes", nargs="+", metavar="NODES", help="a host list such as node-[0-3],gpu08"
    )
    parser.add_argument("--gpus", action="store_true", help="run nvidia-smi -q -x there, too")


def call(args: argparse.Namespace) -> int:
    """0 when every node told all that was asked, else 1. A silent node is never a healthy one."""
    names = common.names(args.nodes)
    wants = EVERYTHING
    if args.gpus:
        wants = msgspec.structs.replace(wants, parts=(*wants.parts, "gpus"))
    common.say_count(names)
    remote, limit = actions.remote(common.settings_of(args))
    answers = remote.probe(names, wants, limit=limit)
    if args.json:
        print(json.dumps({n: _plain(answers[n]) for n in names}, indent=1))
    else:
        for name in names:
            print("\n".join(_lines(name, answers[name])))
    return int(not all(isinstance(a, NodeProbe) and not a.unread for a in answers.values()))


def _plain(answer: Any) -> Any:
    kind = "answered" if isinstance(answer, NodeProbe) else word(answer)
    return {"answer": kind, **msgspec.to_builtins(answer)}


def _lines(name: str, answer: Any) -> list[str]:
    if not isinstance(answer, NodeProbe):
        return [f"{name}: {described(answer)}"]
    facts = ", ".join(_facts(answer))
    return [
        f"{name}: {facts}",
        *([f"  warning: {answer.squatter}; another directory is used"] if answer.squatter else []),
        *(f"  {part}: not read ({u.kind}): {visible(u.why)}" for part, u in answer.unread.items()),
    ]


def _facts(probe: NodeProbe) -> list[str]:
    facts = []
    if not isinstance(probe.identity, Unread):
        facts.append(f"up {duration_text(probe.identity.uptime)}")
    counted: Mapping[str, Any] = {
        "processes": probe.processes,
        "in state D": probe.blocked,
        "mounts": probe.mounts,
        "GPU processes": probe.gpu_processes,
    }
    facts += [f"{len(v)} {what}" for what, v in counted.items() if isinstance(v, tuple)]
    if probe.steps and not isinstance(probe.steps, Unread):
        facts.append(f"{len({(p.job, p.step) for p in probe.steps.processes})} steps alive")
    return facts


NOPERM = 77
"""EX_NOPERM of sysexits(3)."""

_WISHED = (Outcome.DONE, Outcome.UNNEEDED)


class NoPrivilege(SentinelError):
    """Slurm would refuse it; nothing was changed."""

    exit_code = NOPERM


def register(commands: Any) -> None:
    """Add the parsers."""
    parser = commands.add_parser("nodes", help="list, ask, test, drain and undrain nodes")
    verbs = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    shown = verb(verbs, "list", "states of nodes, the reasons, and since when", call_list)
    shown.add_argument(
        "nodes",
        nargs="*",
        metavar="NODES",
        help="a host list such as node-[0-3],gpu08; default: all nodes",
    )
    shown.add_argument(
        "--history",
        metavar="NODE",
        help="every reason seen and all that was done; also of a directory that was cleaned",
    )
    for name, text in (
        ("drain", "drain nodes: no new job starts there"),
        ("undrain", "undrain nodes: jobs may start there again"),
    ):
        change = verb(verbs, name, text, call_change)
        change.set_defaults(action=name)
        change.add_argument(
            "nodes", nargs="+", metavar="NODES", help="a host list such as node-[0-3],gpu08"
        )
        change.add_argument(
            "--reason",
            default="",
            metavar="TEXT",
            required=name == "drain",
            help="the reason; it is kept in the audit log",
        )
        change.add_argument("--dry-run", action="store_true", help="say what would be done and why")
        change.add_argument(
            "--force",
            action="store_true",
            help="do it although a limit, the breaker or maintenance forbids it",
        )
    _add_switches(verbs)
    add(verbs)
    node_tests.add(verbs)


def call_list(args: argparse.Namespace) -> int:
    """0 when Slurm answered."""
    settings, clock = settings_of(args), SystemClock()
    if args.history:
        if not args.history.startswith("/") and len(names([args.history])) != 1:
            raise BadCall("--history: one node (or directory that was cleaned) at a time")
        if not (args.json or args.history.startswith("/")):
            _print_score(args, settings)
        log = actions.books(settings, dry_run=True)
        try:
            return node_tables.history(log, args.history, app.zone(settings), as_json=args.json)
        finally:
            log.close()
    nodes = actions.slurm(settings, clock).nodes()
    chosen = nodes_named(args.nodes, nodes) if args.nodes else nodes
    return node_tables.listing(chosen, clock.now(), as_json=args.json, each=bool(args.nodes))


def _print_score(args: argparse.Namespace, settings: Settings) -> None:
    """The node's line in the ledger of GPUs and nodes, where it has one."""
    try:
        from sentinel.cli import ledger
        from sentinel.core.gpu_ledger import NODE
        from sentinel.gpu.ledger_update import outages_text
    except ModuleNotFoundError:  # the room of GPUs is optional
        return
    with ledger.opened(args, settings=settings) as of:
        if entry := of.gpus.entry(NODE + args.history):
            print(visible(f"{args.history}: {outages_text(entry, of.now, of.gpus.policy)}"))


def call_change(args: argparse.Namespace) -> int:
    """0 when every node is as wished, 1 when one is not; 64 and 77 before anything was tried."""
    if args.action == "drain" and not args.reason.strip():
        raise BadCall("--reason: say why, for whoever finds the node drained")
    settings, clock = settings_of(args), SystemClock()
    snapshot = actions.slurm(settings, clock)
    nodes = snapshot.nodes()
    chosen = nodes_named(args.nodes, nodes)
    _require_privilege(settings, snapshot)
    say_count(node.name for node in chosen)
    log, records = actions.books(settings, dry_run=args.dry_run), list[ActionRecord]()
    try:
        if not args.dry_run:
            log.observe(nodes, snapshot.nodes_asked() or clock.now())
        actor = actions.actor(settings, snapshot, log, clock, dry_run=args.dry_run)
        for record in _changes(actor, args, chosen):
            records.append(record)
            _tell(record, args)
        if not args.dry_run:
            log.observe(_again(settings, snapshot, records), clock.now(), whole=False)
    finally:
        log.close()
    if args.json:
        print(json.dumps([node_tables.plain(r, dry_run=args.dry_run) for r in records], indent=1))
    wished = (*_WISHED, Outcome.INTENDED) if args.dry_run else _WISHED
    return int(any(r.outcome not in wished for r in records))


def call_switch(args: argparse.Namespace) -> int:
    """0 when thrown, or for `status` when nothing stops actions; 1 when something does."""
    settings, clock = settings_of(args), SystemClock()
    thrown = _thrown(args, clock) if args.verb == "on" else None
    log = actions.books(settings, dry_run=args.verb == "status")
    try:
        if args.verb != "status":
            log.switch(args.switch, thrown)
        past = log.past("")
    finally:
        log.close()
    return _show_switches(past.maintenance, past.breaker, settings, clock, args)


def _thrown(args: argparse.Namespace, clock: SystemClock) -> Switch:
    length = seconds(args.length, "--for") if args.length else None
    if length == 0:
        raise BadCall("--for: must be longer than 0s")
    why = args.reason or "no reason given"
    return Switch(since=clock.now(), seconds=length, why=why, by=by_hand())


def _changes(actor: Any, args: argparse.Namespace, nodes: Sequence[Node]) -> Iterator[ActionRecord]:
    """One after the other; a refusal for want of privilege ends it."""
    from sentinel.actions.executor import Asker
    from sentinel.actions.nodes import seen

    if not args.dry_run:
        actor.resolve([n.name for n in nodes])
    asker = Asker(name=by_hand(), consent=True, by_hand=True, forced=args.force)
    for node in nodes:
        request = ActionRequest(
            action=args.action, target=node.name, reason=args.reason, params=seen(node)
        )
        yield (record := actor.act(request, asker))
        if record.outcome is Outcome.ERROR and "Invalid user id" in record.detail:
            break


def _again(settings: Settings, snapshot: Any, records: Sequence[ActionRecord]) -> list[Node]:
    """The nodes as they are now, for the ledger; what cannot be read is left to a later look."""
    from sentinel.core.errors import CannotTell

    changing, found = actions.changing(settings, snapshot), []
    for record in records:
        if record.outcome.tried:
            try:
                found.append(changing.node(record.target))
            except CannotTell:
                continue
    return [node for node in found if node]


def _require_privilege(settings: Settings, snapshot: Any) -> None:
    from sentinel.slurm.privilege import REMEDY, privilege

    found = privilege(snapshot, settings.slurm.change_prefix)
    if found.may is False:
        raise NoPrivilege(visible(f"no right to change nodes: {found.why}; {REMEDY}"))


def _tell(record: ActionRecord, args: argparse.Namespace) -> None:
    """At once: of a thousand nodes the first is done minutes before the last."""
    if not args.json:
        print("\n".join(node_tables.told(record, dry_run=args.dry_run)), flush=True)


def _add_switches(verbs: Any) -> None:
    texts = {
        "maintenance": ("stop all actions of sentinel for a while", ("on", "off", "status")),
        "breaker": (
            "show or reset the breaker, which stops all actions after too many at once",
            ("close", "status"),
        ),
    }
    for name, (text, choices) in texts.items():
        switch = verb(verbs, name, text, call_switch)
        switch.set_defaults(switch=name)
        switch.add_argument("verb", choices=choices)
        if name == "maintenance":
            switch.add_argument("--for", dest="length", metavar="TIME", help="e.g. 2h; until `off`")
            switch.add_argument(
                "--reason",
                default="",
                metavar="TEXT",
                help="the reason; it is kept in the audit log",
            )


def _show_switches(
    maintenance: Switch | None,
    breaker: Switch | None,
    settings: Settings,
    clock: SystemClock,
    args: argparse.Namespace,
) -> int:
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
