"""Reads batch scripts whose turn has come, for the wishes in them."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.script_memory import KnownScript, ScriptMemory
from sentinel.slurm.rights import QueueRights
from sentinel.slurm.script_wishes import (
    MAX_SCRIPTS_PER_PASS,
    ScriptUnreadable,
    keep_known,
    know_script,
    know_unreadable,
    list_unread,
    make_reading_rule,
    order_by_turns,
)

ROUND_LIMIT_S = 10.0
"""Seconds after which no further script is read in a pass."""


class ScriptSource(Protocol):
    """Slurm, as far as batch scripts are concerned."""

    def last(self) -> tuple[object, Sequence[Job] | None]:
        """Jobs of the last answer, without asking Slurm."""

    def rights(self) -> QueueRights:
        """As whom Slurm is asked. Raises CannotTell."""

    def read_script(self, job_id: str) -> bytes:
        """A job's batch script; empty for none. Raises ScriptUnreadable or CannotTell."""

    def use_script_wishes(self, known: Mapping[str, KnownScript]) -> None:
        """From the next answer on, jobs have these wishes."""


def read_due_scripts(
    source: ScriptSource, job_ids: Collection[str], memory: ScriptMemory
) -> ScriptMemory:
    """Read the scripts of some of these watched jobs, and tell the source. Jobs that have left the
    queue are forgotten."""
    _, queue = source.last()
    if queue is None:
        return memory
    memory = keep_known(memory, queue)
    unread = list_unread((job for job in queue if job.job_id in job_ids), memory.jobs)
    memory = (
        _read_scripts(source, unread, memory)
        if unread
        else replace(memory, waiting=0, forbidden=0, trouble="")
    )
    source.use_script_wishes(memory.jobs)
    return memory


def _read_scripts(
    source: ScriptSource, unread: Sequence[Job], memory: ScriptMemory
) -> ScriptMemory:
    """Read at most MAX_SCRIPTS_PER_PASS of them. Nothing more is asked once Slurm does not answer."""
    try:
        rights = source.rights()
    except CannotTell as error:
        return replace(memory, waiting=len(unread), forbidden=0, trouble=str(error))
    may_read = make_reading_rule(rights.who.name, admin=rights.admin)
    allowed = [job for job in unread if may_read(job)]
    users = {job.user for job in allowed}
    turns = {user: at for user, at in memory.turns.items() if user in users}
    found, trouble, passes = dict[str, KnownScript](), "", memory.passes + bool(allowed)
    end = time.monotonic() + ROUND_LIMIT_S
    for job in order_by_turns(allowed, turns)[:MAX_SCRIPTS_PER_PASS]:
        if time.monotonic() > end:
            break
        turns[job.user] = passes
        try:
            found[job.array_id] = know_script(job, source.read_script(job.job_id))
        except ScriptUnreadable as error:
            found[job.array_id] = know_unreadable(job, error)
        except CannotTell as error:
            trouble = str(error)
            break
    return ScriptMemory(
        jobs={**memory.jobs, **found},
        turns=turns,
        passes=passes,
        waiting=len(allowed) - len(found),
        forbidden=len(unread) - len(allowed),
        trouble=trouble,
    )
