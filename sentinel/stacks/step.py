"""One srun(1) step over all nodes of a job; what was printed counts, whatever became of srun."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.hostlist import fold
from sentinel.core.text import shortened, visible
from sentinel.nodes.settings import words
from sentinel.slurm.client import command, neutral
from sentinel.slurm.model import Job

# One task a node, no GPUs and no memory of the job's, beside whatever runs there
# (--overlap: Slurm 20.11), and the others go on where a node does not answer.
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

_ENDED = (124, 137, -9)  # timeout(1) goes with what it kills
_COMPLAINT = re.compile(r"^srun: error: (?!.*\bJob step aborted)(.*)$", re.MULTILINE)


def run(
    job: Job,
    nodes: Sequence[str],
    text: str,
    *,
    seconds: float,
    prefix: Sequence[str] = (),
    options: str = "",
) -> tuple[bytes, str]:
    """What all nodes printed until then, and what srun complained of in one line.

    `text` is a script, given as an argument: srun hands its stdin to nobody before the last
    node has connected.
    """
    whole = f"{max(1, round(seconds))}"
    argv = ["timeout", "-k", f"{KILL:.0f}", whole, "srun", *_whose(job)]
    argv += [f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}", f"--nodelist={fold(nodes)}"]
    argv += [*OPTIONS, *words(options, "srun_options"), "--", "/bin/sh", "-c", f"{text}\nmain"]
    try:
        done = proc.run(
            command(argv, prefix),
            limit=seconds + KILL + 1,
            env=neutral(os.environ),
            max_output=2**28,
        )
    except CannotTell as error:
        return b"", f"srun: {error}"
    return done.out, _said(done, whole)


def _whose(job: Job) -> list[str]:
    """A part of a heterogeneous job is a group of its leader's."""
    leader, plus, part = job.id.partition("+")
    return [f"--jobid={leader}", f"--het-group={part}"] if plus else [f"--jobid={job.job_id}"]


def _said(done: proc.Done, whole: str) -> str:
    text = done.err.decode("utf-8", "backslashreplace")
    found = _COMPLAINT.findall(text)
    if found:
        return shortened(f"srun: {visible(found[0])}", 200)
    if done.code in _ENDED:
        return f"srun: no answer within {whole}s"
    last = visible(text.strip().rpartition("\n")[2])
    return shortened(f"srun: exit code {done.code} {last}".strip(), 200) if done.code else ""
