"""Asks the second witnesses: the job's nodes, and its heartbeat files."""

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.checks.log.files import LogFiles
from sentinel.checks.log.peers import is_numeric_address, parse_getent_hosts, resolve_peer
from sentinel.checks.log.witness import Testimony, judge_witnesses
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.node_answers import Remote
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.nodes.script import cgroups
from sentinel.proc.own_package import read_program_file
from sentinel.user_files.whose import Whose

MAX_ASKED_NODES = 32
"""How many nodes are asked. In a large job they are spread evenly, because all nodes wait in the
same way."""
CPU_SAMPLE_PAUSE_S = 3
"""Seconds between the two measurements of processor time."""
WITNESS_LIMIT_S = 20.0
"""Seconds for all nodes together."""

_WITNESS_ARGV = ("/bin/sh", "-c", 'text=$(cat); eval "$text"', "sentinel")


class HeartbeatFile(Struct, frozen=True, kw_only=True):
    """The newest heartbeat file, and since when it has been unchanged."""

    mark: str  # Changes with each writing of the file.
    since: Instant  # Since when it has been unchanged.


def ask_node_witnesses(
    remote: Remote,
    nodes: Sequence[str],
    job: Job,
    sluids: Mapping[str, str],
    *,
    phase: bool,
    limit: float,
) -> Testimony:
    """The testimony of a job's nodes, of at most MAX_ASKED_NODES of them. Empty if they cannot be
    reached. `sluids` has the job ids by SLUID, as far as they are known."""
    step = -(-len(nodes) // MAX_ASKED_NODES) or 1
    chosen = list(nodes)[::step]
    names = join_job_names(job, sluids)
    slurm_conf = os.environ.get("SLURM_CONF", "")
    argv = [*_WITNESS_ARGV, *names, str(CPU_SAMPLE_PAUSE_S), job.user, slurm_conf]
    try:
        answers = remote.run(
            chosen, argv, limit=min(WITNESS_LIMIT_S, limit), stdin=read_witness_script()
        )
    except SentinelError:
        return Testimony()
    return judge_witnesses(answers, job.user, phase)


def ask_flight_recorder(log: str, job: Job, quiet: float, now: Instant, limit: float) -> Testimony:
    """The testimony of the dumps that PyTorch's flight recorder has written beside the log since
    the last advance. Empty if there are none."""
    try:
        from sentinel.stacks.recordings import RecordingsOrder, prefixes_beside, read_recordings
    except ModuleNotFoundError:
        return Testimony()
    places = prefixes_beside(log)
    since = max(float(job.started or 0), now.wall / SECOND - quiet)
    try:
        found = read_recordings(
            RecordingsOrder(
                places=places, user=job.user, since=since, limit=min(WITNESS_LIMIT_S, limit)
            )
        )
    except CannotTell as error:
        return Testimony(words=str(error))
    if not found.recordings:
        return Testimony()
    if found.joint_standstill.culprits:
        return Testimony(culprit=found.standstill_words, confirms=True)
    return Testimony(words=f"flight recorder: {found.standstill_words}")


def join_job_names(job: Job, sluids: Mapping[str, str]) -> tuple[str, str]:
    """The names that the kernel may use for the job on a node, separated by commas, and its id for
    slurmd."""
    counted = [job.job_id, *(sluid for sluid, of in sluids.items() if of == job.job_id)]
    return ",".join(counted), job.job_id


def find_heartbeat(
    files: LogFiles, pattern: str, whose: Whose, before: HeartbeatFile | None, now: Instant
) -> HeartbeatFile | None:
    """The newest file that matches, compared with the remembered one. None if there is none. Raises
    CannotTell."""
    path = files.find_newest_log(pattern, whose)
    look = files.stat_files([path], whose).get(path) if path else None
    if look is None:
        return None
    mark = f"{path} {look.inode} {look.size} {look.mtime}"
    return before if before and before.mark == mark else HeartbeatFile(mark=mark, since=now)


def judge_heartbeat(
    beat: HeartbeatFile | None, known: bool, now: Instant, limit: float
) -> Testimony:
    """The testimony of the heartbeat. `known` means that an earlier run has read it, so its age is
    certain."""
    if beat is None:
        return Testimony(words="no heartbeat file")
    ago = get_elapsed_s(beat.since, now)
    words = f"heartbeat {'stands still' if ago >= limit else 'moved'} "
    words += f"for {duration_text(ago)}" if ago >= limit else f"{duration_text(ago)} ago"
    if not known:
        return Testimony(words="heartbeat seen for the first time")
    return Testimony(words=words, confirms=ago >= limit, contradicts=ago < limit / 2)


def resolve_peer_nodes(
    files: LogFiles, addresses: Sequence[str], nodes: Sequence[str]
) -> dict[str, str]:
    """The node for each address that NCCL complained about. If it is none of these nodes, the name
    of the host; empty if that is not known either."""
    if not addresses:
        return {}
    wanted = [one for one in addresses if is_numeric_address(one)]
    names = parse_getent_hosts(files.resolve_hosts(wanted)) if wanted else {}
    found = {one: resolve_peer(one, names, nodes) for one in addresses}
    if missing := [one for one in wanted if not found[one]]:
        forward = parse_getent_hosts(files.resolve_hosts(nodes[:MAX_ASKED_NODES])) if nodes else {}
        found |= {one: resolve_peer(one, forward, nodes) for one in missing}
    return {one: visible(found[one] or next(iter(names.get(one, ())), "")) for one in addresses}


def read_witness_script() -> bytes:
    try:
        return (cgroups() + read_program_file("checks/log/witness.sh")).encode("ascii")
    except OSError as error:
        raise CannotTell(f"the script for the nodes cannot be read: {error}") from error
