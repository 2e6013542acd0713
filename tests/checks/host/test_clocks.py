"""Clocks that disagree are told with what is sure of it; a slow answer makes nobody wrong."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.host.clocks import MUNGE_TTL_S, ClockOffset, compare_clocks, judge_clock
from sentinel.core.host_parts import ClockSync
from sentinel.core.model import Status
from sentinel.nodes.probe import NodeIdentity, NodeProbe, Unread
from tests.checks.host.test_host import Night, Way, told

AT = 1_795_000_000.0
ME = NodeIdentity(hostname="n", kernel="6", boot="b", uptime=9.0, time=0, uid=0)


def answer(ahead: float, took: float = 0.4) -> NodeProbe:
    """A node whose clock is so far ahead; it looked at it in the middle of the time."""
    me = replace(ME, time=int(AT + took / 2 + ahead))
    return NodeProbe(identity=me, asked=(AT, AT + took))


def offsets(**nodes: NodeProbe) -> dict[str, ClockOffset]:
    return compare_clocks(nodes)


@pytest.mark.parametrize("ahead", [-400.0, -30.0, -5.0, 5.0, 30.0, 400.0])
def test_the_one_of_many_that_is_wrong_is_found_with_its_offset(ahead: float) -> None:
    """The true offset lies within what is said to be known."""
    found = offsets(a=answer(0), b=answer(0), c=answer(ahead), d=answer(0))
    wrong = found.pop("c")
    assert abs(wrong.seconds - ahead) <= wrong.uncertainty
    assert wrong.certain > 1
    assert {one.certain for one in found.values()} == {0.0}


def test_who_asks_is_wrong_and_the_nodes_are_not() -> None:
    """All nodes are a minute ahead of this host, and agree."""
    found = offsets(a=answer(60), b=answer(60), c=answer(60))
    assert {one.certain for one in found.values()} == {0.0}
    assert offsets(a=answer(60))["a"].certain > 58


@pytest.mark.parametrize("took", [0.1, 2.0, 20.0])
def test_a_slow_answer_says_less(took: float) -> None:
    """Nobody is wrong by less than half of the time that the answer took."""
    assert offsets(a=answer(took / 2, took), b=answer(0), c=answer(0))["a"].certain <= 1
    far = offsets(a=answer(took + 5, took), b=answer(0), c=answer(0))["a"]
    assert far.uncertainty >= took / 2
    assert far.certain > 0


def test_a_node_that_told_no_time_is_not_compared() -> None:
    """Nor one of which nobody knows when it was asked."""
    unread = replace(answer(0), identity=Unread(kind="cut", why="x"))
    assert offsets(a=unread, b=replace(answer(9), asked=None)) == {}


@pytest.mark.parametrize(
    ("sync", "offset", "right"),
    [
        (ClockSync(word="Normal", offset=0.0002), None, []),
        (ClockSync(word="Insert second"), None, []),
        (ClockSync(word="yes"), ClockOffset(0.9, 0.1), []),
        # https://github.com/omniosorg/omnios-build/issues/2576
        (ClockSync(word="Normal", offset=-7.810536861), None, ["warning"]),
        (ClockSync(word="Not synchronised"), None, ["warning"]),
        (ClockSync(word="no"), ClockOffset(-3.0, 0.7), ["warning", "warning"]),
        (ClockSync(word="Holdover"), None, ["unknown"]),
        (None, ClockOffset(MUNGE_TTL_S + 2, 1.0), ["critical"]),
        (None, ClockOffset(1.5, 0.6), []),
    ],
)
def test_how_bad_a_clock_is(sync: Any, offset: Any, right: list[str]) -> None:
    """By what keeps it, and by the others; a word of tomorrow is unknown."""
    assert [status.value for status, _ in judge_clock(sync, offset, 1.0)] == right


def test_a_clock_is_told_at_the_second_look() -> None:
    """After a boot it takes minutes until a clock is in step."""
    night = Night()
    alone, kept = Way(clock=ClockSync(word="Not synchronised")), Way()
    assert told(night.look(alone)) == {}
    report = night.look(alone)
    assert told(report) == {"n1/clock": "warning"}
    (found,) = (f for f in report.findings if f.subject == "n1/clock")
    assert "munge" in found.guidance.impact
    assert told(night.look(kept)) == {"n1/clock": "ok"}
    assert told(Night(skip=["clock"]).look(alone)) == {}


def test_nodes_are_compared_in_the_check() -> None:
    """One of four is ten minutes behind; Slurm's messages from it are refused."""

    class Round(Way):
        def probe(self, nodes: Any, wants: Any, *, limit: float) -> Any:
            seen = super().probe(nodes, wants, limit=limit)
            return {
                name: replace(
                    probe,
                    identity=replace(probe.identity, time=int(AT) - 600 * (name == "n3")),
                    asked=(AT, AT + 0.3),
                )
                for name, probe in seen.items()
                if isinstance(probe, NodeProbe) and not isinstance(probe.identity, Unread)
            }

    night = Night(nodes="n[1-4]")
    night.look(Round())
    report = night.look(Round())
    bad = [f for f in report.findings if f.status is Status.CRITICAL]
    assert [f.subject for f in bad] == ["n3/clock"]
    assert bad[0].summary.startswith("the clock is 10m behind the other nodes'")


@pytest.mark.parametrize("fraction", [0.0, 0.35, 0.7, 0.95])
def test_a_node_tells_whole_seconds(fraction: float) -> None:
    """So its clock may be almost a second ahead of what it says, and is not told for that."""
    at, took = AT + fraction, 0.2
    me = replace(ME, time=int(at + took / 2))
    found = offsets(a=NodeProbe(identity=me, asked=(at, at + took)))["a"]
    assert abs(found.seconds) <= found.uncertainty
    assert found.certain == 0.0


def test_a_clock_that_was_right_in_between_counts_anew() -> None:
    """One bad look of three is none."""
    night, alone = Night(), Way(clock=ClockSync(word="no"))
    assert [told(night.look(way)) for way in (alone, Way(), alone)] == [{}, {}, {}]


def test_the_others_uncertainty_counts_too() -> None:
    """A quick answer among slow ones is no surer than they are."""
    found = offsets(a=answer(8), b=answer(0, 20.0), c=answer(0, 20.0), d=answer(0, 20.0))
    assert found["a"].uncertainty >= 10
