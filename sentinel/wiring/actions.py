"""The wiring of what changes something: configuration to guard, log, and Slurm's commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sentinel.config.settings import Settings
from sentinel.wiring import app
from sentinel.wiring.lazy import LazyRemote

if TYPE_CHECKING:
    from sentinel.actions.executor import Actor, Rules
    from sentinel.actions.service import Deeds
    from sentinel.clock import SystemClock
    from sentinel.core.actions import Reply
    from sentinel.core.kinds import Action
    from sentinel.core.node_answers import Remote
    from sentinel.core.ports import Books
    from sentinel.slurm.change import SlurmHands
    from sentinel.slurm.client import Client
    from sentinel.slurm.snapshot import Snapshot
    from sentinel.stacks import Looker

ACTIONS = app.ACTIONS
RECENT = 5.0
"""Seconds for which a command believes its list of nodes; before a change the node is asked anew."""


def books(settings: Settings, *, dry_run: bool = False) -> Books:
    """The audit log and node ledger of the state. A dry run makes no state where there is none."""
    from sentinel.store.opening import open_books

    if not dry_run:
        return open_books(app.state_of(settings), later=True)
    there = app.has_state(settings)
    with app.looking(settings):
        return open_books(app.state_of(settings) if there else "")


def slurm(settings: Settings, clock: SystemClock) -> Snapshot:
    """Slurm as a command on nodes asks it: no jobs, nodes at most RECENT seconds old."""
    from sentinel.slurm.connect import connect

    return connect(settings.slurm, frozenset(), RECENT, clock)


def changing(settings: Settings, snapshot: Snapshot) -> SlurmHands:
    """The way in which Slurm is changed: nodes, and jobs with their evidence."""
    from sentinel.slurm.job_change import WorkingHands

    return WorkingHands(
        snapshot,
        settings.slurm.change_prefix,
        LazyRemote(settings),
        evidence=_evidence(settings, snapshot.client),
        log=_controller_log(settings),
    )


def _evidence(settings: Settings, client: Client) -> Callable[[str], Reply]:
    """Who takes stacks of a job, where sentinel came with them."""
    from sentinel.core.actions import Answer, Reply

    try:
        from sentinel.stacks import Looker
        from sentinel.stacks.evidence import taker
    except ModuleNotFoundError:
        return lambda job: Reply(Answer.REFUSED, "no stacks: sentinel came without sentinel/stacks")
    return taker(Looker(client, settings.slurm, settings.remote), client, app.evidence(settings))


def rules(settings: Settings) -> Rules:
    """What the configuration allows."""
    from sentinel.actions.executor import Rules

    return Rules(kinds=_kinds(ACTIONS.names()), actions=settings.actions, guard=settings.guard)


def actor(
    settings: Settings, snapshot: Snapshot, log: Books, clock: SystemClock, *, dry_run: bool
) -> Actor:
    """Who carries requests out, for this configuration."""
    from sentinel.actions.executor import Actor

    return Actor(rules(settings), log, changing(settings, snapshot), clock, dry_run=dry_run)


def deeds(settings: Settings, snapshot: Snapshot, clock: SystemClock, *, dry_run: bool) -> Deeds:
    """What carries out the wishes of checks, for this configuration."""
    from sentinel.actions.service import Deeds

    log = books(settings, dry_run=dry_run)
    return Deeds(actor(settings, snapshot, log, clock, dry_run=dry_run), log, snapshot, clock)


def remote(settings: Settings) -> tuple[Remote, float]:
    """The way to nodes, and the seconds a round over them all may take."""
    from sentinel.nodes.connect import connect

    found = settings.remote
    return connect(found), 4 * float(found.timeout)


def looker(settings: Settings) -> tuple[Looker, Client]:
    """Who looks at the processes of jobs, and the way in which Slurm is asked about them."""
    from sentinel.slurm.client import Client
    from sentinel.stacks import Looker

    client = Client(limit=settings.slurm.timeout, prefix=settings.slurm.command_prefix)
    return Looker(client, settings.slurm, settings.remote), client


def _controller_log(settings: Settings) -> str | None:
    """The log that a check names (`controller_log`): one cluster, one log."""
    named = (check.plugin.controller_log() for check in settings.checks)
    return next((path for path in named if path), None)


def _kinds(names: Sequence[str]) -> dict[str, Action]:
    return {name: ACTIONS.load(name)() for name in names}
