"""The wiring of what changes something: configuration to guard, log, and Slurm's commands."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sentinel import app
from sentinel.core.settings import Settings

if TYPE_CHECKING:
    from sentinel.clock import SystemClock
    from sentinel.core.ports import Action, Books
    from sentinel.core.remote import Remote
    from sentinel.engine.acting import Actor, Rules
    from sentinel.engine.deeds import Deeds
    from sentinel.slurm.change import SlurmHands
    from sentinel.slurm.snapshot import Snapshot

ACTIONS = app.ACTIONS
RECENT = 5.0
"""Seconds for which a command believes its list of nodes; before a change the node is asked anew."""


def books(settings: Settings, *, dry_run: bool = False) -> Books:
    """The audit log and node ledger of the state. A dry run makes no state where there is none."""
    from sentinel.store.book_memory import MemoryBooks
    from sentinel.store.opening import open_books

    state = app.state_of(settings)
    if dry_run and "://" not in state and not os.path.exists(os.path.join(state, "sentinel.db")):
        return MemoryBooks()
    return open_books(state)


def slurm(settings: Settings, clock: SystemClock) -> Snapshot:
    """Slurm as a command on nodes asks it: no jobs, nodes at most RECENT seconds old."""
    from sentinel.slurm import connect

    return connect(settings.slurm, frozenset(), RECENT, clock)


def changing(settings: Settings, snapshot: Snapshot) -> SlurmHands:
    """The way in which Slurm is changed."""
    from sentinel.slurm.change import SlurmHands

    return SlurmHands(snapshot, settings.slurm.change_prefix)


def rules(settings: Settings) -> Rules:
    """What the configuration allows."""
    from sentinel.engine.acting import Rules

    return Rules(kinds=_kinds(ACTIONS.names()), actions=settings.actions, guard=settings.guard)


def actor(
    settings: Settings, snapshot: Snapshot, log: Books, clock: SystemClock, *, dry_run: bool
) -> Actor:
    """Who carries requests out, for this configuration."""
    from sentinel.engine.acting import Actor

    return Actor(rules(settings), log, changing(settings, snapshot), clock, dry_run=dry_run)


def deeds(settings: Settings, snapshot: Snapshot, clock: SystemClock, *, dry_run: bool) -> Deeds:
    """What carries out the wishes of checks, for this configuration."""
    from sentinel.engine.deeds import Deeds

    log = books(settings, dry_run=dry_run)
    return Deeds(actor(settings, snapshot, log, clock, dry_run=dry_run), log, snapshot, clock)


def remote(settings: Settings) -> tuple[Remote, float]:
    """The way to nodes, and the seconds a round over them all may take."""
    from sentinel.remote import connect

    found = settings.remote
    return connect(found), 4 * float(found.timeout)


def _kinds(names: Sequence[str]) -> dict[str, Action]:
    return {name: ACTIONS.load(name)() for name in names}
