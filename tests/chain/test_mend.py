"""What is missing in the queue, for every state it may be in."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.chain.mend import (
    CancelLink,
    MendStep,
    MoveLink,
    ReleaseLink,
    SubmitLink,
    has_successors,
    plan_mending,
)
from sentinel.chain.model import Chain, ChainLink
from sentinel.core.errors import Invalid

CHAIN = Chain(name="s", every=600, command=("sentinel",), revision="r1", strands=2)
NOW = 6000.0 + 30  # slot 6000 is strand a's: 6000 / 600 is even
A, B = "s-a", "s-b"


def link(job: int, name: str, state: str = "PENDING", **more: object) -> ChainLink:
    return ChainLink(**{"job": str(job), "name": name, "state": state, "revision": "r1", **more})  # type: ignore[arg-type]


HELD = {"reason": "JobHeldUser"}


@pytest.mark.parametrize(
    ("links", "me", "tried", "expected"),
    [
        pytest.param(
            [], "", (), (SubmitLink(B, 6600), SubmitLink(A, 7200)), id="the next turn first"
        ),
        pytest.param([link(2, A), link(3, B)], "", (), (), id="both wait"),
        pytest.param([link(3, B)], "", (), (SubmitLink(A, 7200),), id="one was cancelled"),
        pytest.param(
            [link(1, A, "RUNNING"), link(3, B)], "1", (), (SubmitLink(A, 7200),), id="my successor"
        ),
        pytest.param(
            [link(1, A), link(3, B)], "1", (), (SubmitLink(A, 7200),), id="requeued, I still wait"
        ),
        pytest.param(
            [link(1, A, "RUNNING"), link(2, A), link(3, B)], "1", (), (), id="I was requeued"
        ),
        pytest.param(
            [link(10, A), link(9, A), link(3, B)],
            "",
            (),
            (CancelLink("10", "9 waits already"),),
            id="two submitted at once: the older stays, by number and not by text",
        ),
        pytest.param([link(2, A, **HELD), link(3, B)], "", (), (ReleaseLink("2"),), id="held"),
        pytest.param(
            [link(2, A, **HELD), link(3, B)],
            "",
            ("2",),
            (CancelLink("2", "held and not to be released (JobHeldUser)"), SubmitLink(A, 7200)),
            id="held, and it could not be released",
        ),
        pytest.param(
            [link(2, A, revision="r0"), link(3, B)],
            "",
            (),
            (CancelLink("2", "of an older installation"), SubmitLink(A, 7200)),
            id="of an older installation",
        ),
    ],
)
def test_what_is_missing(
    links: list[ChainLink], me: str, tried: tuple[str, ...], expected: tuple[MendStep, ...]
) -> None:
    """Each strand has one link that waits; nothing is done twice."""
    assert plan_mending(CHAIN, links, NOW, me=me, tried=tried) == expected


REQUEUED: dict[str, Any] = {"reason": "BeginTime", "slot": 5400}
"""Its turn was the slot before that of now."""


@pytest.mark.parametrize(
    ("links", "tried", "expected"),
    [
        ([link(2, A), link(3, B, **REQUEUED)], (), (MoveLink("3", 6600),)),
        ([link(2, A), link(3, B, **REQUEUED)], ("3",), ()),
        (
            [link(2, A), link(3, B, **REQUEUED), link(4, B, slot=6600)],
            (),
            (CancelLink("4", "3 waits already"), MoveLink("3", 6600)),
        ),
        ([link(2, A), link(3, B, reason="Resources", slot=5400)], (), ()),
        ([link(2, A), link(3, B, reason="BeginTime", slot=5431)], (), ()),
        ([link(2, A), link(3, B, reason="BeginTime", slot=6600)], (), ()),
        ([link(2, A), link(3, B, reason="BeginTime")], (), ()),
    ],
    ids=[
        "two minutes are longer than its turn",
        "Slurm does not move it",
        "and its successor waits behind it",
        "without a free node",
        "its turn is not over",
        "its turn is to come",
        "nobody knows its turn",
    ],
)
def test_a_requeued_link_begins_with_its_next_turn(
    links: list[ChainLink], tried: tuple[str, ...], expected: tuple[MendStep, ...]
) -> None:
    """Slurm lets it wait for two minutes, and its strand with it."""
    assert plan_mending(CHAIN, links, NOW, tried=tried) == expected


def test_three_strands_by_default() -> None:
    """While one starts, two more wait: losing it and one of those ends nothing."""
    chain = Chain(name="s", every=600, command=("sentinel",), revision="r1")
    found = [step for step in plan_mending(chain, [], NOW) if isinstance(step, SubmitLink)]
    assert {step.name for step in found} == {A, B, "s-c"}
    assert sorted(step.slot for step in found) == [6600, 7200, 7800]


def test_a_chain_of_one_strand_takes_every_slot() -> None:
    """Where few jobs may be queued; links of the strand that was given up go."""
    chain = replace(CHAIN, strands=1)
    assert plan_mending(chain, [], NOW) == (SubmitLink(A, 6600),)
    assert plan_mending(chain, [link(1, A), link(2, B)], NOW) == (
        CancelLink("2", "of an older installation"),
    )


def test_mending_what_was_mended_changes_nothing() -> None:
    """Whatever the steps are, once done they are done."""
    found = [
        link(number, step.name)
        for number, step in enumerate(plan_mending(CHAIN, [], NOW), 1)
        if isinstance(step, SubmitLink)
    ]
    assert plan_mending(CHAIN, found, NOW) == ()
    assert has_successors(CHAIN, found)


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([link(1, A), link(2, B)], True),
        ([link(1, A)], False),
        ([link(1, A), link(2, B, "RUNNING")], False),
        ([link(1, A), link(2, B, reason="PartitionTimeLimit")], False),
        ([link(1, A), link(2, B, reason="Resources")], True),
    ],
)
def test_a_chain_goes_on_only_with_links_that_can_start(
    links: list[ChainLink], expected: bool
) -> None:
    """A limit above the partition's is no waiting for a turn."""
    assert has_successors(CHAIN, links) is expected


def test_a_relay_hands_over_before_its_end() -> None:
    """The next begins ten minutes before the running one ends; at once where none runs."""
    chain = replace(CHAIN, mode="relay", strands=1, time_limit=86400)
    running = link(1, A, "RUNNING", ends=90_000)
    assert plan_mending(chain, [running], NOW, me="1") == (SubmitLink(A, 90_000 - 600),)
    assert plan_mending(chain, [], NOW) == (SubmitLink(A, int(NOW)),)
    assert plan_mending(chain, [running, link(2, A)], NOW, me="1") == ()


@pytest.mark.parametrize(("now", "slot"), [(6000.0, 6000), (6599.9, 6000), (6600.0, 6600)])
def test_slots_are_absolute(now: float, slot: int) -> None:
    """Multiples of the spacing since 1970: a late link delays no other."""
    assert CHAIN.slot_at(now) == slot


@pytest.mark.parametrize("every", [4, 0, -60])
def test_a_spacing_that_slurm_cannot_keep_is_refused(every: int) -> None:
    """With the option that was meant."""
    with pytest.raises(Invalid, match="--every must be 5s or longer"):
        replace(CHAIN, every=every).__post_init__()
