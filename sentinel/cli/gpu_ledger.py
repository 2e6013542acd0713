"""The ledger of GPUs for commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sentinel.cli.common import load_command_settings
from sentinel.cli.gpu_tables import GpuDetails
from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core.clock import Instant
from sentinel.core.gpu_ledger import GpuLedger, LedgerEntry
from sentinel.core.text import visible
from sentinel.gpu import ledger_update
from sentinel.store.opening import open_sql_gpu_ledger
from sentinel.wiring import app
from sentinel.wiring.app import UsageError


class Ledger(NamedTuple):
    """The open ledger, and the moment at which it was opened."""

    settings: Settings
    gpus: GpuLedger
    now: Instant


@contextmanager
def open_ledger(
    args: argparse.Namespace, *, writing: bool = False, settings: Settings | None = None
) -> Iterator[Ledger]:
    """Open the ledger. Reading does not create a state. `settings`: if they are loaded already."""
    settings = settings or load_command_settings(args)
    there = writing or app.has_state(settings)
    with app.guard_state_reads(settings):
        gpus = open_sql_gpu_ledger(
            app.get_state_location(settings) if there else "", settings.lemons
        )
    try:
        yield Ledger(settings, gpus, SystemClock().now())
    finally:
        gpus.close()


def find_ledger_entry(gpus: GpuLedger, word: str) -> LedgerEntry:
    """The entry with this name, else the only one whose name begins so or that has this serial
    number. Raises UsageError."""
    if exact := gpus.read_entry(word):
        return exact
    fitting = [
        e for e in gpus.read_entries() if word and (e.subject.startswith(word) or e.serial == word)
    ]
    if len(fitting) != 1:
        several = f"{len(fitting)} GPUs begin with" if fitting else "the ledger knows no GPU"
        raise UsageError(visible(f"{several} {word!r}; see: sentinel gpus list"))
    return fitting[0]


def load_gpu_details(of: Ledger, entry: LedgerEntry, events: int) -> GpuDetails:
    """Everything that is known of a subject, with its newest `events` events."""
    happened = of.gpus.read_events(entry.subject, events)
    return GpuDetails(
        entry=entry,
        standing=ledger_update.standing(entry, of.now, of.gpus.policy),
        stays=tuple(of.gpus.read_stays(entry.subject)),
        events=tuple(happened),
        terms=tuple(ledger_update.terms(entry, happened, of.now.wall, of.gpus.policy)),
        policy=of.gpus.policy,
        now=of.now,
    )
