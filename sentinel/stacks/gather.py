"""Asks all nodes of a job at once. If the first way fails for a node, it asks in another way.

The first way is one srun(1) step over all nodes. Its output counts, even if srun itself fails.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel import proc
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.hostlist import fold_hostlist
from sentinel.core.long_lines import decode_lines
from sentinel.core.node_answers import Answered, Partial, Unreached
from sentinel.core.settings import SlurmSettings
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration
from sentinel.core.work import track_work
from sentinel.nodes.connect import connect
from sentinel.nodes.settings import RemoteSettings, words
from sentinel.slurm.client import SlurmClient, build_argv, neutral_environment
from sentinel.slurm.job import NoSuchJob, StackTarget, find_job, find_target, may_have_processes
from sentinel.stacks import script
from sentinel.stacks.parse.model import MissedNode, NodeStacks, StacksDump
from sentinel.stacks.parse.read import packed_by_node, read_node, unpack_node
from sentinel.stacks.script import ScriptOptions

# One task per node, without GPUs and without the job's memory, beside the running tasks (--overlap:
# Slurm 20.11). If a node does not answer, the others continue.
OPTIONS = (
    "--overlap",
    "--ntasks-per-node=1",
    "--gres=none",
    "--mem=0",
    "--cpu-bind=none",
    "--mpi=none",
    "--chdir=/",
    "--no-kill",
    "--input=none",
)
KILL = 2.0
"""Seconds between SIGTERM, which srun passes on to its step, and SIGKILL."""

_ENDED = (124, 137, -9)  # timeout(1) ends itself with the process that it kills
_COMPLAINT = re.compile(r"^srun: error: (?!.*\bJob step aborted)(.*)$", re.MULTILINE)


def run_step(
    job: Job,
    nodes: Sequence[str],
    text: str,
    *,
    seconds: float,
    prefix: Sequence[str] = (),
    options: str = "",
) -> tuple[bytes, str]:
    """Run a script on all nodes in one step. Returns what they printed in this time, and srun's
    complaint in one line (empty: none).

    `text` is the script. It is an argument, because srun gives its stdin to no task before the last
    node has connected.
    """
    whole = f"{max(1, round(seconds))}"
    argv = ["timeout", "-k", f"{KILL:.0f}", whole, "srun", *_het_group_options(job)]
    argv += [
        f"--nodes={len(nodes)}",
        f"--ntasks={len(nodes)}",
        f"--nodelist={fold_hostlist(nodes)}",
    ]
    argv += [*OPTIONS, *words(options, "srun_options"), "--", "/bin/sh", "-c", f"{text}\nmain"]
    try:
        done = proc.run(
            build_argv(argv, prefix),
            limit=seconds + KILL + 1,
            env=neutral_environment(os.environ),
            max_output=2**28,
        )
    except CannotTell as error:
        return b"", f"srun: {error}"
    return done.out, _srun_complaint(done, whole)


def _het_group_options(job: Job) -> list[str]:
    """The options that name the job. A part of a heterogeneous job is a group of its leader's
    job."""
    leader, plus, part = job.id.partition("+")
    return [f"--jobid={leader}", f"--het-group={part}"] if plus else [f"--jobid={job.job_id}"]


def _srun_complaint(done: proc.Done, whole: str) -> str:
    text = decode_lines(done.err)
    found = _COMPLAINT.findall(text)
    if found:
        return shortened(f"srun: {visible(found[0])}", 200)
    if done.code in _ENDED:
        return f"srun: no answer within {whole}s"
    last = visible(text.strip().rpartition("\n")[2])
    return shortened(f"srun: exit code {done.code} {last}".strip(), 200) if done.code else ""


FIRST = 0.55
"""The share of the time for the step. The second way has the rest."""
SLACK = 2.0
"""Seconds of a way's time for the connection itself."""
SHORTEST = 3.0
"""If fewer seconds are left, no further way is tried."""

Reported = Mapping[str, NodeStacks | str]


class StacksRequest(Struct, frozen=True, kw_only=True):
    """One request. `limit` is the time for all of it in seconds. `tool` is a path of py-spy on the
    nodes. `evidence`: the result will be stored, so NCCL's RAS, the kernels' logs and the GPUs are
    asked too."""

    job: str
    limit: float = 20.0
    native: bool = False
    tool: str = ""
    evidence: bool = False


