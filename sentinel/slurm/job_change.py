"""Hands for actions on jobs: read a job, save its evidence, create a file."""

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
"""Seconds for one access to a file, because its file system may hang."""


class WorkingHands(SlurmHands):
    """Implements core.ports.JobHands, for nodes and jobs. `sentinel.wiring.actions` makes it."""

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
        """The rows of a job as Slurm has them now, with ended ones as long as Slurm remembers them.
        Raises CannotTell."""
        try:
            return job_rows(self._client, job_id)
        except SentinelError as error:
            raise CannotTell(str(error)) from error

    def is_of_scrontab(self, job_id: str) -> bool:
        """Whether a line of scrontab began the job. A name may say so too, and then it is left alone. squeue
        tells it from 25.05 on only. Raises CannotTell."""
        return b" CronJob=Yes " in self._client.ask_slurm("scontrol", "-o", "show", "job", job_id)

    def submitted_since(self, name: str, since: float, job_id: str) -> Sequence[str] | None:
        """The ids of jobs of this user with this name: slurmctld knows them for MinJobAge after their
        end, then accounting does. Raises CannotTell."""
        return self._snapshot.submitted_since(name, since, job_id)

    def size(self, path: str, user: str) -> int | None:
        """Bytes of the file at this path. Links are followed. None if there is no file."""
        found = self._user_files().file_status(path, _path_whose(user))
        return found.size if found else None

    def tail(self, path: str, size: int, user: str) -> str:
        """The last `size` bytes of a regular file as text; empty if there is none."""
        return self._user_files().read_tail(path, size, _path_whose(user)) or ""

    def evidence(self, job_id: str) -> Reply:
        """Take stacks and store them. The reply says what was found and where it is, or why nothing
        was found."""
        try:
            element = self._element_id(job_id)
        except CannotTell as error:
            return Reply(Answer.REFUSED, f"no stacks: {error}")
        return self._evidence(element)

    def _element_id(self, job_id: str) -> str:
        """The id of the job as `15_3` if it is an array element. Its `job_id` is a number of its
        own, which may be that of the whole array as well."""
        return next((j.id for j in self.jobs(job_id) if j.job_id == job_id), job_id)

    def create(self, path: str, line: str, user: str, *, literal: bool) -> Reply:
        """Create a file of one line; an existing file is never replaced. `literal`: no name of a job is
        part of the path. Only then may it be created with other rights than the user's.

        No link is followed, not even on the way to the file: the name of a job, or links of its
        owner, could lead anywhere."""
        try:
            self._user_files().create_file(path, visible(line), Whose(user=user, literal=literal))
        except CannotTell as error:
            answer = Answer.REFUSED if isinstance(error, FileRefused) else Answer.UNSURE
            return Reply(answer, str(error))
        return Reply(Answer.ACCEPTED)

    def _user_files(self) -> UserFiles:
        return UserFiles(FILE_LIMIT_S, FILE_LIMIT_S, {})


def _path_whose(user: str) -> Whose:
    """The user whose rights open a path. Its symbols are filled in already, so it counts as written
    out: if only root may write the folders of the path, no user can have put a link there; else the
    user's rights are used."""
    return Whose(user=user, literal=True)
