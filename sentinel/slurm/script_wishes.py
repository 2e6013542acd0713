"""The `#SENTINEL` line of batch scripts: which scripts are read, in whose turn, and what is remembered. Pure.

A script never changes once it is submitted, so each is read once. A wish in the job's comment wins, and
then the script is not read at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from sentinel.core.cluster import MAX_WISH_CHARS, WISH_MARK, Job
from sentinel.core.digests import blake2b
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.script_memory import KnownScript, ScriptMemory
from sentinel.core.text import shortened
from sentinel.core.turns import interleave
from sentinel.core.wishes import find_script_words
from sentinel.proc import Done
from sentinel.slurm.complaints import complaint_meaning, describe_stderr, failure_error
from sentinel.slurm.job_states import is_leader, uses_nodes

MAX_SCRIPTS_PER_PASS = 20
"""Batch scripts that are read in one pass. Each is one request to slurmctld."""

_NONE = re.compile(r"Job script not specified|Invalid job id")
_REFUSED = re.compile(r"Access/permission denied|Invalid user id")
_MAX_TROUBLE_CHARS = 120


class ScriptUnreadable(CannotTell):
    """Slurm does not give this one script, and will not later either."""


def script_argv(job_id: str) -> tuple[str, ...]:
    """The command that prints the batch script of a job (scontrol(1))."""
    return ("scontrol", "write", "batch_script", job_id, "-")


def read_script_answer(done: Done) -> bytes:
    """The script; empty if the job has none or is gone. scontrol ends with 0 also when it fails (seen
    on 22.05), so only its output counts. Raises ScriptUnreadable, or CannotTell if Slurm does not
    answer."""
    if done.out:
        return done.out
    said = describe_stderr(done.err)
    if _NONE.search(said):
        return b""
    if said and (_REFUSED.search(said) or not complaint_meaning(said)):
        raise ScriptUnreadable(shortened(said, _MAX_TROUBLE_CHARS))
    raise failure_error("scontrol", said or "it printed nothing", done.code)


def know_script(job: Job, script: bytes) -> KnownScript:
    """What to remember of this script."""
    try:
        words = find_script_words(script)
    except Invalid as error:
        return KnownScript(_make_digest(job), trouble=f"the script {error}")
    if words is None:
        return KnownScript(_make_digest(job))
    text = f"{WISH_MARK} {words}"  # one character too many is kept, so that it is refused
    return KnownScript(_make_digest(job), text[: len(WISH_MARK) + MAX_WISH_CHARS + 1])


def know_unreadable(job: Job, error: CannotTell) -> KnownScript:
    """What to remember of a script that Slurm does not give."""
    return KnownScript(
        _make_digest(job), trouble=f"NOT watched: cannot read the batch script: {error}"
    )


def keep_known(memory: ScriptMemory, queue: Iterable[Job]) -> ScriptMemory:
    """The memory without jobs that have left the queue."""
    there = {job.array_id: job for job in queue if job.array_id in memory.jobs}
    kept = {
        name: one
        for name, one in memory.jobs.items()
        if name in there and one.digest == _make_digest(there[name])
    }
    return replace(memory, jobs=kept) if len(kept) < len(memory.jobs) else memory


def list_unread(watched: Iterable[Job], known: Mapping[str, KnownScript]) -> list[Job]:
    """One row of each watched job whose script counts and was not read yet."""
    return list(
        {
            job.array_id: job
            for job in watched
            if not job.wish and job.array_id not in known and is_leader(job)
        }.values()
    )


def order_by_turns(unread: Iterable[Job], turns: Mapping[str, int]) -> list[Job]:
    """Users take turns, who waited longest first; the running jobs of each come before the others."""
    ordered = sorted(unread, key=lambda job: (turns.get(job.user, 0), not uses_nodes(job)))
    return interleave(ordered, lambda job: job.user)


def attach_wishes(jobs: tuple[Job, ...], known: Mapping[str, KnownScript]) -> tuple[Job, ...]:
    """The jobs with the wishes of their scripts. A wish in the comment wins."""
    telling = {name: one for name, one in known.items() if one.wish or one.trouble}
    if not telling:
        return jobs
    return tuple(_attach_wish(job, telling.get(job.array_id)) for job in jobs)


def make_reading_rule(user: str, *, admin: bool) -> Callable[[Job], bool]:
    """Whether this user may read the script of a job: one's own, and an operator each (scontrol(1))."""
    return lambda job: admin or job.user == user


def _attach_wish(job: Job, one: KnownScript | None) -> Job:
    if one is None or job.wish or one.digest != _make_digest(job):
        return job
    return replace(job, wish=one.wish, wish_trouble=one.trouble)


def _make_digest(job: Job) -> str:
    text = f"{job.user}\0{job.command}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=4).hexdigest()
