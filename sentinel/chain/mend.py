"""What has to be done so that a chain goes on."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from sentinel.chain.model import Chain, ChainLink


class SubmitLink(Struct, frozen=True):
    """A link for this slot (epoch seconds), under this job name."""

    name: str
    slot: int


class ReleaseLink(Struct, frozen=True):
    """Somebody holds this link: a singleton that is held holds up its whole strand."""

    job: str


class MoveLink(Struct, frozen=True):
    """A link that was requeued waits two minutes (slurm.conf(5), JobRequeue; a node that died the
    same), past its turn and in the way of the next of its strand: let it begin at this slot."""

    job: str
    slot: int


class CancelLink(Struct, frozen=True):
    """A link too many, or one that can never run; `why` is for people."""

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
    """What is missing in the queue at this moment (epoch seconds); empty when all is well.

    `links` are all of the chain's jobs, `me` is the one that asks. `tried`: those that were
    tried to be released or moved before; still held, they are replaced.
    """
    if chain.mode == "relay":
        slot = _handover_time(chain, links, now)
        found = _mend_strand(chain, chain.strand_names[0], slot, now, links, me, tried)
        return (*found, *_cancel_strangers(chain, links))
    missing: list[MendStep] = []
    turns = sorted((chain.next_slot(n, now), name) for n, name in enumerate(chain.strand_names))
    for slot, name in turns:  # the next turn first: not all may be taken
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
    return tuple(found if good else [*found, SubmitLink(name, slot)])


def _is_delayed(chain: Chain, link: ChainLink, now: float) -> bool:
    """Whether its turn is over and Slurm does not even look for a node for it."""
    return link.waits_for_time and bool(link.slot) and now - link.slot >= chain.every


def _unfit_reason(chain: Chain, link: ChainLink, tried: Collection[str]) -> str:
    """Why a waiting link has to be replaced, or an empty string."""
    if link.revision != chain.revision:
        return "of an older installation"
    if link.is_held and link.job in tried:
        return f"held and not to be released ({link.reason})"
    return ""


def _cancel_strangers(chain: Chain, links: Sequence[ChainLink]) -> list[MendStep]:
    """Links of a strand that an older installation had."""
    return [
        CancelLink(link.job, "of an older installation")
        for link in links
        if link.is_waiting and link.name not in chain.strand_names
    ]


def _handover_time(chain: Chain, links: Sequence[ChainLink], now: float) -> int:
    """When the next of a relay begins: so long before the running one ends."""
    ends = [link.ends for link in links if link.ends is not None and not link.is_waiting]
    return max(int(now), max(ends) - chain.handover) if ends else int(now)
