"""`sentinel nodes test --test disk|memory|nccl|ib`: which nodes are measured, and how many at once.

The rules are those of the check `diag`: idle nodes that nobody else has a claim on, a share of each
partition at once, and nodes that were tested not long ago are left alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.cli.common import parse_seconds
from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core import hostlist
from sentinel.core.actions import ActionOutcome
from sentinel.core.clock import get_elapsed_s
from sentinel.core.cluster import Job, Node
from sentinel.core.errors import Invalid
from sentinel.core.values import Share
from sentinel.nodes.node_tests import Plan, run_groups
from sentinel.nodes.node_waves import RETRY_DIVISOR, choose_wave, list_candidates
from sentinel.nodes.peer_results import SpeedLimit, parse_limit, read_kept_measures
from sentinel.nodes.peer_tests import ChooseWave, Group, run_peer_test, take_all_groups
from sentinel.nodes.test_results import PAIRS, MeasuredVerdict, find_last_test
from sentinel.slurm.pending_reason_row import ReasonEnd
from sentinel.slurm.pending_reasons import explain_reason
from sentinel.wiring import actions
from sentinel.wiring.app import UsageError
from sentinel.wiring.audit_log import open_audit_log

DEFAULT_SHARE, DEFAULT_PAIRS, DEFAULT_FRESH = "10%", 1, "12h"
TAKEN = "it is not idle any more, or a pending job could use it"


class PeerOptions(Struct, frozen=True, kw_only=True):
    """The options of the tests that measure."""

    limits: Sequence[SpeedLimit]  # What the operator wants to be reached.
    share: Share  # So much of a partition at once.
    pairs: int  # So many pairs at once while jobs run.
    fresh: float  # Seconds for which a node is left alone after a test.
    has_names: bool  # Whether the nodes were named, or are those of one's own job.


def parse_peer_options(args: argparse.Namespace) -> PeerOptions:
    """Raises UsageError."""
    try:
        limits = [parse_limit(text) for text in args.at_least or ()]
        share = Share.parse(args.share or DEFAULT_SHARE)
    except Invalid as error:
        raise UsageError(str(error)) from None
    if not share:
        raise UsageError("--share: must be above 0%; one node at least is tested")
    pairs = DEFAULT_PAIRS if args.pairs is None else args.pairs
    if pairs < 1:
        raise UsageError("--pairs: must be 1 or more")
    return PeerOptions(
        limits=limits,
        share=share,
        pairs=pairs,
        fresh=parse_seconds(args.fresh or DEFAULT_FRESH, "--fresh"),
        has_names=bool(args.nodes) or args.here,
    )


def run_measured_test(
    options: PeerOptions, plan: Plan, chosen: Sequence[str], settings: Settings
) -> list[MeasuredVerdict]:
    """The verdicts of the nodes that were measured. Those that were tested not long ago are peers,
    and get a new verdict only if they are named."""
    snapshot = actions.connect_slurm(settings, SystemClock(), all_jobs=True)
    nodes = {node.name: node for node in snapshot.nodes()}
    fresh, kept = _read_past(settings, plan.test, nodes, options.fresh)
    wanted = [*chosen]
    if not options.has_names:
        idle = {n.name for n in _list_free_nodes([*nodes.values()], snapshot.jobs())}
        wanted = [name for name in chosen if name in idle and name not in fresh]
        _print_left_out(plan.test, chosen, wanted)
    kept = {name: measures for name, measures in kept.items() if name not in wanted}
    wave = take_all_groups if plan.job else _make_wave_chooser(options, plan.test, settings)
    return run_peer_test(plan, nodes, wanted, wave, run_groups, options.limits, kept)


def _print_left_out(test: str, chosen: Sequence[str], wanted: Sequence[str]) -> None:
    left = [name for name in chosen if name not in wanted]
    if left:
        why = (
            "tested not long ago (--fresh), or a pending job could use them; name them to test them"
        )
        print(f"{test}: left out {hostlist.fold_for_people(left)}: {why}", file=sys.stderr)


def _read_past(
    settings: Settings, test: str, nodes: Mapping[str, Node], within: float
) -> tuple[set[str], dict[str, Mapping[str, float]]]:
    """Nodes that this test left a verdict for not long ago, and what they reached."""
    fresh, kept = set[str](), dict[str, Mapping[str, float]]()
    log, now = open_audit_log(settings, dry_run=True), SystemClock().now()
    try:
        for name in nodes:
            last = find_last_test(log.records(name, 1000), test)
            if last is None:
                continue
            age = get_elapsed_s(last.at, now)
            known = last.outcome in (ActionOutcome.DONE, ActionOutcome.ERROR)
            if age < (within if known else within / RETRY_DIVISOR):
                fresh.add(name)
            if age < within and (measures := read_kept_measures(last)):
                kept[name] = measures
    finally:
        log.close()
    return fresh, kept


def _list_free_nodes(nodes: Sequence[Node], jobs: Sequence[Job]) -> list[Node]:
    """Idle nodes that no pending job could use."""
    wanted = {
        partition
        for job in jobs
        if job.state == "PENDING" and _waits_for_nodes(job)
        for partition in job.partition.split(",")
    }
    idle = list_candidates(nodes, "idle", "", ())
    return [node for node in idle if wanted.isdisjoint(node.partitions)]


def _waits_for_nodes(job: Job) -> bool:
    reason = explain_reason(job.reason)
    return reason.needs_nodes and reason.ends is ReasonEnd.ITSELF


def _make_wave_chooser(options: PeerOptions, test: str, settings: Settings) -> ChooseWave:
    """Slurm is asked before each wave: nodes may have been taken meanwhile."""

    def choose(waiting: Sequence[Group]) -> tuple[Sequence[Group], Mapping[Group, str]]:
        snapshot = actions.connect_slurm(settings, SystemClock(), all_jobs=True)
        nodes, jobs = snapshot.nodes(), snapshot.jobs()
        free = {n.name for n in (nodes if options.has_names else _list_free_nodes(nodes, jobs))}
        refused = {group: TAKEN for group in waiting if not free.issuperset(group)}
        ready = [group for group in waiting if group not in refused]
        is_busy = any(job.state == "RUNNING" for job in jobs)
        most = options.pairs if test in PAIRS and is_busy else len(ready)
        return _choose_groups(ready, nodes, options.share, most), refused

    return choose


def _choose_groups(
    ready: Sequence[Group], nodes: Sequence[Node], share: Share, most: int
) -> list[Group]:
    """As many groups as the share of each partition allows, one at least, and `most` at most."""
    by_name = {node.name: node for node in nodes}
    chosen, busy = list[Group](), list[Node]()
    for group in ready:
        members = [by_name[name] for name in group]
        fits = len(choose_wave(members, busy, nodes, share)) == len(members)
        if len(chosen) < most and (fits or not chosen) and not set(members) & set(busy):
            chosen.append(group)
            busy += members
    return chosen
