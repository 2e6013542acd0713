"""The rule against a truth table: what is told of a training, by what was seen of it."""

from pathlib import Path

import pytest

from sentinel.stacks.parse.verdict import (
    RULE,
    ProgressNumber,
    TrainingState,
    WitnessFact,
    decides_after_s,
    join_facts,
    narrow_verdict,
)
from sentinel.stacks.parse.verdict_words import describe_verdict

LONG = ProgressNumber(quiet=400, usual=10)
SHORT = ProgressNumber(quiet=50, usual=10)


def fact(sign: str, *ranks: int, **more: object) -> WitnessFact:
    given = {"words": sign, "nodes": tuple(f"n{r}" for r in ranks), **more}
    return WitnessFact(sign=sign, ranks=ranks, **given)  # type: ignore[arg-type]


TRUTH: list[tuple[str, list[WitnessFact], ProgressNumber, TrainingState, tuple[int, ...]]] = [
    ("nothing seen", [], LONG, TrainingState.UNDECIDED, ()),
    ("a rank has died", [fact("gone", 3)], LONG, TrainingState.HUNG, (3,)),
    ("it died just now", [fact("gone", 3)], ProgressNumber(quiet=20, usual=1), TrainingState.UNDECIDED, ()),
    ("a rank sleeps", [fact("stands", 3)], LONG, TrainingState.HUNG, (3,)),
    ("a rank sleeps, as it may", [fact("stands", 3)], ProgressNumber(quiet=50, usual=30), TrainingState.UNDECIDED, ()),
    ("a rank spins", [fact("spins", 3)], LONG, TrainingState.HUNG, (3,)),
    ("it may spin for a while", [fact("spins", 3)], SHORT, TrainingState.UNDECIDED, ()),
    ("a rank waits for a file", [fact("blocked", 3)], LONG, TrainingState.FILES, (3,)),
    ("the same, by its stack too", [fact("blocked", 3), fact("stands", 3)], LONG, TrainingState.FILES, (3,)),
    ("two ranks, two reasons", [fact("blocked", 3), fact("gone", 4)], LONG, TrainingState.HUNG, (3, 4)),
    ("a driver hangs", [fact("uninterruptible", 3)], LONG, TrainingState.HUNG, (3,)),
    ("mismatched collectives", [fact("idle")], LONG, TrainingState.HUNG, ()),
    ("healthy, between two looks", [fact("together")], LONG, TrainingState.UNDECIDED, ()),
    ("mismatched, recorded", [fact("idle"), fact("recorded", 2)], LONG, TrainingState.HUNG, (2,)),
    ("a checkpoint", [fact("phase", 0)], LONG, TrainingState.PHASE, ()),
    ("a checkpoint that stands in a call", [fact("phase", 0), fact("stands", 0)], LONG, TrainingState.PHASE, ()),
    ("a checkpoint that is written", [fact("transfers", 0)], LONG, TrainingState.PHASE, ()),
    ("an evaluation of all", [fact("phase")], LONG, TrainingState.PHASE, ()),
    ("a phase by the log", [fact("gone", 3)], ProgressNumber(quiet=400, usual=1, phase="eval"), TrainingState.PHASE, ()),
    ("a debugger", [fact("debugged", 1)], LONG, TrainingState.PHASE, ()),
    ("SIGSTOP", [fact("stopped", 1)], LONG, TrainingState.HUNG, (1,)),
    ("a slow rank", [fact("works", 3)], LONG, TrainingState.SLOW, (3,)),
    ("it moved", [fact("stands", 3)], ProgressNumber(quiet=0, usual=1, moved=True), TrainingState.SLOW, (3,)),
    ("it moved, whatever is said", [fact("gone", 3)], ProgressNumber(quiet=0, usual=1, moved=True), TrainingState.UNDECIDED, ()),
    ("one sleeps, one works", [fact("stands", 3), fact("works", 4)], LONG, TrainingState.UNDECIDED, ()),
    ("one died while one saves", [fact("gone", 3), fact("phase", 0)], LONG, TrainingState.UNDECIDED, ()),
    ("RAS alone advises", [fact("behind", 3)], LONG, TrainingState.UNDECIDED, ()),
    ("so does a GPU", [fact("draws nothing", 3)], LONG, TrainingState.UNDECIDED, ()),
    ("and the kernel", [fact("kernel", 3)], LONG, TrainingState.UNDECIDED, ()),
    ("the kernel of the device", [fact("device", 3)], LONG, TrainingState.UNDECIDED, ()),
    ("it names the one that stands", [fact("device", 3), fact("stands", 3)], LONG, TrainingState.HUNG, (3,)),
    ("a GPU that computes is no alarm", [fact("computes", 3)], LONG, TrainingState.UNDECIDED, ()),
    ("RAS does not reach it", [fact("lost", 3)], LONG, TrainingState.UNDECIDED, ()),
    ("alone in another collective", [fact("alone", 3)], LONG, TrainingState.HUNG, (3,)),
    ("alone, since it waits for a file", [fact("alone", 3), fact("blocked", 3)], LONG, TrainingState.FILES, (3,)),
    ("RAS and the stack agree", [fact("behind", 3), fact("stands", 3)], LONG, TrainingState.HUNG, (3,)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "facts", "number", "kind", "ranks"), TRUTH, ids=lambda v: str(v)[:40]
)
def test_the_rule_says_what_is_true(
    name: str,
    facts: list[WitnessFact],
    number: ProgressNumber,
    kind: TrainingState,
    ranks: tuple[int, ...],
) -> None:
    """In whatever order the witnesses come."""
    for order in (facts, facts[::-1]):
        found = join_facts(order, number)
        assert (found.kind, set(found.ranks if found.kind is not TrainingState.PHASE else ())) == (
            kind,
            {*ranks},
        )
        assert found.is_sure == (kind in (TrainingState.HUNG, TrainingState.FILES))


