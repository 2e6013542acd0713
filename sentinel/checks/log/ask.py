"""Asking the second witnesses: the job's nodes, and its heartbeat files."""

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.checks.log.files import Files
from sentinel.checks.log.witness import Testimony, heard
from sentinel.core.clock import SECOND, Instant, elapsed
from sentinel.core.cluster import Job, ids
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.node_answers import Remote
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.nodes.script import cgroups
from sentinel.user_files.whose import Whose

SCRIPT = "witness.sh"
MOST_NODES = 32
"""Nodes that are asked: evenly spread over a large job, whose nodes all wait alike."""
PAUSE = 3
"""Seconds between two looks at processor time."""
LIMIT = 20.0
"""Seconds for all nodes together."""

_ARGV = ("/bin/sh", "-c", 'text=$(cat); eval "$text"', "sentinel")


class Beat(Struct, frozen=True, kw_only=True):
    """The newest heartbeat file as it was seen, and since when it has been so."""

    mark: str
    since: Instant


def ask_nodes(
    remote: Remote,
    nodes: Sequence[str],
    job: Job,
    sluids: Mapping[str, str],
    *,
    phase: bool,
    limit: float,
) -> Testimony:
    """What the nodes of a job say; nothing where there is no way to them. `sluids`: job ids by
    SLUID, as far as they are known."""
    step = -(-len(nodes) // MOST_NODES) or 1
    chosen = list(nodes)[::step]
    argv = [*_ARGV, *names(job, sluids), str(PAUSE)]
    try:
        answers = remote.run(chosen, argv, limit=min(LIMIT, limit), stdin=script())
    except SentinelError:
        return Testimony()
    return heard(answers, job.user, phase)


def ask_recorder(log: str, job: Job, quiet: float, now: Instant, limit: float) -> Testimony:
    """What PyTorch's flight recorder left beside the log since the last advance; nothing where
    there is none."""
    try:
        from sentinel.stacks.recordings import Order, beside, read
    except ModuleNotFoundError:
        return Testimony()
    places = beside(log)
    since = max(float(job.started or 0), now.wall / SECOND - quiet)
    try:
        found = read(Order(places=places, user=job.user, since=since, limit=min(LIMIT, limit)))
    except CannotTell as error:
        return Testimony(words=str(error))
    if not found.recordings:
        return Testimony()
    if found.standstill.culprits:
        return Testimony(culprit=found.words, confirms=True)
    return Testimony(words=f"flight recorder: {found.words}")


def names(job: Job, sluids: Mapping[str, str]) -> tuple[str, str]:
    """What the kernel may call it on a node, and what its processes may carry, with commas."""
    counted = [job.job_id, *(sluid for sluid, of in sluids.items() if of == job.job_id)]
    return ",".join(counted), ",".join(sorted(ids(job)))


def beat_now(
    files: Files, pattern: str, whose: Whose, before: Beat | None, now: Instant
) -> Beat | None:
    """The newest file that fits, compared with what was remembered; None where there is none.

    Raises CannotTell.
    """
    path = files.newest_log(pattern, whose)
    look = files.looks([path], whose).get(path) if path else None
    if look is None:
        return None
    mark = f"{path} {look.inode} {look.size} {look.mtime}"
    return before if before and before.mark == mark else Beat(mark=mark, since=now)


def beat_says(beat: Beat | None, known: bool, now: Instant, limit: float) -> Testimony:
    """`known`: it was looked at before, so that its age is a fact."""
    if beat is None:
        return Testimony(words="no heartbeat file")
    ago = elapsed(beat.since, now)
    words = f"heartbeat {'stands still' if ago >= limit else 'moved'} "
    words += f"for {duration_text(ago)}" if ago >= limit else f"{duration_text(ago)} ago"
    if not known:
        return Testimony(words="heartbeat seen for the first time")
    return Testimony(words=words, confirms=ago >= limit, contradicts=ago < limit / 2)


def peers(files: Files, addresses: Sequence[str], nodes: Sequence[str]) -> dict[str, str]:
    """The node (or else the host's name) behind each address that NCCL complained about."""
    from sentinel.checks.log.peers import named, numeric, resolved

    if not addresses:
        return {}
    wanted = [one for one in addresses if numeric(one)]
    names = named(files.names(wanted)) if wanted else {}
    found = {one: resolved(one, names, nodes) for one in addresses}
    if missing := [one for one in wanted if not found[one]]:
        forward = named(files.names(nodes[:MOST_NODES])) if nodes else {}
        found |= {one: resolved(one, forward, nodes) for one in missing}
    return {one: visible(found[one] or next(iter(names.get(one, ())), "")) for one in addresses}


def script() -> bytes:
    path = os.path.join(os.path.dirname(__file__), SCRIPT)
    try:
        with open(path, "rb") as file:
            return cgroups().encode("ascii") + file.read()
    except OSError as error:
        raise CannotTell(f"{path} cannot be read: {error}") from error
