"""srun(1): runs a command as a step, for nodes that take jobs and do not accept ssh."""

import os
import re
from collections.abc import Callable, Mapping, Sequence

from sentinel.core.node_answers import NotAsked, Refused, Unreachable, Unreached
from sentinel.core.text import shortened, visible
from sentinel.nodes.settings import RemoteSettings, words
from sentinel.slurm.client import neutral_environment

# srun(1): one task on that node, without GPUs. These options override defaults of the site that
# wait, bind, or need a home directory. --overlap needs Slurm 20.11.
_TASK = ("--nodes=1", "--ntasks=1", "--gres=none", "--chdir=/", "--mpi=none", "--quiet")
_IN_JOB = ("--overlap", "--mem=0", "--cpu-bind=none")
_OWN_JOB = ("--cpus-per-task=1", "--job-name=sentinel", "--time=2")

# The first pattern that matches decides. Errors of the node's slurmd come before those of
# slurmctld: "Socket timed out" may be from either. If Slurm did not create the step (the job is
# over, its steps wait, memory is taken), nothing is learned about the node.
_CAUSES: tuple[tuple[str, Callable[[str], Unreached]], ...] = (
    (r"address, check slurm\.conf|getaddrinfo|Unable to resolve", NotAsked),
    (
        r"failed on node .{0,200}(timed out|onnection|not connected|No route|Zero Bytes)",
        Unreachable,
    ),
    (r"timeout waiting for task launch", Unreachable),
    (r"failed on node |Application launch failed", Refused),
    (r"Unable to contact slurm controller|Socket timed out|[Mm]unge|Unable to configure", NotAsked),
    (r"Zero Bytes|standby mode|authentication error|Incompatible versions", NotAsked),
    (r"(?i)access/permission denied|invalid account|invalid qos|not permitted|denied", Refused),
    (r"not a member|violates accounting", Refused),
    (r"Unable to (create|confirm)|Invalid job id|[Ee]xpired or invalid job", NotAsked),
    (r"Unable to allocate|error:|Invalid", Unreachable),
)
_COMPILED = tuple((re.compile(pattern), answer) for pattern, answer in _CAUSES)


class Srun:
    """A way to nodes by srun: within the job `job`, else each question is a job of its own."""

    name = "srun"

    def __init__(
        self,
        settings: RemoteSettings,
        job: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        wait = f"--immediate={max(1, round(settings.connect_timeout))}"
        where = [f"--jobid={job}", *_IN_JOB] if job else [wait, *_OWN_JOB]
        self._options = [*_TASK, *where, *words(settings.srun_options, "srun_options")]
        self.env = neutral_environment(os.environ if environ is None else environ)

    def barred(self, node: str) -> str:
        """Always empty: Slurm itself says which nodes it does not give."""
        return ""

    def command(self, node: str, argv: Sequence[str]) -> list[str]:
        """The srun command for this node."""
        return ["srun", *self._options, f"--nodelist={node}", "--", *argv]

    def failure(self, said: str, code: int) -> Unreached | None:
        """The meaning of srun's complaint; None if srun did not fail itself."""
        if code < 0:
            return NotAsked(f"srun was ended by signal {-code}")
        lines = [line for line in said.splitlines() if line.startswith("srun: ")]
        for pattern, answer in _COMPILED:
            for line in lines:
                if pattern.search(line):
                    return answer(shortened(visible(line), 300))
        return None
