"""Evidence for actions on jobs: stacks are taken and kept before a job is touched."""

from __future__ import annotations

from collections.abc import Callable

from sentinel.core.actions import Answer, Reply
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible
from sentinel.slurm.client import Client
from sentinel.stacks.bundle import NotSaved, save
from sentinel.stacks.gather import Asked, Looker
from sentinel.stacks.parse import headline
from sentinel.stacks.recordings import of_job


def taker(looker: Looker, client: Client, folder: str) -> Callable[[str], Reply]:
    """By the number of a job or array element: what was found and where it is, or why nothing
    was."""

    def take(job: str) -> Reply:
        try:
            target, dump = looker.look(Asked(job=job, evidence=True))
        except SentinelError as error:
            return Reply(Answer.REFUSED, f"no stacks: {error}")
        recorded = of_job(client, target, dump)
        said = f"flight recorder: {recorded.words}; " if recorded.words else ""
        try:
            where = f"evidence in {save(folder, client, target, dump, recorded)}"
        except NotSaved as error:
            where = str(error)
        return Reply(Answer.ACCEPTED, visible(f"{said}{headline(dump)}; {where}"))

    return take
