"""`sentinel nodes list|drain|undrain|maintenance|breaker`: changes nodes by hand, through the
guard.

`sentinel nodes probe NODES`: asks nodes about their state, in one round trip each."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from sentinel.actions.action_rules import ActionRequester
from sentinel.actions.cluster_view import make_cluster_view
from sentinel.actions.guard import explain_breaker_trip
from sentinel.cli import common, node_tables, node_tests
from sentinel.cli.common import (
    add_action_parser,
    describe_operator,
    expand_node_names,
    load_command_settings,
    parse_seconds,
    print_node_count,
    select_nodes,
)
from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core.actions import (
    ActionHistory,
    ActionOutcome,
    ActionRecord,
    ActionSwitch,
    Situation,
)
from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.gpu_ledger import NODE_PREFIX
from sentinel.core.model import ActionRequest
from sentinel.core.node_answers import describe_unreached, get_answer_word
from sentinel.core.ports import AuditLog
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.nodes.probe import ALL_PARTS_REQUEST, NodeProbe, Unread
from sentinel.slurm.node_states import reason_params
from sentinel.slurm.privilege import REMEDY, find_privilege
from sentinel.wiring import actions, app, one_shot
from sentinel.wiring.app import UsageError
from sentinel.wiring.audit_log import open_audit_log


def register_probe(verbs: Any) -> None:
    """Add the parser below `nodes`."""
    parser = common.add_action_parser(
        verbs, "probe", "log in to nodes and ask what state they are in", call_nodes_probe
    )
    parser.add_argument(
        "nodes", nargs="+", metavar="NODES", help="a host list such as node-[0-3],gpu08"
    )
    parser.add_argument("--gpus", action="store_true", help="run nvidia-smi -q -x there, too")


def call_nodes_probe(args: argparse.Namespace) -> int:
    """Probe nodes. Returns 0 if every node answered every question, else 1. A silent node never
    counts as healthy."""
    names = common.expand_node_names(args.nodes)
    wants = ALL_PARTS_REQUEST
    if args.gpus:
        wants = msgspec.structs.replace(wants, parts=(*wants.parts, "gpus"))
    common.print_node_count(names)
    remote, limit = actions.connect_remote(common.load_command_settings(args))
    answers = remote.probe(names, wants, limit=limit)
    if args.json:
        print(json.dumps({n: _build_probe_document(answers[n]) for n in names}, indent=1))
    else:
        for name in names:
            print("\n".join(_render_probe_lines(name, answers[name])))
    return int(not all(isinstance(a, NodeProbe) and not a.unread_parts for a in answers.values()))


def _build_probe_document(answer: Any) -> Any:
    kind = "answered" if isinstance(answer, NodeProbe) else get_answer_word(answer)
    return {"answer": kind, **msgspec.to_builtins(answer)}


def _render_probe_lines(name: str, answer: Any) -> list[str]:
    if not isinstance(answer, NodeProbe):
        return [f"{name}: {describe_unreached(answer)}"]
    facts = ", ".join(_describe_probe(answer))
    return [
        f"{name}: {facts}",
        *([f"  warning: {answer.squatter}; another directory is used"] if answer.squatter else []),
        *(
            f"  {part}: not read ({u.kind_words}): {visible(u.why)}"
            for part, u in answer.unread_parts.items()
        ),
    ]


def _describe_probe(probe: NodeProbe) -> list[str]:
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


EXIT_NO_PERMISSION = 77
"""EX_NOPERM of sysexits(3)."""

_SUCCESS_OUTCOMES = (ActionOutcome.DONE, ActionOutcome.UNNEEDED)


class NoPrivilege(SentinelError):
    """Slurm would refuse the change, so nothing was changed."""

    exit_code = EXIT_NO_PERMISSION


def register(commands: Any) -> None:
    """Add the parsers."""
    parser = commands.add_parser("nodes", help="list, ask, test, drain and undrain nodes")
    verbs = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    shown = add_action_parser(
        verbs, "list", "states of nodes, the reasons, and since when", call_nodes_list
    )
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
        change = add_action_parser(verbs, name, text, call_nodes_change)
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
    _register_switches(verbs)
    register_probe(verbs)
    node_tests.register_node_tests(verbs)


def call_nodes_list(args: argparse.Namespace) -> int:
    """Print nodes. Returns 0 if Slurm answered."""
    settings, clock = load_command_settings(args), SystemClock()
    if args.history:
        if not args.history.startswith("/") and len(expand_node_names([args.history])) != 1:
            raise UsageError("--history: one node (or directory that was cleaned) at a time")
        if not (args.json or args.history.startswith("/")):
            _print_score(args, settings)
        log = open_audit_log(settings, dry_run=True)
        try:
            return node_tables.print_node_history(
                log, args.history, app.get_time_zone(settings), as_json=args.json
            )
        finally:
            log.close()
    nodes = actions.connect_slurm(settings, clock).nodes()
    chosen = select_nodes(args.nodes, nodes) if args.nodes else nodes
    return node_tables.print_node_table(
        chosen, clock.now(), as_json=args.json, each=bool(args.nodes)
    )


def _print_score(args: argparse.Namespace, settings: Settings) -> None:
    """Print the node's line in the ledger of GPUs and nodes, if it has one."""
    try:
        from sentinel.cli import gpu_ledger
        from sentinel.gpu.ledger_update import outages_text
    except ModuleNotFoundError:  # sentinel may be installed without the package gpu
        return
    with gpu_ledger.open_ledger(args, settings=settings) as of:
        if entry := of.gpus.read_entry(NODE_PREFIX + args.history):
            print(visible(f"{args.history}: {outages_text(entry, of.now, of.gpus.policy)}"))


