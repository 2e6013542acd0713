"""Makes the parts that change something from the configuration: guard, audit log, and Slurm's
commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sentinel.actions.action_rules import ActionRules
from sentinel.actions.executor import ActionExecutor
from sentinel.actions.service import ActionService
from sentinel.config.settings import Settings
from sentinel.core.actions import Answer, Reply
from sentinel.nodes.connect import connect
from sentinel.slurm import connect as slurm_connection
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.job_change import WorkingHands
from sentinel.wiring import app
from sentinel.wiring.audit_log import open_audit_log
from sentinel.wiring.lazy import LazyRemote

if TYPE_CHECKING:
    from sentinel.clock import SystemClock
    from sentinel.core.kinds import Action
    from sentinel.core.node_answers import Remote
    from sentinel.core.ports import AuditLog
    from sentinel.slurm.change import SlurmHands
    from sentinel.slurm.snapshot import SlurmSnapshot
    from sentinel.stacks import StacksLooker

ACTIONS = app.ACTIONS
MAX_NODES_AGE_S = 5.0
"""Seconds for which a command believes its list of nodes; before a change the node is asked
again."""


def connect_slurm(
    settings: Settings, clock: SystemClock, *, all_jobs: bool = False
) -> SlurmSnapshot:
    """Slurm for a command about nodes: it asks for no jobs unless for `all_jobs`, and nodes are at
    most MAX_NODES_AGE_S old."""
    users = None if all_jobs else frozenset[str]()
    return slurm_connection.connect_slurm(settings.slurm, users, MAX_NODES_AGE_S, clock)


def make_slurm_hands(settings: Settings, snapshot: SlurmSnapshot) -> SlurmHands:
    """The object that changes Slurm: nodes, and jobs with their evidence."""
    return WorkingHands(
        snapshot,
        settings.slurm.change_prefix,
        LazyRemote(settings),
        evidence=_make_evidence_taker(settings, snapshot.client),
        log=_find_controller_log(settings),
    )


def _make_evidence_taker(settings: Settings, client: SlurmClient) -> Callable[[str], Reply]:
    """A function that takes stacks of a job; it refuses if sentinel is installed without stacks."""
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
    """The actions that the configuration allows."""
    return ActionRules(
        kinds=_load_action_kinds(ACTIONS.kind_names()),
        actions=settings.actions,
        guard=settings.guard,
    )


def make_actor(
    settings: Settings, snapshot: SlurmSnapshot, log: AuditLog, clock: SystemClock, *, dry_run: bool
) -> ActionExecutor:
    """The executor of requests for this configuration."""
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
    """The service that handles requests of checks for this configuration."""
    log = open_audit_log(settings, dry_run=dry_run)
    return ActionService(
        make_actor(settings, snapshot, log, clock, dry_run=dry_run), log, snapshot, clock
    )


def connect_remote(settings: Settings) -> tuple[Remote, float]:
    """The way to nodes, and the seconds that one round over all nodes may take."""
    found = settings.remote
    return connect(found), 4 * float(found.timeout)


def make_stack_looker(settings: Settings) -> tuple[StacksLooker, SlurmClient]:
    """The object that looks at the processes of jobs, and the client by which it asks Slurm."""
    from sentinel.stacks import StacksLooker

    client = SlurmClient(limit=settings.slurm.timeout, prefix=settings.slurm.command_prefix)
    return StacksLooker(client, settings.slurm, settings.remote), client


def _find_controller_log(settings: Settings) -> str | None:
    """The log that a check names (`controller_log`), or None: one cluster has one log."""
    named = (check.plugin.controller_log() for check in settings.checks)
    return next((path for path in named if path), None)


def _load_action_kinds(names: Sequence[str]) -> dict[str, Action]:
    return {name: ACTIONS.load_kind(name)() for name in names}