def test_what_counts_later_says_when() -> None:
    """What spins counts at 60 s and five usual quiets; what decides already, never, or moves, has no
    such moment."""
    assert decides_after_s([fact("spins", 3)], ProgressNumber(quiet=45, usual=2)) == 60
    assert decides_after_s([fact("spins", 3)], ProgressNumber(quiet=45, usual=30)) == 150
    assert (
        decides_after_s([fact("stands", 3), fact("spins", 4)], ProgressNumber(quiet=20, usual=2))
        == 45
    )
    assert decides_after_s([fact("stands", 3)], LONG) == 0
    for never in ([fact("together")], [fact("spins", 3), fact("works", 4)], []):
        assert decides_after_s(never, ProgressNumber(quiet=45, usual=2)) == 0
    assert decides_after_s([fact("spins", 3)], ProgressNumber(quiet=45, usual=2, moved=True)) == 0


def test_of_ranks_that_share_a_fact_nobody_knows_whose_node_is_which() -> None:
    """So none is told; else it would be a neighbour's."""
    apart = join_facts([fact("works", 3), fact("works", 4, words="else")], LONG)
    assert describe_verdict(narrow_verdict(apart, (3,))) == "slow: rank 3 on n3 (works)"
    shared = join_facts([fact("works", 3, 4)], LONG)
    assert describe_verdict(narrow_verdict(shared, (3,))) == "slow: rank 3 (works)"


def test_every_sign_is_in_the_table() -> None:
    """A sign that nothing asks for could say anything."""
    assert {f.sign for _, facts, *_ in TRUTH for f in facts} == {*RULE}


def test_the_page_says_of_each_sign_what_it_proves_and_what_not() -> None:
    """docs/stacks-verdict.md holds the rule as it is."""
    page = (Path(__file__).parents[3] / "docs/stacks-verdict.md").read_text()
    for name, sign in RULE.items():
        says = sign.says.value if sign.decides else f"advises: {sign.says.value}"
        row = f"| {sign.witness} | {name} | {says} | {sign.proves} | {sign.proves_not} |"
        assert row in page


def test_only_proc_stacks_and_the_recorder_decide() -> None:
    """What was not tried on GPUs advises."""
    assert {s.witness for s in RULE.values() if s.decides} == {"/proc", "stacks", "flight recorder"}
    assert {s.witness for s in RULE.values() if not s.decides} == {"stacks", "RAS", "GPU", "kernel"}


def test_two_witnesses_that_name_others_are_told_as_that() -> None:
    """It hangs by both; who is to blame is not known then."""
    found = join_facts([fact("recorded", 2), fact("stands", 5)], LONG)
    assert (found.kind, found.ranks) == (TrainingState.HUNG, ())
    assert found.disagreement == "witnesses disagree: flight recorder: recorded; but stacks: stands"
    advised = join_facts([fact("gone", 5), fact("behind", 2)], LONG)
    assert (advised.kind, advised.ranks) == (TrainingState.HUNG, (5,))
    assert advised.disagreement == "witnesses disagree: /proc: gone; but RAS: behind"


def test_gpus_and_kernels_are_told_beside_the_culprit() -> None:
    """Of its own node; where nobody is named, of any. What is said of others stays in the evidence."""
    xid = WitnessFact(sign="device", words="kernel: Xid 79", nodes=("n3",))
    other = WitnessFact(sign="device", words="kernel: Xid 48", nodes=("n9",))
    found = join_facts([fact("stands", 3, words="in load"), xid, other], LONG)
    assert describe_verdict(found) == "hung: rank 3 on n3 (in load); n3: kernel: Xid 79"
    assert (found.proven_nodes, found.node_fault) == (("n3",), "kernel: Xid 79")
    nobody = join_facts([fact("idle", words="all wait"), xid], LONG)
    assert describe_verdict(nobody) == "hung: all wait; n3: kernel: Xid 79"
    assert (nobody.proven_nodes, nobody.node_fault) == ((), "")


def test_it_is_told_in_one_line() -> None:
    """Whom, where, in what, and how many wait."""
    seen = fact("stands", 17, collective="all_reduce", waiting=255, words="in load (train.py:9)")
    line = describe_verdict(join_facts([seen], LONG), " since 03:12 at step 79500")
    assert line == (
        "hung since 03:12 at step 79500: rank 17 on n17 is not in the all_reduce in which 255 others"
        " wait (in load (train.py:9))"
    )
    file = fact("blocked", 3, words="reading /scratch/x")
    assert (
        describe_verdict(join_facts([file], LONG))
        == "waiting for a file system: rank 3 on n3 (reading /scratch/x)"
    )
    assert describe_verdict(
        join_facts([fact("idle", words="all 4 ranks are in the barrier")], LONG)
    ) == ("hung: all 4 ranks are in the barrier")


def test_a_node_is_drained_for_what_is_its_own_only() -> None:
    """A rank that sleeps may be the program's; and whom two witnesses name differently is proven by
    neither."""
    assert join_facts([fact("uninterruptible", 3)], LONG).node_fault == "uninterruptible"
    assert join_facts([fact("stands", 3)], LONG).node_fault == ""
    assert join_facts([fact("stands", 3)], LONG).proven_nodes == ("n3",)
    both = join_facts([fact("uninterruptible", 3), fact("behind", 2)], LONG)
    assert (both.ranks, both.proven_nodes, both.node_fault) == ((3,), (), "")
    assert join_facts([fact("uninterruptible", 3, 4)], LONG).node_fault == ""
