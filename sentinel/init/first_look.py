"""What `init` saw of the jobs, kept for the first pass: one that dies before it has its log and its
command in the message all the same."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sentinel.clock import SystemClock
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.model import Batch
from sentinel.engine.pipeline import SET_UP_KEY
from sentinel.init import rehearsal
from sentinel.wiring import app

if TYPE_CHECKING:
    from sentinel.config.settings import Settings
    from sentinel.core.ports import Slurm


def remember_jobs(settings: Settings, slurm: Slurm) -> None:
    """Run each check of one job once, and store its memory, and of which of them a job ran. What cannot be read or written is left
    to the first pass."""
    clock = SystemClock()
    memory: dict[str, Mapping[str, Any]] = {}
    well: dict[str, int] = {}
    for check in rehearsal.list_job_checks(settings):
        with suppress(CannotTell):
            now = clock.now()
            report = check.plugin.run(rehearsal.make_look_context(check, slurm, now, {}))
            memory[check.name] = report.memory or {}
            if any(finding.values.get("running") for finding in report.findings):
                well[check.name] = now.wall
    if not memory:
        return
    memory[SET_UP_KEY] = well
    with suppress(SentinelError):
        store, _ = app.open_state(settings, clock, mending=False)
        try:
            store.take_lead("init", clock.now())
            store.commit(Batch(at=clock.now(), memory=memory))
            store.release_lead()
        finally:
            store.close()
