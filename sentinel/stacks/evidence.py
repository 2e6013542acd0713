"""Evidence for actions on jobs: stacks are taken and kept before a job is touched."""

from __future__ import annotations

from collections.abc import Callable

from sentinel.core.actions import Answer, Reply
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible
from sentinel.slurm.client import SlurmClient
from sentinel.stacks.bundle import EvidenceNotSaved, save_bundle
from sentinel.stacks.gather import StacksLooker, StacksRequest
from sentinel.stacks.parse import dump_headline
from sentinel.stacks.recordings import recordings_of_job


def make_evidence_taker(
    looker: StacksLooker, client: SlurmClient, folder: str
) -> Callable[[str], Reply]:
    """A function that takes evidence for the id of a job or array element. It returns what was
    found and where it is, or why nothing was found."""

    def take_evidence(job: str) -> Reply:
        try:
            target, dump = looker.look_at_job(StacksRequest(job=job, evidence=True))
        except SentinelError as error:
            return Reply(Answer.REFUSED, f"no stacks: {error}")
        recorded = recordings_of_job(client, target, dump)
        said = (
            f"flight recorder: {recorded.standstill_words}; " if recorded.standstill_words else ""
        )
        try:
            where = f"evidence in {save_bundle(folder, client, target, dump, recorded)}"
        except EvidenceNotSaved as error:
            where = str(error)
        return Reply(Answer.ACCEPTED, visible(f"{said}{dump_headline(dump)}; {where}"))

    return take_evidence