def call_nodes_change(args: argparse.Namespace) -> int:
    """Change nodes. Returns 0 if every node is as requested, 1 if one is not; 64 and 77 before
    anything was tried."""
    if args.action == "drain" and not args.reason.strip():
        raise UsageError("--reason: say why, for whoever finds the node drained")
    settings, clock = load_command_settings(args), SystemClock()
    snapshot = actions.connect_slurm(settings, clock)
    nodes = snapshot.nodes()
    chosen = select_nodes(args.nodes, nodes)
    _require_privilege(settings, snapshot)
    print_node_count(node.name for node in chosen)
    log, records = open_audit_log(settings, dry_run=args.dry_run), list[ActionRecord]()
    try:
        if not args.dry_run:
            log.record_readings(nodes, snapshot.nodes_asked() or clock.now())
        actor = actions.make_actor(settings, snapshot, log, clock, dry_run=args.dry_run)
        for record in _apply_changes(actor, args, chosen):
            records.append(record)
            _print_action_result(record, args)
        if not args.dry_run:
            log.record_readings(
                _read_changed_nodes(settings, snapshot, records), clock.now(), whole=False
            )
        proofs = _run_drained_check(args, settings, log) if args.dry_run else {}
    finally:
        log.close()
    if args.json:
        rows = [node_tables.build_action_row(r, dry_run=args.dry_run) for r in records]
        print(json.dumps([{**row, **proofs.get(row["node"], {})} for row in rows], indent=1))
    else:
        for name, proof in proofs.items():
            print(f"{name}: the check {proof['check']} says: {proof['proof']}")
    wished = (*_SUCCESS_OUTCOMES, ActionOutcome.INTENDED) if args.dry_run else _SUCCESS_OUTCOMES
    return int(any(r.outcome not in wished for r in records))


def call_switch(args: argparse.Namespace) -> int:
    """Set a switch. Returns 0 if it is set; for `status` 0 if nothing stops actions, else 1."""
    settings, clock = load_command_settings(args), SystemClock()
    thrown = _build_switch(args, clock) if args.verb == "on" else None
    log = open_audit_log(settings, dry_run=args.verb == "status")
    try:
        if args.verb != "status":
            log.set_switch(args.switch, thrown)
        past = log.read_past_actions("")
    finally:
        log.close()
    breaker = past.breaker
    if args.switch == "breaker" and not (breaker and breaker.get_seconds_left(clock.now())):
        breaker = _find_breaker_trip(settings, past, clock)
    return _print_switches(past.maintenance, breaker, settings, clock, args)


def _find_breaker_trip(
    settings: Settings, past: ActionHistory, clock: SystemClock
) -> ActionSwitch | None:
    """The breaker, if it would open at the next action; it is stored only then."""
    if not app.has_slurm() and not settings.slurm.command_prefix:
        return None
    hands = actions.make_slurm_hands(settings, actions.connect_slurm(settings, clock))
    scene, now = make_cluster_view(hands), clock.now()
    situation = Situation(
        enabled=True, nodes=len(scene.by_name), unwell=scene.unwell, breaker=settings.guard.breaker
    )
    why = explain_breaker_trip(situation, past, now)
    cooldown = float(settings.guard.breaker.cooldown)
    return ActionSwitch(since=now, seconds=cooldown, why=why) if why else None


