"""What is news in the ledger of nodes, and when a node is said to have left."""

import pytest
from msgspec.structs import replace

from sentinel.core.actions import NodeReading
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.cluster import Node
from sentinel.nodes.history import CLOSE, held_out, is_out, news
from sentinel.testing import START

IDLE = Node(name="n1", state="IDLE")
WHEN = START.wall // SECOND - 7200
DRAINED = replace(
    IDLE, flags=frozenset({"DRAIN"}), reason="RMA", reason_user="root", reason_time=WHEN
)


@pytest.mark.parametrize(
    ("state", "flags", "out"),
    [
        ("IDLE", [], False),
        ("ALLOCATED", ["COMPLETING"], False),
        ("MIXED", ["PLANNED"], False),
        ("IDLE", ["POWERED_DOWN"], False),
        ("IDLE", ["DRAIN"], True),
        ("ALLOCATED", ["DRAIN"], True),
        ("IDLE", ["NOT_RESPONDING"], True),
        ("IDLE", ["FAIL"], True),
        ("IDLE", ["INVALID_REG"], True),
        ("DOWN", [], True),
        ("ERROR", [], True),
        # asleep, it is silent; awake it must not be
        ("IDLE", ["POWERED_DOWN", "NOT_RESPONDING"], False),
        ("IDLE", ["POWERING_UP", "NOT_RESPONDING"], False),
        ("IDLE", ["POWERED_DOWN", "DRAIN"], True),
        ("DOWN", ["POWERED_DOWN"], True),
        # Slurm reboots it as it was told
        ("IDLE", ["REBOOT_ISSUED"], False),
        ("DOWN", ["REBOOT_ISSUED", "NOT_RESPONDING"], False),
    ],
)
def test_who_is_out_of_service(state: str, flags: list[str], out: bool) -> None:
    """Wrong, or said to be wrong; powered down to save energy is neither."""
    assert is_out(replace(IDLE, state=state, flags=frozenset(flags))) is out


@pytest.mark.parametrize(
    ("reason", "out"),
    [("Reboot ASAP", False), ("reboot for the kernel", False), ("RMA", True), ("", True)],
)
def test_a_reboots_own_drain_is_no_absence(reason: str, out: bool) -> None:
    """`scontrol reboot ASAP` drains the node with that reason; a drain for another reason stays one
    while the node reboots."""
    flags = frozenset({"DRAIN", "REBOOT_ISSUED"})
    assert is_out(replace(IDLE, flags=flags, reason=reason)) is out
    assert is_out(replace(IDLE, flags=frozenset({"DRAIN"}), reason=reason))


def test_a_healthy_node_is_no_news() -> None:
    """20,000 of them cost nothing; being busy is no news either. One that is down without a word,
    or up with a reason, is."""
    assert list(news([IDLE, replace(IDLE, state="ALLOCATED")], {}, START, START)) == []
    odd = [replace(IDLE, state="DOWN"), replace(IDLE, reason="was slow")]
    assert [r.out for r in news(odd, {}, START, START)] == [True, False]


def test_when_a_node_left() -> None:
    """Now, where it was looked at lately; else when its reason was set: a sentinel that was away
    for a weekend must not take all of that for a catastrophe."""
    assert CLOSE == 600  # ten minutes: docs and the meaning of a catastrophe rest on it
    lately, long_ago = shift_instant(START, -CLOSE + 1), shift_instant(START, -CLOSE)
    cases = {
        lately: START,
        long_ago: Instant(wall=WHEN * SECOND),
        replace(long_ago, wall=START.wall): Instant(wall=WHEN * SECOND),
    }
    for looked, left in cases.items():
        [reading] = news([DRAINED], {}, looked, START)
        assert reading.left == left
    [reading] = news([replace(DRAINED, reason_time=None)], {}, long_ago, START)
    assert reading.left == START


def test_the_first_look_of_all_dates_nothing() -> None:
    """What was drained before sentinel came did not leave now; its reason is kept all the same."""
    [reading] = news([DRAINED], {}, None, START)
    assert (reading.left, reading.reason, reading.out) == (None, "RMA", True)


def test_a_life_in_the_ledger() -> None:
    """A line for every reason and for leaving and coming back, none for what is as it was; only
    leaving counts as leaving."""
    killed = replace(DRAINED, reason="Kill task failed", reason_time=WHEN + 60)
    noted = replace(IDLE, reason="was slow", reason_user="root", reason_time=WHEN + 90)
    last: dict[str, NodeReading] = {}
    written = []
    for step, node in enumerate([IDLE, DRAINED, DRAINED, killed, IDLE, IDLE, noted, killed]):
        for reading in news([node], last, START, shift_instant(START, step)):
            last["n1"] = reading
            written.append((step, reading.reason, reading.out, reading.left is not None))
    assert written == [
        (1, "RMA", True, True),
        (3, "Kill task failed", True, False),
        (4, "", False, False),
        (6, "was slow", False, False),
        (7, "Kill task failed", True, True),
    ]


