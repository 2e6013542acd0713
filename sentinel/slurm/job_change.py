"""Hands for jobs too: looking at one anew, keeping its evidence, making a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from sentinel import proc
from sentinel.actions.model import Answer, Reply
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.text import visible
from sentinel.nodes.model import Remote
from sentinel.proc.owned import tail_of
from sentinel.slurm.change import SlurmHands
from sentinel.slurm.job import rows
from sentinel.slurm.model import Job
from sentinel.slurm.snapshot import Snapshot

LIMIT = 5.0
"""Seconds for one look at a file, which may lie where nothing answers."""

_MAKE = """\
cd -P -- "${1%/*}/" && here=$(pwd -P) || exit
[ "${here%/}/" = "${1%/*}/" ] || {
    echo "it is in $here by a link or .. on the way; name that" >&2
    exit 1
}
printf "%s\\n" "$2" | dd of="./${1##*/}" conv=excl status=none
"""
"""Not by a shell's noclobber, which writes into a device or a pipe that is there."""

_ABSENT = (b"No such file or directory", b"Not a directory")


class WorkingHands(SlurmHands):
    """core.ports.JobHands: those for nodes, and jobs. Made by `sentinel.wiring.actions`."""

    def __init__(
        self,
        snapshot: Snapshot,
        prefix: Sequence[str],
        remote: Remote | None,
        *,
        evidence: Callable[[str], Reply],
        log: str | None = None,
    ) -> None:
        super().__init__(snapshot, prefix, remote, log=log)
        self._evidence = evidence

    def jobs(self, job_id: str) -> Sequence[Job]:
        """Its rows as Slurm has them now, those that are over too while it remembers them."""
        try:
            return rows(self._client, job_id)
        except SentinelError as error:
            raise CannotTell(str(error)) from error

    def size(self, path: str) -> int | None:
        """Bytes of the file there, links followed; None where nothing is."""
        done = self._file(["stat", "-L", "-c", "%s", "--", path], path)
        if done.code and any(words in done.err for words in _ABSENT):
            return None
        return int(self._believed(done, path))

    def tail(self, path: str, size: int) -> str:
        """The last bytes as text, of a regular file alone."""
        return tail_of(path, size, None, lambda argv: self._file(argv, path)) or ""

    def evidence(self, job_id: str) -> Reply:
        """Take stacks and keep them; what was found and where it is, or why nothing was."""
        try:
            element = self._element(job_id)
        except CannotTell as error:
            return Reply(Answer.REFUSED, f"no stacks: {error}")
        return self._evidence(element)

    def _element(self, job_id: str) -> str:
        """One of an array has a number of its own, which may be that of the array as well."""
        return next((j.id for j in self.jobs(job_id) if j.job_id == job_id), job_id)

    def create(self, path: str, line: str) -> Reply:
        """Make a file of one line where nothing is; nothing is replaced, and no link followed, on
        the way to it neither: the name of a job, or its owner's links, could lead anywhere."""
        try:
            done = self._file(["/bin/sh", "-c", _MAKE, "sentinel", path, visible(line)], path)
        except CannotTell as error:
            return Reply(Answer.UNSURE, str(error))
        if done.code:
            why = visible(os.fsdecode(done.err).strip())
            return Reply(Answer.REFUSED, f"{visible(path)} was not made: {why}")
        return Reply(Answer.ACCEPTED)

    def _file(self, argv: Sequence[str], path: str) -> proc.Done:
        try:
            return proc.run(argv, limit=LIMIT)
        except proc.TimedOut as late:
            raise CannotTell(f"{visible(path)} hangs: {late}") from late

    def _believed(self, done: proc.Done, path: str) -> bytes:
        if done.code:
            why = visible(os.fsdecode(done.err).strip())
            raise CannotTell(f"{visible(path)} cannot be read: {why}")
        return done.out
