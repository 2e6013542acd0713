"""Finds and reads the flight recorder's dumps of a job in a child process. Their author may be
hostile, and their file system may hang.

PyTorch writes one file for each rank when a collective has timed out: PREFIX and the number of the
rank (TORCH_NCCL_DUMP_ON_TIMEOUT, torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec
from msgspec import Struct

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.core.struct_types import decode_json
from sentinel.core.text import shortened, visible
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.job import StackTarget, job_log_path
from sentinel.stacks.parse.flight_recorder import Recording
from sentinel.stacks.parse.model import StacksDump
from sentinel.stacks.parse.standstill import Standstill, find_standstill
from sentinel.stacks.parse.standstill_words import describe_standstill

PREFIXES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""Environment variables of a job with the place of dumps
(torch/csrc/distributed/c10d/FlightRecorder.hpp). The second one is the older name."""
USUAL = ("nccl_trace_rank_", "comm_lib_trace_rank_", "_dump_", "comm_traces/rank_")
"""Usual names of dumps beside a log: PyTorch's own two, nvidia-resiliency-ext's, torchtitan's."""
LIMIT = 20.0
"""Seconds for all dumps of a job."""
MEMORY = 2 * 2**30
"""The limit of the child's address space in bytes. A pickle of twenty bytes can ask for more."""
FILES = 20_000
TOGETHER = 600.0
"""All dumps of one attempt are written within this many seconds before the newest one. Older ones
are of an earlier attempt of the same job."""
_ANSWER = 2.0
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from sentinel.stacks.recordings_child import main; main()"
)


class RecordingsOrder(Struct, frozen=True, kw_only=True):
    """The request to the child process.

    `places`: prefixes, or folders (with a slash at the end) in which every numbered file counts.
    `user`: the owner of the files, with whose rights they are read (a name or uid). Empty: any
    owner, for a person who chose the place. `since`: files that are older (seconds since 1970)
    belong to another job.
    """

    places: tuple[str, ...]
    user: str = ""
    since: float = 0.0
    limit: float = LIMIT


class FoundRecordings(Struct, frozen=True, kw_only=True):
    """The dumps that were found.

    `refused`: why a file was not read, by path. `older`: how many are of an earlier attempt.
    `unread`: how many were not read, because there was no time or because they are beyond FILES.
    `at`: when the newest was written.
    """

    recordings: tuple[Recording, ...] = ()
    refused: Mapping[str, str] = {}
    older: int = 0
    unread: int = 0
    at: float = 0.0
    place: str = ""

    @property
    def joint_standstill(self) -> Standstill:
        """The result of all dumps together."""
        return find_standstill(self.recordings)

    @property
    def standstill_words(self) -> str:
        """The result in one line. Empty if there is none."""
        if not (self.recordings or self.refused):
            return ""
        said = (
            [describe_standstill(self.joint_standstill)]
            if self.recordings
            else ["no dump could be read"]
        )
        if self.refused:
            path, why = next(iter(self.refused.items()))
            more = f" and {len(self.refused) - 1} more" if len(self.refused) > 1 else ""
            said.append(f"{visible(path)}{more} not read: {shortened(visible(why), 200)}")
        if self.unread:
            said.append(f"{self.unread} more were not read")
        return "; ".join(said)


def read_recordings(order: RecordingsOrder) -> FoundRecordings:
    """Read all dumps at these places. Raises CannotTell if a place does not answer in time."""
    paths = json.dumps([path for path in sys.path if path])
    argv = [sys.executable, "-I", "-S", "-c", _START, paths]
    asked = msgspec.json.encode(order)
    env = proc.bare_environment()  # the child becomes the user of the job
    done = proc.run(argv, limit=order.limit + _ANSWER, env=env, stdin=asked, max_output=2**28)
    if done.code:
        why = decode_lines(done.err).strip().rpartition("\n")[2]
        raise CannotTell(f"flight recorder dumps not read: {visible(shortened(why, 200))}")
    return decode_json(done.out, FoundRecordings)


def prefixes_beside(log: str) -> tuple[str, ...]:
    """Prefixes of dumps next to a job's log."""
    folder = os.path.dirname(log)
    return tuple(os.path.join(folder, name) for name in USUAL) if folder.startswith("/") else ()


def environment_prefixes(environments: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """The places where the processes of a job should write dumps."""
    said = (env.get(name, "").strip() for env in environments for name in PREFIXES)
    return tuple(dict.fromkeys(path for path in said if path.startswith("/")))


def recordings_of_job(
    client: SlurmClient, target: StackTarget, dump: StacksDump
) -> FoundRecordings:
    """The dumps of a running job, at the places in the environment of its processes, and beside its
    log."""
    environments = (process.env for node in dump.nodes for process in node.processes)
    places = environment_prefixes(environments)
    with suppress(CannotTell):  # the reader of the log itself reports the error
        places += prefixes_beside(job_log_path(client, target.job))
    if not places:
        return FoundRecordings()
    job = target.job
    try:
        return read_recordings(
            RecordingsOrder(places=places, user=job.user, since=float(job.started or 0))
        )
    except CannotTell as error:
        return FoundRecordings(refused={places[0]: str(error)})
