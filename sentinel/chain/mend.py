"""What has to be done so that a chain goes on."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from sentinel.chain.model import Chain, Link


class Submit(Struct, frozen=True):
    """A link for this slot (epoch seconds), under this job name."""

    name: str
    slot: int


class Release(Struct, frozen=True):
    """Somebody holds this link: a singleton that is held holds up its whole strand."""

    job: str


class Move(Struct, frozen=True):
    """A link that was requeued waits two minutes (slurm.conf(5), JobRequeue; a node that died the
    same), past its turn and in the way of the next of its strand: let it begin at this slot."""

    job: str
    slot: int


class Cancel(Struct, frozen=True):
    """A link too many, or one that can never run; `why` is for people."""

    job: str
    why: str


Step = Submit | Release | Move | Cancel


def steps(
    chain: Chain,
    links: Sequence[Link],
    now: float,
    *,
    me: str = "",
    tried: Collection[str] = (),
) -> tuple[Step, ...]:
    """What is missing in the queue at this moment (epoch seconds); empty when all is well.

    `links` are all of the chain's jobs, `me` is the one that asks. `tried`: those that were
    tried to be released or moved before; still held, they are replaced.
    """
    if chain.mode == "relay":
        slot = _handover(chain, links, now)
        found = _strand(chain, chain.names[0], slot, now, links, me, tried)
        return (*found, *_strangers(chain, links))
    missing: list[Step] = []
    turns = sorted((chain.next_slot(n, now), name) for n, name in enumerate(chain.names))
    for slot, name in turns:  # the next turn first: not all may be taken
        missing += _strand(chain, name, slot, now, links, me, tried)
    return (*missing, *_strangers(chain, links))


def whole(chain: Chain, links: Sequence[Link], me: str = "") -> bool:
    """Whether every strand has a link that will run after `me`."""
    waiting = {link.name for link in links if link.waits and link.job != me and not link.hopeless}
    return waiting >= set(chain.names)


def _strand(
    chain: Chain,
    name: str,
    slot: int,
    now: float,
    links: Sequence[Link],
    me: str,
    tried: Collection[str],
) -> tuple[Step, ...]:
    waiting = sorted(
        (link for link in links if link.name == name and link.waits and link.job != me),
        key=lambda link: int(link.job),
    )
    bad = {link.job: why for link in waiting if (why := _unfit(chain, link, tried))}
    good = [link for link in waiting if link.job not in bad]
    found: list[Step] = [Cancel(job, why) for job, why in bad.items()]
    found += [Cancel(link.job, f"{good[0].job} waits already") for link in good[1:]]
    found += [Release(link.job) for link in good[:1] if link.held]
    found += [
        Move(link.job, slot)
        for link in good[:1]
        if _delayed(chain, link, now) and link.job not in tried
    ]
    return tuple(found if good else [*found, Submit(name, slot)])


def _delayed(chain: Chain, link: Link, now: float) -> bool:
    """Whether its turn is over and Slurm does not even look for a node for it."""
    return link.by_clock and bool(link.slot) and now - link.slot >= chain.every


def _unfit(chain: Chain, link: Link, tried: Collection[str]) -> str:
    """Why a waiting link has to be replaced, or an empty string."""
    if link.revision != chain.revision:
        return "of an older installation"
    if link.held and link.job in tried:
        return f"held and not to be released ({link.reason})"
    return ""


def _strangers(chain: Chain, links: Sequence[Link]) -> list[Step]:
    """Links of a strand that an older installation had."""
    return [
        Cancel(link.job, "of an older installation")
        for link in links
        if link.waits and link.name not in chain.names
    ]


def _handover(chain: Chain, links: Sequence[Link], now: float) -> int:
    """When the next of a relay begins: so long before the running one ends."""
    ends = [link.ends for link in links if link.ends is not None and not link.waits]
    return max(int(now), max(ends) - chain.handover) if ends else int(now)