@pytest.mark.parametrize(
    ("state", "flags", "reason", "somebody"),
    [
        ("IDLE", ["DRAIN"], "RMA", True),
        ("DOWN", [], "RMA", True),
        ("DOWN", ["DRAIN", "NOT_RESPONDING"], "Not responding", True),
        ("IDLE", ["FAIL"], "", True),
        ("DOWN", ["NOT_RESPONDING"], "Not responding", False),
        ("ALLOCATED", ["NOT_RESPONDING"], "", False),
    ],
)
def test_whom_somebody_returned(state: str, flags: list[str], reason: str, somebody: bool) -> None:
    """Slurm itself takes back only what it had found silent."""
    out = replace(IDLE, state=state, flags=frozenset(flags), reason=reason)
    [before] = news([out], {}, START, START)
    later = shift_instant(START, 60)
    [back] = news([IDLE], {"n1": before}, START, later)
    assert back.returned == (later if somebody else None)
    assert [r.returned for r in news([DRAINED], {"n1": back}, START, later)] == [None]


def test_a_return_counts_before_slurmd_is_heard() -> None:
    """scontrol's UNDRAIN and RESUME leave a node silent until it registers, its reason as it was:
    the return is of that moment, once."""
    [before] = news([DRAINED], {}, START, START)
    later, after = shift_instant(START, 60), shift_instant(START, 65)
    silent = replace(DRAINED, flags=frozenset({"NOT_RESPONDING"}))
    [back] = news([silent], {"n1": before}, START, later)
    assert (back.returned, back.out, back.left) == (later, True, None)
    [heard] = news([replace(silent, flags=frozenset())], {"n1": back}, START, after)
    assert (heard.returned, heard.out) == (None, False)
    assert [r.returned for r in news([DRAINED], {"n1": back}, START, after)] == [None]


def test_who_is_still_out_has_not_returned() -> None:
    """Another reason for the same absence is no return."""
    [before] = news([DRAINED], {}, START, START)
    later = shift_instant(START, 60)
    [again] = news([replace(DRAINED, reason="disk")], {"n1": before}, START, later)
    assert (again.out, again.returned, again.left) == (True, None, None)


def test_nobody_keeps_out_a_node_that_reboots() -> None:
    """Its DRAIN is the reboot's own, so the end of it is no return from an absence."""
    reboots = replace(IDLE, flags=frozenset({"DRAIN", "REBOOT_ISSUED"}), reason="Reboot ASAP")
    assert not held_out(reboots)
    assert held_out(replace(reboots, flags=frozenset({"DRAIN"})))
    [noted] = news([reboots], {}, START, START)
    assert (noted.out, noted.left) == (False, None)
    [over] = news([IDLE], {"n1": noted}, START, shift_instant(START, 60))
    assert over.returned is None


def test_an_older_answer_is_no_news() -> None:
    """A pass may still believe a list from before a command by hand."""
    [before] = news([DRAINED], {}, START, START)
    [back] = news([IDLE], {"n1": before}, START, shift_instant(START, 5))
    for seconds in (2, 4.5):
        assert list(news([DRAINED], {"n1": back}, START, shift_instant(START, seconds))) == []
    assert len(list(news([DRAINED], {"n1": back}, START, shift_instant(START, 5)))) == 1


def test_who_gave_a_reason_and_when_is_news() -> None:
    """The same words of another person, or of another day."""
    [known] = news([DRAINED], {}, START, START)
    for other in ({"reason_user": "eve"}, {"reason_time": WHEN + 1}):
        [reading] = news([replace(DRAINED, **other)], {"n1": known}, START, START)
        assert reading.left is None


@pytest.mark.parametrize(("newer", "news_of"), [(-1.0, 1), (0.0, 1), (0.5, 0), (1.0, 0)])
def test_an_answer_that_others_have_overtaken_is_no_news(newer: float, news_of: int) -> None:
    """Whoever asked Slurm later has seen more, also when it was half a second."""
    [before] = news([DRAINED], {}, START, shift_instant(START, newer))
    changed = replace(DRAINED, reason="disk")
    assert len(list(news([changed], {"n1": before}, START, START))) == news_of


@pytest.mark.parametrize(
    "change",
    [{"reason": "disk"}, {"reason_user": "ann"}, {"reason_time": WHEN + 1}, {"flags": frozenset()}],
)
def test_each_part_of_a_reason_is_news(change: dict[str, object]) -> None:
    """The same words by somebody else, or set again, are another reason."""
    [before] = news([DRAINED], {}, START, START)
    assert list(news([DRAINED], {"n1": before}, START, START)) == []
    assert len(list(news([replace(DRAINED, **change)], {"n1": before}, START, START))) == 1


@pytest.mark.parametrize(
    ("state", "reason", "held"),
    [("DOWN", "Not responding", False), ("DOWN", "RMA", True), ("IDLE", "RMA", False)],
)
def test_who_is_held_out(state: str, reason: str, held: bool) -> None:
    """Slurm's own word holds nobody; a reason alone holds nobody either."""
    assert held_out(replace(IDLE, state=state, reason=reason)) is held
    assert held_out(replace(IDLE, state="IDLE", flags=frozenset({"DRAIN", "NOT_RESPONDING"})))
