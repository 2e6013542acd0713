"""The flight recorder's dumps of a job, found and read by a child: who wrote them may be hostile,
and where they lie may hang.

PyTorch writes one file a rank, PREFIX and the rank's number, when a collective has timed out
(TORCH_NCCL_DUMP_ON_TIMEOUT, torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp).
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.job import StackTarget, job_log_path
from sentinel.stacks.parse.flight_recorder import MOST, Recording, read_recording
from sentinel.stacks.parse.model import StacksDump
from sentinel.stacks.parse.standstill import Standstill, describe_standstill, find_standstill
from sentinel.user_files.identity import (
    OpenDenied,
    RightsRequest,
    become_user,
    decide_rights,
    open_regular,
    prepare_process,
)

PREFIXES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""What a job's environment says of the place (torch/csrc/distributed/c10d/FlightRecorder.hpp);
the second is the older name."""
USUAL = ("nccl_trace_rank_", "comm_lib_trace_rank_", "_dump_", "comm_traces/rank_")
"""Names beside a log: PyTorch's own two, nvidia-resiliency-ext's, torchtitan's."""
LIMIT = 20.0
"""Seconds for all dumps of a job."""
MEMORY = 2 * 2**30
"""Bytes of the child's address space: a pickle of twenty bytes can ask for more."""
FILES = 20_000
TOGETHER = 600.0
"""Seconds before the newest dump in which the others were written: what is older is of another
attempt of the same job."""
_ANSWER = 2.0
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from sentinel.stacks.recordings import main; main()"
)
_NUMBERED = re.compile(r"(.*?)([0-9]{1,7})(\.(json|pkl|pickle))?")


class RecordingsOrder(Struct, frozen=True, kw_only=True):
    """What the child is asked. `places`: prefixes, or folders with a slash at their end in which
    every numbered file counts; `user`: whose files they have to be, and with whose rights they are read
    (a name or uid; empty: anybody's, for a person who chose the place); `since`: seconds since 1970
    before which they are another job's."""

    places: tuple[str, ...]
    user: str = ""
    since: float = 0.0
    limit: float = LIMIT


class FoundRecordings(Struct, frozen=True, kw_only=True):
    """Dumps by path; `refused`: why one was not read; `older`: those of an earlier attempt;
    `unread`: for which there was no time; `at`: when the newest was written."""

    recordings: tuple[Recording, ...] = ()
    refused: Mapping[str, str] = {}
    older: int = 0
    unread: int = 0
    at: float = 0.0
    place: str = ""

    @property
    def joint_standstill(self) -> Standstill:
        """What they say together."""
        return find_standstill(self.recordings)

    @property
    def standstill_words(self) -> str:
        """One line; empty where there are none."""
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
            said.append(f"no time for {self.unread} more")
        return "; ".join(said)


def read_recordings(order: RecordingsOrder) -> FoundRecordings:
    """All dumps that are there; raises CannotTell where the place does not answer in time."""
    paths = json.dumps([path for path in sys.path if path])
    argv = [sys.executable, "-I", "-S", "-c", _START, paths]
    asked = msgspec.json.encode(order)
    done = proc.run(argv, limit=order.limit + _ANSWER, stdin=asked, max_output=2**28)
    if done.code:
        why = os.fsdecode(done.err).strip().rpartition("\n")[2]
        raise CannotTell(f"flight recorder dumps not read: {visible(shortened(why, 200))}")
    return msgspec.json.decode(done.out, type=FoundRecordings)


def prefixes_beside(log: str) -> tuple[str, ...]:
    """Prefixes of dumps next to a job's log."""
    folder = os.path.dirname(log)
    return tuple(os.path.join(folder, name) for name in USUAL) if folder.startswith("/") else ()


def environment_prefixes(environments: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Where the processes of a job were told to write them."""
    said = (env.get(name, "").strip() for env in environments for name in PREFIXES)
    return tuple(dict.fromkeys(path for path in said if path.startswith("/")))


def recordings_of_job(
    client: SlurmClient, target: StackTarget, dump: StacksDump
) -> FoundRecordings:
    """Those of a job that runs: where its processes were told to write them, and beside its log."""
    environments = (process.env for node in dump.nodes for process in node.processes)
    places = environment_prefixes(environments)
    with suppress(CannotTell):  # it is told where the log itself is asked for
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


# -- in the child --------------------------------------------------------------------------


def main() -> None:
    """The order from stdin, what was found to stdout.

    The job names the places, so all is listed, read and unpacked with the rights of its user.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=RecordingsOrder)
    prepare_process()
    asked = RightsRequest(order.user, literal=not order.user, owned=bool(order.user))
    try:
        may = decide_rights(asked, os.path.dirname(order.places[0]))
        become_user(may.identity)
    except (OpenDenied, OSError) as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(msgspec.json.encode(_find_recordings(order, may.owner)))


def _find_recordings(order: RecordingsOrder, owner: int | None) -> FoundRecordings:
    deadline = time.monotonic() + order.limit
    refused: dict[str, str] = {}
    files: list[tuple[float, int, str]] = []
    for path, rank in _numbered_files(order.places, owner):
        try:
            look = os.stat(path)
        except OSError as error:
            refused[path] = error.strerror or type(error).__name__
            continue
        if look.st_mtime >= order.since:
            files.append((look.st_mtime, rank, path))
    newest = max((at for at, _, _ in files), default=0.0)
    fresh = sorted((one for one in files if one[0] >= newest - TOGETHER), reverse=True)
    ranks: dict[int, Recording] = {}
    unread = 0
    for _, rank, path in fresh:
        if time.monotonic() > deadline:
            unread += 1
        elif rank not in ranks:
            try:
                ranks[rank] = read_recording(_read_dump_file(path, owner), rank)
            except (CannotTell, MemoryError) as error:
                refused[path] = str(error) or "refused: it asks for more memory than there is"
    return FoundRecordings(
        recordings=tuple(ranks[rank] for rank in sorted(ranks)),
        refused=refused,
        older=len(files) - len(fresh),
        unread=unread,
        at=newest,
        place=fresh[0][2] if fresh else "",
    )


def _numbered_files(places: Sequence[str], owner: int | None) -> Iterator[tuple[str, int]]:
    """Paths with the rank that their names end in. A folder whose names are not to be seen is passed
    over."""
    left = FILES
    for place in dict.fromkeys(places):
        folder, _, start = place.rpartition("/")
        try:
            names = os.listdir(folder or "/")
        except OSError:
            continue
        for name in names:
            match = _NUMBERED.fullmatch(name)
            path = os.path.join(folder, name)
            if not match or (start and match[1] != start) or _is_foreign(path, owner):
                continue
            if left > 0:
                left -= 1
                yield path, int(match[2])


def _is_foreign(path: str, owner: int | None) -> bool:
    """Whether not even its name is told. A link is its maker's."""
    if owner is None:
        return False
    try:
        return os.lstat(path).st_uid != owner
    except OSError:
        return True


def _read_dump_file(path: str, owner: int | None) -> bytes:
    try:
        descriptor, _ = open_regular(path, owner)
        with open(descriptor, "rb") as file:
            return file.read(MOST + 1)
    except OSError as error:
        raise CannotTell(error.strerror or type(error).__name__) from None
    except OpenDenied as error:
        raise CannotTell(str(error)) from None
