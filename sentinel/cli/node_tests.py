"""`sentinel nodes test` and `sentinel nodes exclude`: try nodes as jobs, and leave out the bad."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sentinel.cli.common import (
    add_action_parser,
    describe_operator,
    load_command_settings,
    parse_seconds,
    print_node_count,
    select_nodes,
)
from sentinel.clock import SystemClock
from sentinel.core.cluster import Node
from sentinel.core.text import visible
from sentinel.nodes.test_results import TESTS
from sentinel.wiring import actions
from sentinel.wiring.app import UsageError

DEFAULT_TESTS = ("network", "fs")
GPU_TESTS = ("cuda", "gpu-memory")
"""Usual too, where Slurm has GPUs on the nodes."""


def register_node_tests(verbs: Any) -> None:
    """Add both parsers below `nodes`."""
    _register_test(verbs)
    _register_exclude(verbs)


def _register_test(verbs: Any) -> None:
    test = add_action_parser(
        verbs, "test", "run a short test job on each node, or on pairs of nodes", call_nodes_test
    )
    test.add_argument(
        "nodes",
        nargs="*",
        metavar="NODES",
        help="a host list such as node-[0-3]; default: all idle nodes",
    )
    names = ", ".join(TESTS)
    test.add_argument("--test", action="append", metavar="NAME", help=f"{names}; may be repeated")
    test.add_argument(
        "--command",
        nargs=argparse.REMAINDER,
        help="all that follows is your own test; exit code 0 means good",
    )
    test.add_argument(
        "--path",
        default=".",
        metavar="DIR",
        help="where the test `fs` writes; default: this directory",
    )
    for option in ("partition", "account", "qos", "reservation"):
        test.add_argument(f"--{option}", metavar="NAME", help="for the jobs, as srun takes it")
    test.add_argument(
        "--time",
        type=int,
        default=5,
        metavar="MIN",
        help="time limit of the test jobs in minutes; default 5",
    )
    test.add_argument(
        "--wait",
        default="60s",
        metavar="TIME",
        help="how long to wait for a busy node; default 60s",
    )


def _register_exclude(verbs: Any) -> None:
    out = add_action_parser(
        verbs,
        "exclude",
        "print the nodes to avoid, ready for sbatch --exclude=…",
        call_nodes_exclude,
    )
    out.add_argument(
        "nodes", nargs="*", metavar="NODES", help="look at these nodes only; default: all"
    )
    out.add_argument(
        "--within", default="7d", metavar="TIME", help="how far back absences count; default 7d"
    )
    out.add_argument(
        "--absences",
        type=int,
        default=3,
        metavar="N",
        help="leave out nodes with at least so many absences; default 3",
    )


def call_nodes_test(args: argparse.Namespace) -> int:
    """0 when every node passed every test; 1 when one did not, or could not be tested."""
    from sentinel.nodes import node_tests

    wanted, settings = _parse_test_names(args), load_command_settings(args)
    chosen = _choose_test_nodes(args.nodes, actions.connect_slurm(settings, SystemClock()).nodes())
    print_node_count(node.name for node in chosen)
    tests = wanted or [*(GPU_TESTS if any(n.gres for n in chosen) else ()), *DEFAULT_TESTS]
    told: dict[str, list[Any]] = {}
    for test in tests:
        plan = _build_test_plan(args, test, chosen, settings)
        told[test] = node_tests.run(plan, [node.name for node in chosen])
        _record_verdicts(settings, test, told[test])
        if not args.json:
            _print_verdicts(test, told[test])
    if args.json:
        print(json.dumps(_build_verdict_rows(told), indent=1))
    return int(any(v.word != "pass" for found in told.values() for v in found))


def call_nodes_exclude(args: argparse.Namespace) -> int:
    """0; the host list goes to stdout (empty: none), the reasons to stderr."""
    from sentinel.core import hostlist

    settings, clock = load_command_settings(args), SystemClock()
    nodes = actions.connect_slurm(settings, clock).nodes()
    chosen = select_nodes(args.nodes, nodes) if args.nodes else nodes
    log = actions.open_audit_log(settings, dry_run=True)
    try:
        bad = {
            n.name: why for n in chosen if (why := _list_exclude_reasons(n, log, clock.now(), args))
        }
    finally:
        log.close()
    value = hostlist.fold_for_people(bad)
    if args.json:
        print(json.dumps({"exclude": value, "nodes": bad}, indent=1))
        return 0
    if bad:
        print_node_count(bad)
    for name, why in bad.items():
        print(visible(f"{name}: {'; '.join(why)}"), file=sys.stderr)
    print(value)
    return 0


def _list_exclude_reasons(node: Node, log: Any, now: Any, args: argparse.Namespace) -> list[str]:
    from sentinel.nodes import test_results

    within = parse_seconds(args.within, "--within")
    tests = test_results.failed_tests(log.records(node.name, 1000), now, within)
    absences = test_results.absences(log.readings(node.name, 1000), now, within, args.absences)
    return [why for why in (test_results.unusable(node), *tests, absences) if why]


def _parse_test_names(args: argparse.Namespace) -> Sequence[str]:
    """Those that were asked for; none: the usual ones."""
    if args.command is not None and not args.command:
        raise UsageError("--command needs the words of your command behind it")
    wanted = args.test or (["command"] if args.command else [])
    for name in wanted:
        if name not in TESTS:
            raise UsageError(f"there is no test {visible(name)!r}; there are: {', '.join(TESTS)}")
    if ("command" in wanted) != bool(args.command):
        raise UsageError("the test `command` and --command belong together")
    return list(dict.fromkeys(wanted))


def _choose_test_nodes(words: Sequence[str], nodes: Sequence[Node]) -> Sequence[Node]:
    from sentinel.nodes.history import is_out

    if words:
        return select_nodes(words, nodes)
    idle = [node for node in nodes if node.state == "IDLE" and not is_out(node)]
    if not idle:
        raise UsageError("no node is idle; name the nodes that are to be waited for (--wait)")
    return idle


def _build_test_plan(
    args: argparse.Namespace, test: str, nodes: Sequence[Node], settings: Any
) -> Any:
    from sentinel.nodes.node_tests import Plan
    from sentinel.nodes.settings import words
    from sentinel.slurm.gres import count_gres_gpus

    given = {name: getattr(args, name) for name in ("partition", "account", "qos", "reservation")}
    options = [f"--{name}={value}" for name, value in given.items() if value]
    if args.time < 1:
        raise UsageError("--time: must be 1 minute or more")
    return Plan(
        test=test,
        path=os.path.abspath(args.path),
        command=tuple(args.command or ()),
        minutes=args.time,
        wait=max(1, round(parse_seconds(args.wait, "--wait"))),
        fanout=settings.remote.fanout,
        options=(*words(settings.remote.srun_options, "srun_options"), *options),
        gpus={node.name: count_gres_gpus(node.gres) or 0 for node in nodes},
        addresses={node.name: node.address for node in nodes if node.address},
    )


def _record_verdicts(settings: Any, test: str, found: Sequence[Any]) -> None:
    """Into the audit log; decided already, so that it stops nothing else."""
    from sentinel.core.actions import GuardDecision
    from sentinel.nodes.test_results import record

    log, now = actions.open_audit_log(settings), SystemClock().now()
    try:
        for verdict in found:
            decision = GuardDecision(
                record=record(verdict, test, describe_operator(), os.urandom(6).hex(), now)
            )
            log.record_intent(verdict.node, partial(_return_decision, decision))
    finally:
        log.close()


def _return_decision(decision: Any, _past: Any) -> Any:
    return decision


def _print_verdicts(test: str, found: Sequence[Any]) -> None:
    """Nodes that said the same share a line."""
    from sentinel.core import hostlist

    groups: dict[tuple[str, str], list[str]] = {}
    for verdict in found:
        groups.setdefault((verdict.word, verdict.text), []).append(verdict.node)
    for (word, text), names in sorted(groups.items(), key=lambda item: item[0][0] == "pass"):
        print(f"{test}: {word.upper():8} {hostlist.fold_for_people(names)}: {text}")


def _build_verdict_rows(told: Mapping[str, Sequence[Any]]) -> Any:
    import msgspec

    return {test: [msgspec.to_builtins(v) for v in found] for test, found in told.items()}
