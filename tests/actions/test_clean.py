"""`clean`: what it sees, what it does, and what it says of both, on real directories."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sentinel.actions.action_rules import ActionRequester, ActionRules
from sentinel.actions.clean import CleanAction
from sentinel.actions.executor import ActionExecutor
from sentinel.clean.rules import RetentionRules
from sentinel.core.action_limits import ActionSettings, CleanLimits
from sentinel.core.actions import ActionOutcome, ActionRecord, Answer, Look, Reply
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest
from sentinel.proc import own_package
from tests.actions.model import Host, Time
from tests.clean.world import WHOLE, checkpoint, mounted, names, renewed
from tests.store.book_memory import BookState, MemoryBooks

RULES = RetentionRules(r"step(\d+)", complete=WHOLE).rules_text()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Five checkpoints."""
    for number in range(1, 6):
        checkpoint(tmp_path / "ckpt", number)
    return tmp_path / "ckpt"


def wish(root: Path, *wanted: str, rules: str = RULES) -> ActionRequest:
    params = {"rules": rules, "names": json.dumps(wanted)}
    return ActionRequest(action="clean", target=str(root), reason="old", params=params)


NOBODY: Any = None
"""Neither a view nor hands: this action needs none."""


def look(root: Path, *wanted: str, rules: str = RULES) -> Look:
    return CleanAction().look(wish(root, *wanted, rules=rules), NOBODY)


def perform(root: Path, *wanted: str, rules: str = RULES) -> Reply:
    return CleanAction().perform(wish(root, *wanted, rules=rules), NOBODY)


def test_it_looks_only_at_what_was_asked_for(root: Path) -> None:
    """Of that at what may go; the mark changes when one of them does."""
    before = look(root, "step1", "step2", "step5")
    assert (before.done, before.not_ready) == (False, "")
    assert before.text.startswith("2 to remove, ")
    assert before.text.endswith(": step1 … step2")
    (root / "step1").rename(root.parent / "aside")
    after = look(root, "step1", "step2")
    assert after.mark != before.mark
    assert after.text.endswith(": step2")


@pytest.mark.parametrize("wanted", [(), ("step5",), ("none",)])
def test_nothing_to_do_is_not_done(root: Path, wanted: tuple[str, ...]) -> None:
    """No names, one that has to stay, one that is not there."""
    seen = look(root, *wanted)
    assert bool(seen.not_ready) is (not wanted)
    assert bool(seen.unneeded) is bool(wanted)
    assert len(names(root)) == 5


@pytest.mark.parametrize("rules", ["", "{}", '{"match": "("}', "null"])
def test_rules_that_are_none_let_nothing_go(root: Path, rules: str) -> None:
    """A request that was cut or forged is no request for everything."""
    with pytest.raises(CannotTell):
        look(root, "step1", rules=rules)
    reply = perform(root, "step1", rules=rules)
    assert (reply.answer, len(names(root))) == (Answer.REFUSED, 5)


def test_what_was_removed_and_freed_is_told(root: Path) -> None:
    """In the words that the log keeps."""
    reply = perform(root, "step1", "step2")
    assert reply.answer is Answer.ACCEPTED
    assert re.fullmatch(r"2 removed, [0-9.]+ kB freed", reply.text)


@pytest.mark.root
def test_what_could_not_be_removed_is_told_beside_what_was(root: Path) -> None:
    """It is an error, and the rest is gone."""
    with mounted(root / "step1" / "inner"):
        renewed(root)
        reply = perform(root, "step1", "step2")
    assert reply.answer is Answer.REFUSED
    assert reply.text.startswith("1 removed, ")
    assert "'step1': another file system is mounted in it" in reply.text
    assert names(root) == ["step1", "step3", "step4", "step5"]


def test_a_root_that_is_gone_is_refused_in_one_line(root: Path) -> None:
    """Nothing was done, and why."""
    reply = perform(root / "none", "step1")
    assert reply.answer is Answer.REFUSED
    assert reply.text == f"{root}/none: No such file or directory"


def execute(root: Path, books: BookState, *wanted: str) -> ActionRecord:
    """What a process does about a request, from its record on."""
    limits = CleanLimits(per_hour=1000)
    actions = {"clean": ActionSettings(enabled=True, limits=limits)}
    rules = ActionRules(kinds={"clean": CleanAction()}, actions=actions)
    executor = ActionExecutor(rules, MemoryBooks(books), NOBODY, Host(Time(), "here"))
    executor.resolve_open_records()
    return executor.execute_request(wish(root, *wanted), ActionRequester(name="old"))


@contextmanager
def replaced(moment: str) -> Iterator[None]:
    """Another version is installed in the place of this one, `before` or `after` a removal."""
    own = CleanAction.perform
    with pytest.MonkeyPatch.context() as patch:

        def install() -> None:
            patch.setattr(own_package, "_BEGUN_WITH", None)
            patch.setattr(own_package, "__version__", "0.0.1")

        def perform(self: CleanAction, request: ActionRequest, hands: Any) -> Reply:
            if moment == "before":
                install()
            reply = own(self, request, hands)
            install()
            return reply

        patch.setattr(CleanAction, "perform", perform)
        yield


def test_a_removal_that_meets_another_version_was_not_tried(root: Path) -> None:
    """The last look was the old version's own. So the next process does it at once: what may still
    happen would keep the folder closed for ten minutes."""
    books = BookState()
    with replaced("before"):
        record = execute(root, books, "step1", "step2")
    assert (record.outcome, len(names(root))) == (ActionOutcome.WITHDRAWN, 5)
    assert "its helper programs wait for a restart" in record.detail
    assert execute(root, books, "step1", "step2").outcome is ActionOutcome.DONE
    assert names(root) == ["step3", "step4", "step5"]


@pytest.mark.root
def test_a_removal_that_failed_has_ended_although_nobody_can_look_again(root: Path) -> None:
    """The program has ended, so nothing happens later, and the next process goes on at once."""
    books = BookState()
    with replaced("after"), mounted(root / "step1" / "inner"):
        record = execute(root, books, "step1", "step2")
    assert record.outcome is ActionOutcome.ERROR
    assert "it could not be read afterwards: there is sentinel" in record.detail
    assert execute(root, books, "step1").outcome is ActionOutcome.DONE
    assert names(root) == ["step3", "step4", "step5"]
