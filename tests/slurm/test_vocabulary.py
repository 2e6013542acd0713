"""One table for each kind of Slurm's words: each word answers every question, others none."""

from pathlib import Path

import pytest

from sentinel.slurm import drain_reasons, pending_reasons
from sentinel.slurm.drain_reasons import REASON_CLASSES, classify_reason
from sentinel.slurm.job_states import JOB_STATES, JobState, Phase, state_meaning
from sentinel.slurm.node_states import BASES, FLAGS, can_work, page_word, unfit_reason
from sentinel.slurm.pending_reasons import REASONS, TEXTS, ReasonEnd, explain_reason
from sentinel.status.node_states import (
    STATES_WORST_FIRST,
    get_state_word,
)
from tests.checks.nodes.test_nodes import node

UNHEARD = "A_WORD_OF_SLURM_31"
ROOT = Path(__file__).parents[2] / "sentinel"


@pytest.mark.parametrize(("word", "state"), JOB_STATES.items())
def test_a_job_state_answers_every_question(word: str, state: JobState) -> None:
    """How an end is told, where it is one; a death and what may be cured are ends."""
    assert (state.phase is Phase.OVER) == bool(state.words)
    assert not (state.is_death or state.may_resubmit) or state.phase is Phase.OVER
    assert state_meaning(f"{word} by 1000") is state


@pytest.mark.parametrize(
    "word",
    ["FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "LAUNCH_FAILED",
     "RECONFIG_FAIL"],
)  # fmt: skip
def test_every_failure_is_a_death(word: str) -> None:
    """None of them is a plan of the job's owner."""
    assert state_meaning(word).is_death


def test_an_unknown_job_state_is_unknown() -> None:
    """No end, no death, and nothing is submitted again for it."""
    state = state_meaning(UNHEARD)
    assert (state.phase, state.is_death, state.may_resubmit) == (Phase.UNCLEAR, False, False)


@pytest.mark.parametrize("word", [*BASES, *FLAGS])
def test_a_node_word_answers_every_question(word: str) -> None:
    """The page has a rank for its word; what is out does not work; what sleeps is silent."""
    told = {**BASES, **FLAGS}[word]
    assert told.page in ("", *STATES_WORST_FIRST)
    assert not (told.is_out and told.can_work)
    assert not (told.asleep and (told.is_heard or told.may_act))
    assert not told.passing or not told.may_act


def test_an_unknown_flag_is_unknown_everywhere() -> None:
    """The node is not said to work, not said to be out, and nothing is done to it."""
    odd = node(1, "IDLE", UNHEARD)
    assert can_work(odd) is None
    assert UNHEARD in unfit_reason(odd)
    assert page_word("IDLE", [UNHEARD]) == "unknown"
    assert can_work(node(1, "DOWN", UNHEARD)) is False


def test_a_blocked_node_is_not_idle_and_is_left_alone() -> None:
    """A job with --exclusive=topo holds its block: the node works when that has ended."""
    blocked = node(1, "IDLE", "BLOCKED")
    assert get_state_word("IDLE", ["BLOCKED"]) == "blocked"
    assert unfit_reason(blocked) == "IDLE and BLOCKED"
    assert can_work(blocked) is True


def test_a_reboot_that_was_asked_for_comes_when_the_node_is_idle() -> None:
    """Until then it works (scontrol reboot without ASAP)."""
    flags = ["REBOOT_REQUESTED"]
    assert [can_work(node(1, s, *flags)) for s in ("MIXED", "IDLE")] == [True, False]
    assert [page_word(s, flags) for s in ("ALLOCATED", "IDLE")] == ["allocated", "rebooting"]


def test_a_sleeping_node_that_is_silent_sleeps() -> None:
    assert page_word("IDLE", ["POWERED_DOWN", "NOT_RESPONDING"]) == "powered_down"
    assert page_word("IDLE", ["NOT_RESPONDING"]) == "down"


@pytest.mark.parametrize("reason", [*REASONS.values(), *TEXTS], ids=lambda r: r.code)
def test_a_pending_reason_answers_every_question(reason: pending_reasons.PendingReason) -> None:
    """What never starts needs a person, and no release helps it."""
    assert not reason.never or (reason.ends is ReasonEnd.PERSON and not reason.held)


def test_an_unknown_reason_is_neither_waited_for_nor_given_up() -> None:
    told = explain_reason("AWordOfSlurm31")
    assert (told.ends, told.held, told.never) == (ReasonEnd.UNKNOWN, False, False)


def test_a_reason_of_ten_kilobytes_is_read() -> None:
    """squeue prints what slurmctld's plugins write, however long."""
    told = explain_reason(
        "ReqNodeNotAvail, UnavailableNodes:" + ",".join(f"n{n}" for n in range(2000))
    )
    assert told.ends is ReasonEnd.ITSELF
    assert len(explain_reason("x" * 10_000).code) <= 120


@pytest.mark.parametrize("own", drain_reasons.OWN_REASONS, ids=lambda r: r.text)
def test_a_drain_reason_answers_every_question(own: drain_reasons.OwnReason) -> None:
    """It is found by its text, is of a class of the page, and somebody signs it."""
    found = drain_reasons.own_reason(own.text)
    assert found is not None
    assert found[0] is own
    assert own.page in REASON_CLASSES
    assert own.signers
    assert classify_reason(own.text) == own.page


def test_somebodys_words_behind_slurms_own_are_theirs() -> None:
    """A health check that begins as Slurm does is judged by what it says."""
    assert classify_reason("Prolog error: 571 xid 13 errors") == "gpu"


def test_no_other_module_has_a_list_of_slurms_words() -> None:
    """A second list is forgotten when Slurm has a new word: three states or flags in one literal."""
    words = {*JOB_STATES, *FLAGS, *BASES, *REASONS}
    found = []
    for path in ROOT.rglob("*.py"):
        if path.parent.name == "slurm":
            continue
        found += [f"{path.name}: {line}" for line in _lists(path.read_text(), words)]
    assert found == []


def _lists(source: str, words: set[str]) -> list[str]:
    import ast

    lists = (ast.Set, ast.Tuple, ast.List, ast.Dict)
    found = []
    for one in ast.walk(ast.parse(source)):
        if isinstance(one, lists):
            parts = one.keys if isinstance(one, ast.Dict) else one.elts
            said = [p.value for p in parts if isinstance(p, ast.Constant) and p.value in words]
            found += [f"line {one.lineno}: {said}"] if len(said) > 2 else []
    return found
