"""The wiring of what changes something: configuration to guard, log, and Slurm's commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sentinel.config.settings import Settings
from sentinel.wiring import app
from sentinel.wiring.lazy import LazyRemote

if TYPE_CHECKING:
    from sentinel.actions.executor import ActionExecutor, ActionRules
    from sentinel.actions.service import ActionService
    from sentinel.clock import SystemClock
    from sentinel.core.actions import Reply
    from sentinel.core.kinds import Action
    from sentinel.core.node_answers import Remote
    from sentinel.core.ports import AuditLog
    from sentinel.slurm.change import SlurmHands
    from sentinel.slurm.client import SlurmClient
    from sentinel.slurm.snapshot import SlurmSnapshot
    from sentinel.stacks import StacksLooker

ACTIONS = app.ACTIONS
MAX_NODES_AGE_S = 5.0
"""Seconds for which a command believes its list of nodes; before a change the node is asked anew."""


def open_audit_log(settings: Settings, *, dry_run: bool = False) -> AuditLog:
    """The audit log and node ledger of the state. A dry run makes no state where there is none."""
    from sentinel.store.opening import open_sql_audit_log

    if not dry_run:
        return open_sql_audit_log(app.get_state_location(settings), later=True)
    there = app.has_state(settings)
    with app.guard_state_reads(settings):
        return open_sql_audit_log(app.get_state_location(settings) if there else "")


def connect_slurm(settings: Settings, clock: SystemClock) -> SlurmSnapshot:
    """Slurm as a command on nodes asks it: no jobs, nodes at most RECENT seconds old."""
    from sentinel.slurm.connect import connect_slurm

    return connect_slurm(settings.slurm, frozenset(), MAX_NODES_AGE_S, clock)


def make_slurm_hands(settings: Settings, snapshot: SlurmSnapshot) -> SlurmHands:
    """The way in which Slurm is changed: nodes, and jobs with their evidence."""
    from sentinel.slurm.job_change import WorkingHands

    return WorkingHands(
        snapshot,
        settings.slurm.change_prefix,
        LazyRemote(settings),
        evidence=_make_evidence_taker(settings, snapshot.client),
        log=_find_controller_log(settings),
    )


def _make_evidence_taker(settings: Settings, client: SlurmClient) -> Callable[[str], Reply]:
    """Who takes stacks of a job, where sentinel came with them."""
    from sentinel.core.actions import Answer, Reply

    try:
        from sentinel.stacks import StacksLooker
        from sentinel.stacks.evidence import make_evidence_taker
    except ModuleNotFoundError:
        return lambda job: Reply(Answer.REFUSED, "no stacks: sentinel came without sentinel/stacks")
    return make_evidence_taker(
        StacksLooker(client, settings.slurm, settings.remote),
        client,
        app.get_evidence_folder(settings),
    )


def build_action_rules(settings: Settings) -> ActionRules:
    """What the configuration allows."""
    from sentinel.actions.executor import ActionRules

    return ActionRules(
        kinds=_load_action_kinds(ACTIONS.kind_names()),
        actions=settings.actions,
        guard=settings.guard,
    )


def make_actor(
    settings: Settings, snapshot: SlurmSnapshot, log: AuditLog, clock: SystemClock, *, dry_run: bool
) -> ActionExecutor:
    """Who carries requests out, for this configuration."""
    from sentinel.actions.executor import ActionExecutor

    return ActionExecutor(
        build_action_rules(settings),
        log,
        make_slurm_hands(settings, snapshot),
        clock,
        dry_run=dry_run,
    )


def make_action_service(
    settings: Settings, snapshot: SlurmSnapshot, clock: SystemClock, *, dry_run: bool
) -> ActionService:
    """What carries out the wishes of checks, for this configuration."""
    from sentinel.actions.service import ActionService

    log = open_audit_log(settings, dry_run=dry_run)
    return ActionService(
        make_actor(settings, snapshot, log, clock, dry_run=dry_run), log, snapshot, clock
    )


def connect_remote(settings: Settings) -> tuple[Remote, float]:
    """The way to nodes, and the seconds a round over them all may take."""
    from sentinel.nodes.connect import connect

    found = settings.remote
    return connect(found), 4 * float(found.timeout)


def make_stack_looker(settings: Settings) -> tuple[StacksLooker, SlurmClient]:
    """Who looks at the processes of jobs, and the way in which Slurm is asked about them."""
    from sentinel.slurm.client import SlurmClient
    from sentinel.stacks import StacksLooker

    client = SlurmClient(limit=settings.slurm.timeout, prefix=settings.slurm.command_prefix)
    return StacksLooker(client, settings.slurm, settings.remote), client


def _find_controller_log(settings: Settings) -> str | None:
    """The log that a check names (`controller_log`): one cluster, one log."""
    named = (check.plugin.controller_log() for check in settings.checks)
    return next((path for path in named if path), None)


def _load_action_kinds(names: Sequence[str]) -> dict[str, Action]:
    return {name: ACTIONS.load_kind(name)() for name in names}