def _build_switch(args: argparse.Namespace, clock: SystemClock) -> ActionSwitch:
    length = parse_seconds(args.length, "--for") if args.length else None
    if length == 0:
        raise UsageError("--for: must be longer than 0s")
    why = args.reason or "no reason given"
    return ActionSwitch(since=clock.now(), seconds=length, why=why, by=describe_operator())


def _apply_changes(
    actor: Any, args: argparse.Namespace, nodes: Sequence[Node]
) -> Iterator[ActionRecord]:
    """Change one node after the other; a refusal for lack of privilege ends this."""
    if not args.dry_run:
        actor.resolve_open_records([n.name for n in nodes])
    asker = ActionRequester(name=describe_operator(), consent=True, by_hand=True, forced=args.force)
    for node in nodes:
        request = ActionRequest(
            action=args.action, target=node.name, reason=args.reason, params=reason_params(node)
        )
        yield (record := actor.execute_request(request, asker))
        if record.outcome is ActionOutcome.ERROR and "Invalid user id" in record.detail:
            break


def _run_drained_check(
    args: argparse.Namespace, settings: Settings, log: AuditLog
) -> dict[str, dict[str, str]]:
    """The result of the check of drained nodes for each node, so that a person who undrains a node
    knows what is not proven. The configured check is used, else the kind with its defaults."""
    if args.action != "undrain":
        return {}
    mine = [c for c in settings.checks if c.common.kind == "drained" and not c.common.cluster]
    check = mine[0] if mine else one_shot.make_one_shot_check("drained", {})
    outcome, wanted = (
        one_shot.run_check_once(check, settings, log),
        {*expand_node_names(args.nodes)},
    )
    return {
        f.subject: {
            "check": check.name,
            "status": f.status.value,
            "proof": visible(f.summary),
        }
        for f in outcome.findings
        if f.subject in wanted
    }


def _read_changed_nodes(
    settings: Settings, snapshot: Any, records: Sequence[ActionRecord]
) -> list[Node]:
    """The nodes as they are now, for the ledger; those that cannot be read are left to a later
    look."""
    changing, found = actions.make_slurm_hands(settings, snapshot), []
    for record in records:
        if record.outcome.is_attempted:
            try:
                found.append(changing.node(record.target))
            except CannotTell:
                continue
    return [node for node in found if node]


def _require_privilege(settings: Settings, snapshot: Any) -> None:
    found = find_privilege(snapshot, settings.slurm.change_prefix)
    if found.may is False:
        raise NoPrivilege(visible(f"no right to change nodes: {found.why}; {REMEDY}"))


def _print_action_result(record: ActionRecord, args: argparse.Namespace) -> None:
    """Print a result at once: of a thousand nodes the first is done minutes before the last."""
    if not args.json:
        print("\n".join(node_tables.render_action_result(record, dry_run=args.dry_run)), flush=True)


def _register_switches(verbs: Any) -> None:
    texts = {
        "maintenance": ("stop all actions of sentinel for a while", ("on", "off", "status")),
        "breaker": (
            "show or reset the breaker, which stops all actions after too many at once",
            ("close", "status"),
        ),
    }
    for name, (text, choices) in texts.items():
        switch = add_action_parser(verbs, name, text, call_switch)
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


def _print_switches(
    maintenance: ActionSwitch | None,
    breaker: ActionSwitch | None,
    settings: Settings,
    clock: SystemClock,
    args: argparse.Namespace,
) -> int:
    standing = ActionSwitch(
        since=clock.now(), seconds=None, why="the configuration", by=settings.path
    )
    found = {
        "maintenance": standing if settings.guard.maintenance else maintenance,
        "breaker": breaker,
    }
    active = {k: s for k, s in found.items() if s and s.get_seconds_left(clock.now())}
    if args.json:
        print(json.dumps(node_tables.build_switch_rows(active, clock.now()), indent=1))
    else:
        print("\n".join(node_tables.render_switch_lines(active, clock.now())))
    return int(bool(active)) if args.verb == "status" else 0
