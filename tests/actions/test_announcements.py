"""What people hear of sentinel's own actions, and what stays in the log alone."""

from typing import Any

import pytest

from sentinel.actions.announcements import (
    MAX_RECORDS,
    TERMINAL_WAIT_S,
    find_unannounced,
    list_announced_tokens,
    make_bulletins,
    make_outcome_token,
)
from sentinel.core.actions import ActionOutcome, ActionRecord
from sentinel.core.clock import shift_instant
from sentinel.core.model import Status
from sentinel.testing import START

CHECKS = {"drained", "sentinel"}


def record(outcome: ActionOutcome = ActionOutcome.DONE, **more: Any) -> ActionRecord:
    given: dict[str, Any] = {
        "id": "1", "action": "undrain", "target": "n1", "reason": "clean", "by": "drained",
        "at": START, "ended": START, "outcome": outcome, "detail": "now IDLE",
    }  # fmt: skip
    return ActionRecord(**{**given, **more})


LATE = shift_instant(START, TERMINAL_WAIT_S)
HAND = "alice@login by hand"
TOLD = [
    (record(), True, "done"),
    (record(ActionOutcome.ERROR), True, "Slurm refused"),
    (record(ActionOutcome.NO_EFFECT), True, "accepted, without effect"),
    (record(ActionOutcome.UNKNOWN, ended=None), True, "nobody knows yet"),
    (record(ActionOutcome.UNCLEAR), True, "nobody will ever know"),
    (record(ActionOutcome.INTENDED, ended=None), False, "still at it"),
    (record(ActionOutcome.WITHDRAWN), False, "not tried after all"),
    (record(ActionOutcome.REFUSED, rule="suspect"), True, "a person has to look"),
    (record(ActionOutcome.REFUSED, rule="breaker"), True, "sentinel has stopped acting"),
    (record(ActionOutcome.REFUSED, rule="cooldown"), False, "will be asked again"),
    (record(ActionOutcome.REFUSED, rule="disabled"), False, "the file says so"),
    (record(by=HAND), False, "the person at the terminal saw it"),
    (record(by=HAND, ended=LATE), True, "it was found out after the person had left"),
    (record(ActionOutcome.REFUSED, rule="suspect", by=HAND), False, "the person read it"),
]


@pytest.mark.parametrize(("one", "telling", "why"), TOLD, ids=[why for *_, why in TOLD])
def test_what_is_news(one: ActionRecord, telling: bool, why: str) -> None:
    """Each outcome that changed something, or needs a person; once."""
    assert find_unannounced([one], ()) == ([one] if telling else [])
    assert find_unannounced([one], [make_outcome_token(one)]) == []


def test_an_outcome_that_becomes_known_is_news_again() -> None:
    """Unknown was told; done is told too."""
    was, now = record(ActionOutcome.UNKNOWN, ended=None), record()
    assert find_unannounced([now], list_announced_tokens((), [was])) == [now]


def test_news_come_in_the_order_of_their_happening() -> None:
    """The log is read newest first."""
    records = [record(id="3"), record(id="2"), record(id="1")]
    assert [r.id for r in find_unannounced(records, ())] == ["1", "2", "3"]


def test_what_was_told_is_remembered_for_longer_than_a_look_lasts() -> None:
    """Else an old record in a larger look would be told twice; and yet it does not grow for ever."""
    told = [f"{n}:done" for n in range(2 * MAX_RECORDS)]
    kept = list_announced_tokens(told, [record(id="new")])
    assert (len(kept), kept[0], kept[-1]) == (2 * MAX_RECORDS, "1:done", "new:done")


def test_a_breaker_is_told_once_for_all_its_nodes() -> None:
    """Other records are messages of their own, since each has evidence of its own."""
    refused = [
        record(ActionOutcome.REFUSED, id=n, target=f"n{n}", rule="breaker", why="9 nodes left")
        for n in "123"
    ]
    told = make_bulletins([*refused, record(id="4"), record(id="5", target="n5")], CHECKS)
    assert [b.subject for b in told] == ["n[1-3]", "n1", "n5"]
    assert told[0].summary == "undrain n[1-3]: not done: 9 nodes left"
    assert told[0].status is Status.WARNING


def test_a_job_is_told_beside_the_alert_about_it() -> None:
    """The alert's subject is the configured name, the target a number."""
    (told,) = make_bulletins([record(action="requeue", target="4711", subject="train")], CHECKS)
    assert (told.subject, told.summary) == ("train", "requeue 4711: done: now IDLE")
    assert told.command.render() == "scontrol show job 4711 | cat -v"


def test_a_node_is_told_with_its_history() -> None:
    """Whatever is in its name is one word of the command."""
    told = make_bulletins([record(), record(id="2", target="a b")], CHECKS)
    assert [b.command.render() for b in told] == [
        "sentinel nodes list --history n1",
        "sentinel nodes list --history 'a b'",
    ]


def test_what_no_check_asked_for_is_sentinels_own() -> None:
    """A check that was renamed, or a person who has left."""
    assert [b.check for b in make_bulletins([record(by=HAND, ended=LATE)], CHECKS)] == ["sentinel"]


def test_targets_that_are_no_nodes_are_listed() -> None:
    """Untrusted text stays inert."""
    refused = [
        record(ActionOutcome.REFUSED, id=str(n), target=t, rule="breaker", why="w")
        for n, t in enumerate(["4711_[1-3]", "x\ny"])
    ]
    assert make_bulletins(refused, CHECKS)[0].subject == "4711_[1-3], x\\ny"