class StacksLooker:
    """Examines the jobs of one cluster. `now` returns the time of a dump (seconds since 1970)."""

    def __init__(
        self,
        client: SlurmClient,
        slurm: SlurmSettings,
        remote: RemoteSettings,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._slurm, self._remote, self._now = client, slurm, remote, now

    def look_at_job(self, asked: StacksRequest) -> tuple[StackTarget, StacksDump]:
        """The job and the stacks of its processes. Nodes that were not reached are in `missed`.

        Raises NoSuchJob if the job does not run, and CannotTell if Slurm does not answer.
        """
        began = time.monotonic()
        target = find_target(self._client, asked.job)
        deadline = began + asked.limit
        tool = asked.tool or self._remote.py_spy
        first = next((n for n in target.nodes if n not in target.lost_nodes), "")
        wish = ScriptOptions(
            job_id=target.job.job_id,
            user=target.job.user,
            native=asked.native,
            tool=tool,
            asker=first if asked.evidence else "",
            evidence=asked.evidence,
        )
        reported = self._ask_by_step(target, wish, deadline)
        reported = {**reported, **self._ask_second_way(target, wish, reported, deadline)}
        dump = StacksDump(
            job=target.job.id,
            name=target.job.name,
            user=target.job.user,
            at=int(self._now()),
            nodes=tuple(n for n in reported.values() if isinstance(n, NodeStacks)),
            missed=tuple(MissedNode(n, w) for n, w in reported.items() if isinstance(w, str)),
        )
        dump = replace(dump, seconds=round(time.monotonic() - began, 2))
        return target, replace(dump, ended=self._ended_state(target))

    def _ask_by_step(
        self, target: StackTarget, wish: ScriptOptions, deadline: float
    ) -> dict[str, NodeStacks | str]:
        names = [n for n in target.nodes if n not in target.lost_nodes]
        reported: dict[str, NodeStacks | str] = dict.fromkeys(
            target.nodes, "Slurm does not reach it"
        )
        if not names:
            return reported
        seconds, mark = (deadline - time.monotonic()) * FIRST, os.urandom(16).hex()
        with track_work(f"asking {len(names)} nodes of job {target.job.id}", "nodes"):
            out, said = run_step(
                target.job,
                names,
                script.script_text(wish, mark, seconds - SLACK),
                seconds=seconds,
                prefix=self._slurm.command_prefix,
                options=self._remote.srun_options,
            )
        found = packed_by_node(out, mark)
        for name in names:
            told = _read_visible(found[name], name, target.job.user) if name in found else None
            reported[name] = told or said or "srun ended without its answer"
        return reported

    def _ask_second_way(
        self, target: StackTarget, wish: ScriptOptions, reported: Reported, deadline: float
    ) -> dict[str, NodeStacks | str]:
        """Ask the nodes without an answer from the step, in the configured second way."""
        left = [name for name, told in reported.items() if isinstance(told, str)]
        seconds = deadline - time.monotonic()
        if not left or seconds < SHORTEST:
            return {}
        connecting = Duration(max(1.0, min(float(self._remote.connect_timeout), seconds / 2)))
        settings = replace(self._remote, timeout=Duration(seconds), connect_timeout=connecting)
        mark = os.urandom(16).hex()
        text = os.fsencode(script.script_text(wish, mark, seconds - SLACK))
        way = connect(settings, job=wish.job_id)
        answers = way.run(left, script.ARGV, limit=seconds, stdin=text)
        return {
            name: read_answer(answers[name], mark, name, target.job.user, str(reported[name]))
            for name in left
        }

    def _ended_state(self, target: StackTarget) -> str:
        try:
            job = find_job(self._client, target.job.id)
        except NoSuchJob:
            return "Slurm has forgotten it"
        except CannotTell:
            return ""
        return "" if may_have_processes(job) and job.state != "COMPLETING" else job.state


def read_answer(
    answer: Answered | Unreached, mark: str, node: str, user: str, before: str = ""
) -> NodeStacks | str:
    """The answer of one node, or the reason why there is none."""
    if isinstance(answer, Answered | Partial):
        for data in packed_by_node(answer.out, mark).values():
            return _read_visible(data, node, user)
    why = answer.why if not isinstance(answer, Answered) else f"exit code {answer.code}"
    return f"{why} ({before})" if before else why


def _read_visible(data: bytes, node: str, user: str) -> NodeStacks | str:
    """The answer of a node, or the reason why it does not count. A user who cannot see the job's
    processes must not take them for gone."""
    try:
        told = read_node(unpack_node(data), node)
    except CannotTell as error:
        return str(error)
    if not told.processes and not told.can_see(user):
        return f"{told.user} may not see processes of {user} there"
    return told
