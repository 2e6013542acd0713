"""srun(1): a command as a step where nodes take jobs and let nobody in by ssh."""

import os
import re
from collections.abc import Callable, Mapping, Sequence

from sentinel.core.text import shortened, visible
from sentinel.nodes.model import NotAsked, Refused, Unreachable, Unreached
from sentinel.nodes.settings import RemoteSettings, words
from sentinel.slurm.client import neutral

# srun(1): one task on that node, no GPUs, and none of the site's defaults that would wait,
# bind, or look at a home directory. --overlap needs Slurm 20.11.
_TASK = ("--nodes=1", "--ntasks=1", "--gres=none", "--chdir=/", "--mpi=none", "--quiet")
_IN_JOB = ("--overlap", "--mem=0", "--cpu-bind=none")
_OWN_JOB = ("--cpus-per-task=1", "--job-name=sentinel", "--time=2")

_CAUSES: tuple[tuple[str, Callable[[str], Unreached]], ...] = (
    (r"Unable to contact slurm controller|Socket timed out|[Mm]unge|Unable to configure", NotAsked),
    (r"(?i)access/permission denied|invalid account|invalid qos|not permitted|denied", Refused),
    (r"Unable to (allocate|create|confirm)|error:|Invalid", Unreachable),
)
_COMPILED = tuple((re.compile(pattern), answer) for pattern, answer in _CAUSES)


class Srun:
    """A way to nodes by srun: inside the job `job`, else each question as a job of its own."""

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
        self.env = neutral(os.environ if environ is None else environ)

    def barred(self, node: str) -> str:
        """Slurm itself says which nodes it does not give."""
        return ""

    def command(self, node: str, argv: Sequence[str]) -> list[str]:
        """The local command."""
        return ["srun", *self._options, f"--nodelist={node}", "--", *argv]

    def failure(self, said: str, code: int) -> Unreached | None:
        """What srun's complaint means; None when it was not srun that failed."""
        if code < 0:
            return NotAsked(f"srun was ended by signal {-code}")
        lines = [line for line in said.splitlines() if line.startswith("srun: ")]
        for pattern, answer in _COMPILED:
            for line in lines:
                if pattern.search(line):
                    return answer(shortened(visible(line), 300))
        return None
