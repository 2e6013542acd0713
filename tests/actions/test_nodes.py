"""`drain` and `undrain`: what they take for done, unneeded and unfit, and what they would run."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.actions.drain import DrainAction
from sentinel.actions.undrain import UndrainAction
from sentinel.core.cluster import Node
from sentinel.core.model import ActionRequest
from sentinel.slurm.node_states import (
    FLAGS,
    LONGEST_REASON,
    format_state,
    reason_params,
    tag_reason,
)
from tests.actions.world import node

IDLE, DRAINED = node("n1", drained=False), node("n1")


class View:
    """A Slurm that knows these nodes."""

    def __init__(self, *nodes: Node) -> None:
        self._nodes = {n.name: n for n in nodes}

    def node(self, name: str) -> Node | None:
        return self._nodes.get(name)


def request(action: str, **params: str) -> ActionRequest:
    return ActionRequest(action=action, target="n1", reason="bad GPU", params=params)


def flagged(*flags: str, **values: Any) -> Node:
    return replace(DRAINED, flags=frozenset({"DRAIN", *flags}), **values)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("bad GPU", "sentinel: bad GPU"),
        ("sentinel: bad GPU", "sentinel: bad GPU"),
        ('say "x"', "sentinel: say 'x'"),
        ("two\nlines\x1b[31m", "sentinel: two\\nlines\\x1b[31m"),
        ("temp=90 State=DOWN", "sentinel: temp:90 State:DOWN"),
        ("  many   blanks ", "sentinel: many blanks"),
        ("größer ☃", "sentinel: größer ☃"),
        ("\ud800", "sentinel: \\ud800"),
    ],
)
def test_a_reason_is_one_visible_line_with_our_tag(reason: str, told: str) -> None:
    """Doing it twice changes nothing: a record's reason finds its node again."""
    assert tag_reason(reason) == told
    assert tag_reason(told) == told


def test_a_long_reason_is_cut() -> None:
    """Before Slurm or a table has to."""
    assert len(tag_reason("x" * 10_000)) == LONGEST_REASON


def test_commands() -> None:
    """An argv each; UNDRAIN is the only state that never raises a DOWN node."""
    assert DrainAction().commands(request("drain")) == (
        ("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=sentinel: bad GPU"),
    )
    assert UndrainAction().commands(request("undrain")) == (
        ("scontrol", "update", "NodeName=n1", "State=UNDRAIN"),
    )


def test_a_drain_is_done_when_our_reason_is_there() -> None:
    """A node that somebody else drained is unneeded: its reason must not be lost."""
    drain, wish = DrainAction(), request("drain")
    assert not drain.look(wish, View(IDLE)).done
    ours = drain.look(wish, View(replace(DRAINED, reason="sentinel: bad GPU")))
    theirs = drain.look(wish, View(DRAINED))
    assert (ours.done, theirs.done) == (True, False)
    assert "Kill task failed" in theirs.unneeded


def test_a_drain_without_a_reason_is_not_ready() -> None:
    """Slurm would refuse it too."""
    assert DrainAction().look(replace(request("drain"), reason=" "), View(IDLE)).not_ready


@pytest.mark.parametrize("flag", ["POWERED_DOWN", "POWERING_UP", "POWER_UP"])
def test_a_drain_never_ends_a_job(flag: str) -> None:
    """Slurm requeues the jobs for which a node is being powered up when that is drained; one that
    sleeps for nobody can be drained."""
    for state, ready in (("ALLOCATED", False), ("MIXED", False), ("IDLE", True)):
        asleep = replace(IDLE, state=state, flags=frozenset({"CLOUD", flag}))
        assert bool(DrainAction().look(request("drain"), View(asleep)).not_ready) is not ready
    assert (
        not DrainAction().look(request("drain"), View(replace(IDLE, state="ALLOCATED"))).not_ready
    )


UNFIT_NODES = [
    *(flagged(flag) for flag in sorted(FLAGS) if not FLAGS[flag].may_act),
    flagged("A_WORD_OF_SLURM_31"),
    *(replace(DRAINED, state=state) for state in ("DOWN", "ERROR", "FUTURE", "UNKNOWN")),
]


@pytest.mark.parametrize("unfit", UNFIT_NODES, ids=format_state)
def test_an_undrain_only_of_a_node_that_is_up(unfit: Node) -> None:
    """Everything else means that nobody knows what it will be."""
    look = UndrainAction().look(request("undrain"), View(unfit))
    assert look.not_ready.startswith("it is ")
    assert not look.done


@pytest.mark.parametrize("fit", [flagged(), flagged(state="MIXED"), flagged("PLANNED")])
def test_a_drained_node_that_is_up_can_be_undrained(fit: Node) -> None:
    """Also one that still runs jobs, unless the request demands that none does."""
    assert not UndrainAction().look(request("undrain"), View(fit)).not_ready
    strict = UndrainAction().look(request("undrain", idle="yes"), View(fit)).not_ready
    assert bool(strict) is (fit.state == "MIXED")


def test_a_node_that_is_not_drained_needs_no_undrain() -> None:
    """23.11 to 25.11 leave stale reasons on idle nodes."""
    stale = replace(DRAINED, flags=frozenset())
    look = UndrainAction().look(request("undrain"), View(stale))
    assert look.done
    assert look.unneeded


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("reason", "RMA 4711", "its reason changed from 'Kill task failed' to 'RMA 4711'"),
        ("reason_user", "alice", "its reason user changed from 'root' to 'alice'"),
        ("reason_time", 1_700_000_001, "its reason time changed from '1700000000'"),
    ],
)
@pytest.mark.parametrize("kind", [DrainAction(), UndrainAction()])
def test_the_reason_that_was_seen_must_still_be_there(
    kind: DrainAction | UndrainAction, field: str, value: object, says: str
) -> None:
    """Reason, who gave it and when: the same text given anew is another event."""
    wish = request("undrain", **reason_params(DRAINED))
    assert not kind.look(wish, View(DRAINED)).not_ready
    assert says in kind.look(wish, View(replace(DRAINED, **{field: value}))).not_ready
    assert kind.look(wish, View(DRAINED)).mark != (
        kind.look(wish, View(replace(DRAINED, reason="RMA"))).mark
    )


def test_an_undrain_notes_every_flag() -> None:
    """What changes between the proof and the change stops it, be it a flag that nobody knows."""
    wish, looks = request("undrain"), [flagged(), flagged("RESERVED"), flagged("QUARANTINED")]
    assert len({UndrainAction().look(wish, View(node)).mark for node in looks}) == 3


@pytest.mark.parametrize("kind", [DrainAction(), UndrainAction()])
def test_a_node_that_slurm_does_not_know(kind: DrainAction | UndrainAction) -> None:
    """Is not ready for anything."""
    assert kind.look(request("drain"), View()).not_ready == "Slurm knows no such node"
