"""A drain that a change erased unseen: it comes back, and what is newer than it stays."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace

from sentinel.actions.change_window import drain_again, inspect_change_window
from sentinel.actions.reboot import RebootAction
from sentinel.actions.undrain import UndrainAction
from sentinel.core.actions import ActionRecord, Answer, Reply
from sentinel.core.cluster import ControllerLogEntry, Node
from sentinel.core.errors import CannotTell
from sentinel.plugin import Action
from tests.actions.model import LOG_TIME
from tests.actions.test_guard import before

ACCEPTED, REFUSED = Reply(Answer.ACCEPTED), Reply(Answer.REFUSED, "Access denied")
UNDRAIN = UndrainAction()
ERASED = ControllerLogEntry("reason", "RMA 4711")
AGAIN = "sentinel: drained again: RMA 4711 (by author not known)"


class OneNode:
    """A Slurm of the node n1. Before each of our updates somebody gives it the next of `others` as its
    reason. Its log can be read if there are any."""

    def __init__(self, *, author: str = "", reply: Reply = ACCEPTED) -> None:
        self.kept: Node | None = Node(name="n1", state="IDLE")
        self.named, self.reply = author, reply
        self.others: list[str] = []
        self.log: list[str] | None = None
        self.is_silent = False
        self.told: list[str] = []

    def node(self, name: str) -> Node | None:
        if self.is_silent:
            raise CannotTell("slurmctld does not answer")
        return self.kept if name == "n1" else None

    def change(self, argv: Sequence[str]) -> Reply:
        self.told.append(argv[-1])
        if argv[1] != "update":
            return self.reply
        if self.log is not None:
            reasons = [*self.others[:1], argv[-1].removeprefix("Reason=")]
            self.log += [f"{LOG_TIME} update_node: node n1 reason set to: {r}" for r in reasons]
            del self.others[:1]
        if self.reply.answer is Answer.ACCEPTED and self.kept is not None:
            reason = argv[-1].removeprefix("Reason=")
            self.kept = replace(self.kept, flags=frozenset({"DRAIN"}), reason=reason)
        return self.reply

    def log_end(self) -> str:
        if self.log is None:
            raise CannotTell("no such file")
        return str(len(self.log))

    def log_since(self, end: str) -> str:
        if self.log is None:
            raise CannotTell("no such file")
        return "\n".join(self.log[int(end) :])

    def author(self, node: str, reason: str) -> str:
        assert (node, reason) == ("n1", "RMA 4711"), "who gave the others is known"
        return self.named


def again(
    slurm: OneNode, *more: ControllerLogEntry, kind: Action = UNDRAIN
) -> tuple[ActionRecord, str]:
    return drain_again(kind, before(1, "n1"), [ERASED, *more], cast("Any", slurm))


def test_a_node_that_cannot_be_seen_is_drained_again_all_the_same() -> None:
    """Slurm has accepted it; nobody can say more."""
    slurm = OneNode()
    slurm.is_silent = True
    record, told = again(slurm)
    assert told.endswith("given between the last look and the change; drained again")
    assert slurm.told == [record.commands[-1][-1]]
    assert slurm.told[0].startswith(f"Reason={AGAIN}")


def test_a_node_that_is_drained_for_another_reason_by_now_keeps_it() -> None:
    slurm = OneNode()
    slurm.kept = Node(name="n1", state="IDLE", flags=frozenset({"DRAIN"}), reason="bad fan")
    _, told = again(slurm)
    assert "not drained again, as by now it is IDLE+DRAIN" in told
    assert slurm.told == []


@pytest.mark.parametrize(
    ("reply", "is_gone", "is_silent", "says"),
    [
        (REFUSED, False, False, "(Access denied)"),
        (Reply(Answer.REFUSED, ""), False, False, "(IDLE)"),
        (ACCEPTED, True, False, "(Slurm knows no such node)"),
        (REFUSED, False, True, "(Access denied; slurmctld does not answer)"),
    ],
)
def test_what_could_not_be_drained_again_is_told_with_the_command(
    reply: Reply, is_gone: bool, is_silent: bool, says: str
) -> None:
    """The node takes jobs although somebody drained it: a person has to know."""
    slurm = OneNode(reply=reply)
    slurm.kept = None if is_gone else slurm.kept
    slurm.is_silent = is_silent
    _, told = again(slurm)
    assert f"could NOT be drained again {says}: scontrol update NodeName=n1 State=DRAIN" in told


def test_whom_accounting_names_stands_in_the_reason() -> None:
    slurm = OneNode(author="kim")
    _, told = again(slurm)
    assert "it replaced 'RMA 4711' by kim" in told
    assert slurm.kept is not None
    assert slurm.kept.reason.startswith("sentinel: drained again: RMA 4711 (by kim)")
    assert len(slurm.told) == 2


@pytest.mark.parametrize("now", [Node(name="n1", state="IDLE", reason="bad fan"), None])
def test_a_reason_that_is_not_ours_any_more_gets_no_names(now: Node | None) -> None:
    """Somebody wrote another one while accounting was asked, or took the node out of Slurm."""
    slurm = OneNode(author="kim")
    drained, looks = slurm.node, []

    def asked(name: str) -> Node | None:
        looks.append(name)
        return now if len(looks) > 2 else drained(name)

    slurm.node = asked  # type: ignore[method-assign]
    again(slurm)
    assert len(slurm.told) == 1


@pytest.mark.parametrize(
    ("others", "changes"), [([], 1), (["bad fan"], 2), (["bad fan", "bad disk", "a", "b"], 3)]
)
def test_a_reason_that_this_drain_replaced_too_stands_in_the_next(
    others: list[str], changes: int
) -> None:
    """Three times at most: who drains it in a loop is not fought."""
    slurm = OneNode(author="kim")
    slurm.log, slurm.others = [], list(others)
    slurm.author = lambda node, reason: ""  # type: ignore[method-assign]
    record, told = again(slurm)
    reasons = ["RMA 4711", *others[:3]]
    said = "; ".join(f"'{reason}' by author not known" for reason in reasons)
    assert told.startswith(f"it replaced {said}, given between")
    assert len(slurm.told) == len(record.commands) == changes
    assert slurm.kept is not None
    for reason in reasons[:changes]:
        assert f"{reason} (by author not known)" in slurm.kept.reason


def test_only_whose_author_the_log_does_not_name_is_asked_for() -> None:
    slurm = OneNode(author="kim")
    _, told = again(slurm, ControllerLogEntry("reason", "bad disk", frozenset({0})))
    assert "it replaced 'RMA 4711' by kim; 'bad disk' by root" in told
    assert slurm.kept is not None
    assert "RMA 4711 (by kim); bad disk (by root)" in slurm.kept.reason
    unknown = OneNode()
    _, told = again(unknown, ControllerLogEntry("drained", "x" * 200))
    assert f"'{'x' * 149}…' by slurmctld" in told
    assert len(unknown.told) == 1


def test_what_the_action_began_is_taken_back_before() -> None:
    """A reboot that was asked for would end what the person drained it for."""
    slurm = OneNode()
    record, _ = again(slurm, kind=RebootAction())
    assert slurm.told[0] == "n1"
    assert record.commands[0] == ("scontrol", "cancel_reboot", "n1")
    assert len(slurm.told) == 2


@pytest.mark.parametrize(
    ("seconds", "long"), [(None, "nobody knows how long"), (0.999, "999 ms"), (1.0, "1s")]
)
def test_how_long_nobody_watched_is_said(seconds: float | None, long: str) -> None:
    found = inspect_change_window(UNDRAIN, before(1, "n1"), cast("Any", OneNode()), seconds)
    assert found.text == f"unwatched, {long}: slurmctld's log: no such file"
    assert found.erased == ()
