"""What `init` saw of the jobs, kept for the first pass: one that dies before it has its log and its
command in the message all the same."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sentinel.clock import SystemClock
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.model import Batch
from sentinel.init import rehearsal
from sentinel.wiring import app

if TYPE_CHECKING:
    from sentinel.config.settings import Settings
    from sentinel.core.ports import Slurm


def remember_jobs(settings: Settings, slurm: Slurm) -> None:
    """Run each check of one job once, and store its memory. What cannot be read or written is left
    to the first pass."""
    clock = SystemClock()
    memory = {}
    for check in rehearsal.list_job_checks(settings):
        with suppress(CannotTell):
            report = check.plugin.run(rehearsal.make_look_context(check, slurm, clock.now(), {}))
            memory[check.name] = report.memory or {}
    if not memory:
        return
    with suppress(SentinelError):
        store, _ = app.open_state(settings, clock, mending=False)
        try:
            store.take_lead("init", clock.now())
            store.commit(Batch(at=clock.now(), memory=memory))
            store.release_lead()
        finally:
            store.close()
