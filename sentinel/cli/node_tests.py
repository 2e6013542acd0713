"""`sentinel nodes test` and `sentinel nodes exclude`: tests nodes by jobs, and lists bad nodes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from sentinel.cli.common import (
    add_action_parser,
    describe_operator,
    load_command_settings,
    parse_seconds,
    print_node_count,
    select_nodes,
)
from sentinel.clock import SystemClock
from sentinel.core import hostlist
from sentinel.core.actions import GuardDecision
from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.text import visible
from sentinel.nodes import node_tests, test_results
from sentinel.nodes.history import is_out
from sentinel.nodes.node_tests import Plan
from sentinel.nodes.settings import words
from sentinel.nodes.test_results import FAULTY, MEASURED, TESTS, record
from sentinel.slurm.gres import count_gres_gpus
from sentinel.wiring import actions
from sentinel.wiring.app import UsageError
from sentinel.wiring.audit_log import open_audit_log

if TYPE_CHECKING:
    from sentinel.nodes.own_job import OwnJob

DEFAULT_TESTS = ("network", "fs")
GPU_TESTS = ("cuda", "gpu-memory")
"""Further default tests, if Slurm has GPUs on the nodes."""

PEER_OPTIONS = ("at_least", "share", "pairs", "fresh")

PART_OF_NODE = (
    "your job has not all processors of its nodes: what runs beside it may make them slow"
)


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
        metavar="DIR",
        help="where `fs` and `disk` write; default: this directory, for `disk` the node's /tmp",
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
        metavar="TIME",
        help="how long to wait for a busy node; default 60s",
    )

    test.add_argument(
        "--here",
        action="store_true",
        help="in your own job: test its nodes and print --exclude= with those to leave out",
    )
    _add_peer_options(test)


def _add_peer_options(test: Any) -> None:
    """Options of the tests that measure."""
    test.add_argument(
        "--at-least",
        action="append",
        metavar="[MODEL:]NAME=NUMBER",
        help="what a node of this Gres or feature has to reach: h100:all_reduce=400",
    )
    test.add_argument(
        "--share",
        metavar="SHARE",
        help="so much of a partition is measured at once, one node at least; default 10%%",
    )
    test.add_argument(
        "--pairs",
        type=int,
        metavar="N",
        help="so many pairs test `ib` at once while jobs run; default 1",
    )
    test.add_argument(
        "--fresh",
        metavar="TIME",
        help="a node that was measured within this time is left out, unless named; default 12h",
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
    """Test nodes. Returns 0 if every node passed every test; 1 if one did not, or could not be
    tested. With --here 1 if nodes are to be left out, else 0."""
    own, wanted = _find_own_job(args), _parse_test_names(args)
    wanted = wanted or (own.list_tests() if own else [])
    options, settings = _parse_peer_options(args, wanted), load_command_settings(args)
    nodes = actions.connect_slurm(settings, SystemClock()).nodes()
    chosen = _choose_test_nodes(own.nodes if own else args.nodes, nodes)
    print_node_count(node.name for node in chosen)
    if own and any(own.cpus < node.cpus for node in chosen):
        print(PART_OF_NODE, file=sys.stderr)
    tests = wanted or [*(GPU_TESTS if any(n.gres for n in chosen) else ()), *DEFAULT_TESTS]
    told: dict[str, list[Any]] = {}
    for test in tests:
        plan = _build_test_plan(args, test, chosen, settings, own)
        told[test] = _run_test(options, plan, [node.name for node in chosen], settings)
        _record_verdicts(settings, test, told[test])
        if not args.json:
            _print_verdicts(test, told[test], sys.stderr if own else sys.stdout)
    if own:
        return _print_exclude(told, args.json)
    if args.json:
        print(json.dumps(_build_verdict_rows(told), indent=1))
    return int(any(v.word != "pass" for found in told.values() for v in found))


def _find_own_job(args: argparse.Namespace) -> OwnJob | None:
    """The job in which this runs, with --here. Raises UsageError."""
    if not args.here:
        return None
    for name in ("nodes", "partition", "account", "qos", "reservation", "wait", "share", "pairs"):
        if getattr(args, name):
            what = "NODES" if name == "nodes" else f"--{name}"
            raise UsageError(f"--here tests the nodes of your own job; leave out {what}")
    from sentinel.nodes.own_job import find_own_job  # other commands of `nodes` start without it

    try:
        return find_own_job(os.environ)
    except (CannotTell, Invalid) as error:
        raise UsageError(f"--here: {error}") from None


def _print_exclude(told: Mapping[str, Sequence[Any]], as_json: bool) -> int:
    """Print the option that leaves out what failed or is slow; without a host list if nothing is."""
    bad = dict.fromkeys(v.node for found in told.values() for v in found if v.word in FAULTY)
    value = hostlist.fold_for_people(bad)
    if as_json:
        print(json.dumps({"exclude": value, "tests": _build_verdict_rows(told)}, indent=1))
    else:
        print(f"--exclude={value}")
    return int(bool(bad))


def _parse_peer_options(args: argparse.Namespace, tests: Sequence[str]) -> Any:
    """The options of tests that measure; None without such a test. Raises UsageError."""
    given = [name for name in PEER_OPTIONS if getattr(args, name) is not None]
    if not MEASURED.intersection(tests):
        if given:
            option = f"--{given[0].replace('_', '-')}"
            raise UsageError(f"{option} belongs to the tests {', '.join(sorted(MEASURED))}")
        return None
    from sentinel.cli import peer_tests  # other commands of `nodes` start without it

    return peer_tests.parse_peer_options(args)


def _run_test(options: Any, plan: Plan, names: Sequence[str], settings: Any) -> Any:
    if plan.test not in MEASURED:
        return node_tests.run(plan, names)
    from sentinel.cli import peer_tests  # other commands of `nodes` start without it

    return peer_tests.run_measured_test(options, plan, names, settings)


def call_nodes_exclude(args: argparse.Namespace) -> int:
    """Print the bad nodes. Returns 0. The host list goes to stdout (empty: none), the reasons to
    stderr."""
    settings, clock = load_command_settings(args), SystemClock()
    nodes = actions.connect_slurm(settings, clock).nodes()
    chosen = select_nodes(args.nodes, nodes) if args.nodes else nodes
    log = open_audit_log(settings, dry_run=True)
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
    within = parse_seconds(args.within, "--within")
    tests = test_results.failed_tests(log.records(node.name, 1000), now, within)
    absences = test_results.absences(log.readings(node.name, 1000), now, within, args.absences)
    return [why for why in (test_results.unusable(node), *tests, absences) if why]


def _parse_test_names(args: argparse.Namespace) -> Sequence[str]:
    """The tests that were requested; empty for the default ones."""
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
    if words:
        return select_nodes(words, nodes)
    idle = [node for node in nodes if node.state == "IDLE" and not is_out(node)]
    if not idle:
        raise UsageError("no node is idle; name the nodes that are to be waited for (--wait)")
    return idle


def _build_test_plan(
    args: argparse.Namespace,
    test: str,
    nodes: Sequence[Node],
    settings: Any,
    own: OwnJob | None,
) -> Any:
    given = {name: getattr(args, name) for name in ("partition", "account", "qos", "reservation")}
    options = [f"--{name}={value}" for name, value in given.items() if value]
    if args.time < 1:
        raise UsageError("--time: must be 1 minute or more")
    default_path = "" if test == "disk" else "."
    path = default_path if args.path is None else args.path
    return Plan(
        test=test,
        path=os.path.abspath(path) if path else "",
        command=tuple(args.command or ()),
        minutes=args.time,
        wait=max(1, round(parse_seconds(args.wait or "60s", "--wait"))),
        fanout=settings.remote.fanout,
        options=(*words(settings.remote.srun_options, "srun_options"), *options),
        gpus={n.name: own.gpus if own else count_gres_gpus(n.gres) or 0 for n in nodes},
        job=own.job_id if own else "",
        addresses={node.name: node.address for node in nodes if node.address},
    )


def _record_verdicts(settings: Any, test: str, found: Sequence[Any]) -> None:
    """Write the verdicts into the audit log, as decided, so that they stop nothing else."""
    log, now = open_audit_log(settings), SystemClock().now()
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


def _print_verdicts(test: str, found: Sequence[Any], to: TextIO) -> None:
    """Print the verdicts; nodes with the same verdict share a line."""
    groups: dict[tuple[str, str], list[str]] = {}
    for verdict in found:
        groups.setdefault((verdict.word, verdict.text), []).append(verdict.node)
    for (word, text), names in sorted(groups.items(), key=lambda item: item[0][0] == "pass"):
        print(f"{test}: {word.upper():8} {hostlist.fold_for_people(names)}: {text}", file=to)


def _build_verdict_rows(told: Mapping[str, Sequence[Any]]) -> Any:
    return {test: [msgspec.to_builtins(v) for v in found] for test, found in told.items()}
