"""The marks of a chain: what is written down about each link before it is submitted. Pure.

A link is known by the job id that sbatch returned. If none came back (a crash, a time-out), it is
known by its name, its owner and its time of submission. A comment proves nothing, because a site
may demand, rewrite or refuse one.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.chain.model import Chain, ChainLink

CLOCKS_DIFFER_S = 300.0
"""How far the clocks of two hosts of a cluster may differ: munge refuses a request that is five
minutes old or of the future (munge(1), --ttl)."""


class LinkMark(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of `submitted.jsonl`: a link for this slot was about to be submitted at `at` (epoch
    seconds). `job` is its job id, empty until sbatch has returned one."""

    name: str
    slot: int
    revision: str
    at: float
    job: str = ""


def recognise_links(
    chain: Chain, links: Sequence[ChainLink], marks: Sequence[LinkMark]
) -> tuple[list[ChainLink], list[LinkMark]]:
    """The links with slot and revision of their marks, and new marks for jobs whose ids never came
    back.

    `links` have what their comments say, as sentinel before 0.1.0 wrote it. It counts only for a
    job without a mark. Without that as well, a job belongs to this installation unless it is older,
    and while a submission of that name is unanswered: nothing is cancelled because a clock is wrong.
    """
    by_job = {(mark.job, mark.name): mark for mark in marks if mark.job}
    answered = {(mark.name, mark.slot, mark.at) for mark in marks if mark.job}
    waiting = dict.fromkeys(mark for mark in marks if not mark.job)
    unanswered = [mark for mark in waiting if (mark.name, mark.slot, mark.at) not in answered]
    known: list[ChainLink] = []
    adopted: list[LinkMark] = []
    for link in sorted(links, key=lambda link: int(link.job)):
        mark = by_job.get((link.job, link.name))
        if mark is None and (found := _find_unanswered(link, unanswered)):
            unanswered.remove(found)
            mark = replace(found, job=link.job)
            adopted.append(mark)
        if mark:
            link = replace(link, slot=mark.slot, revision=mark.revision)
        elif not link.revision and not _is_older(chain, link, unanswered):
            link = replace(link, revision=chain.revision)
        known.append(link)
    return known, adopted


def may_be_submission(began: float, submitted: float) -> bool:
    """Whether a submission that began at that time can have made a job that was submitted at the
    other one (epoch seconds by two clocks). slurmctld may read the request later."""
    return -CLOCKS_DIFFER_S <= submitted - began <= 2 * CLOCKS_DIFFER_S


def _find_unanswered(link: ChainLink, marks: Sequence[LinkMark]) -> LinkMark | None:
    """The mark of this name that is nearest to the job's time of submission. A job with a comment of
    its own revision belongs to no mark."""
    if link.submitted is None or link.revision:
        return None
    submitted = link.submitted
    near = [m for m in marks if m.name == link.name and may_be_submission(m.at, submitted)]
    return min(near, key=lambda mark: abs(mark.at - submitted), default=None)


def _is_older(chain: Chain, link: ChainLink, unanswered: Sequence[LinkMark]) -> bool:
    """Whether a job that nothing is known of was submitted before this installation."""
    if any(mark.name == link.name and mark.revision == chain.revision for mark in unanswered):
        return False
    submitted = chain.installed if link.submitted is None else link.submitted
    return submitted < chain.installed - CLOCKS_DIFFER_S
