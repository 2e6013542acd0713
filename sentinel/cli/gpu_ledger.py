"""The ledger of GPUs as commands by hand see it."""

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
from sentinel.wiring import app
from sentinel.wiring.app import UsageError


class Ledger(NamedTuple):
    """It, with the moment at which it was opened."""

    settings: Settings
    gpus: GpuLedger
    now: Instant


@contextmanager
def open_ledger(
    args: argparse.Namespace, *, writing: bool = False, settings: Settings | None = None
) -> Iterator[Ledger]:
    """Reading makes no state where there is none. `settings`: where they are known already."""
    settings = settings or load_command_settings(args)
    from sentinel.store.opening import open_sql_gpu_ledger

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
    """By its whole name, else by the beginning of one, or a serial, that is only one."""
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
    """All that is known of one, with so many of its newest events."""
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
