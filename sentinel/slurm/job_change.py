"""Hands for jobs too: looking at one anew, keeping its evidence, making a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sentinel.core.actions import Answer, Reply
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.node_answers import Remote
from sentinel.core.text import visible
from sentinel.slurm.change import SlurmHands
from sentinel.slurm.job import job_rows
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.user_files.files import UserFiles
from sentinel.user_files.reader import FileRefused
from sentinel.user_files.whose import Whose

FILE_LIMIT_S = 5.0
"""Seconds for one look at a file, which may lie where nothing answers."""


class WorkingHands(SlurmHands):
    """core.ports.JobHands: those for nodes, and jobs. Made by `sentinel.wiring.actions`."""

    def __init__(
        self,
        snapshot: SlurmSnapshot,
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
            return job_rows(self._client, job_id)
        except SentinelError as error:
            raise CannotTell(str(error)) from error

    def size(self, path: str, user: str) -> int | None:
        """Bytes of the file there, links followed; None where nothing is."""
        found = self._user_files().file_status(path, _path_whose(user))
        return found.size if found else None

    def tail(self, path: str, size: int, user: str) -> str:
        """The last bytes as text, of a regular file alone."""
        return self._user_files().read_tail(path, size, _path_whose(user)) or ""

    def evidence(self, job_id: str) -> Reply:
        """Take stacks and keep them; what was found and where it is, or why nothing was."""
        try:
            element = self._element_id(job_id)
        except CannotTell as error:
            return Reply(Answer.REFUSED, f"no stacks: {error}")
        return self._evidence(element)

    def _element_id(self, job_id: str) -> str:
        """One of an array has a number of its own, which may be that of the array as well."""
        return next((j.id for j in self.jobs(job_id) if j.job_id == job_id), job_id)

    def create(self, path: str, line: str, user: str) -> Reply:
        """Make a file of one line where nothing is; nothing is replaced, and no link followed, on
        the way to it neither: the name of a job, or its owner's links, could lead anywhere."""
        try:
            self._user_files().create_file(path, visible(line), _path_whose(user))
        except CannotTell as error:
            answer = Answer.REFUSED if isinstance(error, FileRefused) else Answer.UNSURE
            return Reply(answer, str(error))
        return Reply(Answer.ACCEPTED)

    def _user_files(self) -> UserFiles:
        return UserFiles(FILE_LIMIT_S, FILE_LIMIT_S, {})


def _path_whose(user: str) -> Whose:
    """A path with symbols counts as written out: where its way is root's alone no user could have
    put a link there, and anywhere else the user's rights are taken."""
    return Whose(user=user, literal=True)
