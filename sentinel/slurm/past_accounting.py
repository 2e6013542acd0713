"""Asks accounting about jobs of the past, for a command that asks once."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from sentinel.core.clock import SECOND
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Clock
from sentinel.slurm import control
from sentinel.slurm.answer import CachedAnswer
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.endings import BookedRuns, JobEndings

MARGIN_S = 86_400
"""Jobs with the same names are searched from so long before the first known one on."""


def ask_past_runs(client: SlurmClient, clock: Clock, job_ids: Collection[str]) -> BookedRuns:
    """The runs of these jobs, and of their owners' jobs with the same names since the first of them.
    Raises CannotTell, also if the cluster has no accounting."""
    config = CachedAnswer(
        lambda: control.read_config(client.ask_slurm(*control.CONFIG)),
        clock,
        max_age=MARGIN_S,
        patience=4 * client.limit,
    )
    if not config.get_answer().accounting:
        raise CannotTell("this cluster has no accounting: AccountingStorageType is not slurmdbd")
    endings = JobEndings(client, clock, config, settled=MARGIN_S)
    told = endings.accounted_runs(job_ids, (), 0.0, ())
    asked = tuple(run for run in told.runs if run.job_id in job_ids or run.id in job_ids)
    known = replace(told, runs=asked)
    began = min((run.started for run in known.runs if run.started), default=0)
    if not began:
        return known
    owners = {(run.name, run.user) for run in known.runs}
    since = clock.now().wall / SECOND - began + MARGIN_S
    named = endings.accounted_runs((), {name for name, _ in owners}, since, ())
    theirs = [run for run in named.runs if (run.name, run.user) in owners]
    runs = tuple(dict.fromkeys((*known.runs, *theirs)))
    return replace(known, runs=runs, unasked=known.unasked or named.unasked)
