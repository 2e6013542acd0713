"""Decides which steps keep a chain alive."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from sentinel.chain.model import Chain, ChainLink


class SubmitLink(Struct, frozen=True):
    """Submit a link for this slot (epoch seconds) under this job name."""

    name: str
    slot: int


class ReleaseLink(Struct, frozen=True):
    """Release this link, which somebody holds. A held singleton job blocks its whole strand."""

    job: str


class MoveLink(Struct, frozen=True):
    """Let this link start at the given slot.

    Slurm makes a requeued link wait two minutes (slurm.conf(5), JobRequeue; also after its node
    died). Then it misses its turn and blocks the next link of its strand.
    """

    job: str
    slot: int


class CancelLink(Struct, frozen=True):
    """Cancel this link, which is surplus or can never run. `why` is a text for people."""

    job: str
    why: str


MendStep = SubmitLink | ReleaseLink | MoveLink | CancelLink


def plan_mending(
    chain: Chain,
    links: Sequence[ChainLink],
    now: float,
    *,
    me: str = "",
    tried: Collection[str] = (),
) -> tuple[MendStep, ...]:
    """The steps that the queue needs at this moment (epoch seconds). Empty if all is well.

    `links` are all jobs of the chain. `me` is the job that asks. `tried` are jobs that an earlier
    step has released or moved. If they are still held, they are replaced. A strand with a job in a
    state that no known Slurm prints gets no other: it may wait.
    """
    if chain.mode == "relay":
        slot = _handover_time(chain, links, now)
        found = _mend_strand(chain, chain.strand_names[0], slot, now, links, me, tried)
        return (*found, *_cancel_strangers(chain, links))
    missing: list[MendStep] = []
    turns = sorted((chain.next_slot(n, now), name) for n, name in enumerate(chain.strand_names))
    for slot, name in turns:  # the next turn comes first, because Slurm may not accept all
        missing += _mend_strand(chain, name, slot, now, links, me, tried)
    return (*missing, *_cancel_strangers(chain, links))


def has_successors(chain: Chain, links: Sequence[ChainLink], me: str = "") -> bool:
    """Whether every strand has a link that will run after `me`."""
    waiting = {
        link.name
        for link in links
        if link.is_waiting and link.job != me and not link.can_never_start
    }
    return waiting >= set(chain.strand_names)


def _mend_strand(
    chain: Chain,
    name: str,
    slot: int,
    now: float,
    links: Sequence[ChainLink],
    me: str,
    tried: Collection[str],
) -> tuple[MendStep, ...]:
    waiting = sorted(
        (link for link in links if link.name == name and link.is_waiting and link.job != me),
        key=lambda link: int(link.job),
    )
    bad = {link.job: why for link in waiting if (why := _unfit_reason(chain, link, tried))}
    good = [link for link in waiting if link.job not in bad]
    found: list[MendStep] = [CancelLink(job, why) for job, why in bad.items()]
    found += [CancelLink(link.job, f"{good[0].job} waits already") for link in good[1:]]
    found += [ReleaseLink(link.job) for link in good[:1] if link.is_held]
    found += [
        MoveLink(link.job, slot)
        for link in good[:1]
        if _is_delayed(chain, link, now) and link.job not in tried
    ]
    unknown = any(li.name == name and li.is_unknown and li.job != me for li in links)
    return tuple(found if good or unknown else [*found, SubmitLink(name, slot)])


def _is_delayed(chain: Chain, link: ChainLink, now: float) -> bool:
    """Whether the link's turn is over although Slurm has not begun to look for a node for it."""
    return link.waits_for_time and bool(link.slot) and now - link.slot >= chain.every


def _unfit_reason(chain: Chain, link: ChainLink, tried: Collection[str]) -> str:
    """Why a waiting link has to be replaced. Empty if it is fine."""
    if link.revision != chain.revision:
        return "of an older installation"
    if link.is_held and link.job in tried:
        return f"held and not to be released ({link.reason})"
    return ""


def _cancel_strangers(chain: Chain, links: Sequence[ChainLink]) -> list[MendStep]:
    """Cancel links of strands that only an older installation had."""
    return [
        CancelLink(link.job, "of an older installation")
        for link in links
        if link.is_waiting and link.name not in chain.strand_names
    ]


def _handover_time(chain: Chain, links: Sequence[ChainLink], now: float) -> int:
    """When the next link of a relay starts: `handover` seconds before the running one ends. Now if
    none is running."""
    ends = [link.ends for link in links if link.ends is not None and not link.is_waiting]
    return max(int(now), max(ends) - chain.handover) if ends else int(now)
