"""Which node dead runs share: said of a lemon, and not of what luck or a training explains."""

import random
from itertools import combinations
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.checks.job import JobCheck
from sentinel.checks.job.memory import EndedRun
from sentinel.checks.job.shared_nodes import (
    MAX_CALLED_RUNS,
    MAX_CHANCE,
    MAX_ENDED_RUNS,
    MIN_SHARED,
    add_ended_runs,
    describe_shared_node,
    find_luck_tail,
    find_shared_node,
    list_shared_findings,
)
from sentinel.core.clock import SECOND, Instant
from sentinel.core.hostlist import fold_hostlist
from sentinel.testing import START, FixedSlurm, context
from tests.checks.job.making import DAY, NOW, Watch, check, ended, job

NODES = [f"gpu{n:02}" for n in range(100)]
LEMON = "gpu07"
HISTORIES = 1000


def run(
    at: int, nodes: list[str], *, bad: bool, user: str = "alice", training: str = ""
) -> EndedRun:
    return EndedRun(
        job=str(at), started=at, ended=at + 100, user=user, training=training or f"{user}/{at % 3}",
        nodes=fold_hostlist(nodes), is_interrupted=bad,
    )  # fmt: skip


def history(dice: random.Random, count: int, lemon: float = 0.0) -> list[EndedRun]:
    """Runs of 1 to 16 of 100 nodes by luck; large ones are interrupted more often. `lemon`: the chance
    that the lemon interrupts a run that has it."""
    runs = []
    for at in range(count):
        nodes = dice.sample(NODES, dice.choice([1, 2, 4, 8, 16]))
        bad = dice.random() < 0.05 + 0.03 * len(nodes)
        bad = bad or (LEMON in nodes and dice.random() < lemon)
        runs.append(run(at, sorted(nodes), bad=bad, user=dice.choice(["alice", "bob"])))
    return runs


def test_luck_is_not_called_a_shared_node() -> None:
    """1,000 histories in which nodes are drawn by luck: false statements at most as often as the
    threshold says."""
    dice = random.Random(1)
    false = sum(
        find_shared_node(history(dice, dice.choice([5, 10, 30, 60]))) is not None
        for _ in range(HISTORIES)
    )
    assert false <= MAX_CHANCE * HISTORIES


def test_one_lemon_is_found_and_no_other_node() -> None:
    """A hundred runs of two to eight of 64 nodes, of which one in ten is interrupted anyway; whatever
    runs on the lemon is."""
    dice, named = random.Random(2), list[str]()
    for _ in range(100):
        runs = []
        for at in range(100):
            nodes = sorted(dice.sample(NODES[:64], dice.choice([2, 4, 8])))
            runs.append(run(at, nodes, bad=LEMON in nodes or dice.random() < 0.1))
        named += [found.node] if (found := find_shared_node(runs)) else []
    assert named.count(LEMON) >= 40
    assert len(named) - named.count(LEMON) <= 1


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=8), st.integers(0, 9))
def test_the_tail_is_that_of_all_outcomes(shares: list[float], at_least: int) -> None:
    """By adding up every set of events that has enough of them."""
    whole = 0.0
    for size in range(at_least, len(shares) + 1):
        for chosen in combinations(range(len(shares)), size):
            part = 1.0
            for at, share in enumerate(shares):
                part *= share if at in chosen else 1 - share
            whole += part
    assert find_luck_tail(shares, at_least) == pytest.approx(whole, abs=1e-9)


@pytest.mark.parametrize(("n", "k", "share"), [(10, 3, 0.1), (4, 4, 0.5), (5, 0, 0.3)])
def test_equal_runs_are_the_binomial(n: int, k: int, share: float) -> None:
    exact = sum(comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k, n + 1))
    assert find_luck_tail([share] * n, k) == pytest.approx(exact)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60), st.floats(0, 1))
def test_what_is_said_is_below_its_thresholds(seed: int, count: int, lemon: float) -> None:
    runs = history(random.Random(seed), count, lemon)
    found = find_shared_node(runs)
    if found is None:
        return
    assert MIN_SHARED <= found.shared <= found.interrupted <= MAX_CALLED_RUNS
    assert 0 <= found.chance < MAX_CHANCE
    assert found.ended_well < found.shared
    assert find_shared_node([one for one in runs if not one.is_interrupted]) is None


def spread(bad: int, training: str = "") -> list[EndedRun]:
    """Good runs on all other nodes, then runs on the lemon and one node more each that are
    interrupted."""
    others = [node for node in NODES if node != LEMON]
    well = [run(at, others[at * 11 : at * 11 + 11], bad=False) for at in range(9)]
    ill = [
        run(100 + at, [LEMON, others[20 + at]], bad=True, training=training) for at in range(bad)
    ]
    return [*well, *ill]


def test_the_words() -> None:
    """Three of four with a chance of 2 % each, over 100 nodes: 4 * 0.02^3 * 0.98 + 0.02^4 = 3.2e-5."""
    found = find_shared_node([*spread(3), run(300, NODES[40:42], bad=True)])
    assert found is not None
    assert found.chance == pytest.approx(100 * (4 * 0.02**3 * 0.98 + 0.02**4))
    assert describe_shared_node(found) == (
        "3 of the last 4 interrupted runs had node gpu07; by chance that happens once in 320 times"
        " (100 nodes compared)"
    )


def test_two_runs_are_no_pattern() -> None:
    assert find_shared_node(spread(2)) is None
    assert find_shared_node(spread(3)) is not None


def test_the_deaths_of_one_user_hide_no_node_that_others_share() -> None:
    """Mallory's jobs fail by the hundred after those of alice and bob, wherever Slurm puts them. A user
    who is alone has the whole memory."""
    dice, hers = random.Random(3), spread(3, "alice/llm")
    his = [replace(one, job=f"b{one.job}", user="bob", training="bob/llm") for one in hers]
    flood = [
        run(1000 + at, [dice.choice(NODES)], bad=True, user="mallory")
        for at in range(3 * MAX_ENDED_RUNS)
    ]
    kept = add_ended_runs((*hers, *his, *flood), {}, Instant(wall=2000 * SECOND))
    found = find_shared_node(kept)
    assert found is not None
    assert found.node == LEMON
    assert [one for one in kept if one.user == "alice"] == hers
    assert add_ended_runs(flood, {}, Instant(wall=2000 * SECOND)) == tuple(flood[-MAX_ENDED_RUNS:])


def test_nodes_that_are_shared_alike_are_not_named() -> None:
    """A training that Slurm always puts in the same place, and that fails by its own fault."""
    runs = [*spread(0), *(run(100 + n, NODES[40:44], bad=True) for n in range(6))]
    assert find_shared_node(runs) is None


def test_a_node_on_which_as_many_ended_well_is_not_named() -> None:
    runs = [*spread(4), *(run(50 + n, [LEMON, NODES[60 + n]], bad=False) for n in range(4))]
    assert find_shared_node(runs) is None
    assert find_shared_node(runs[:-1]) is not None


def test_where_every_run_has_all_nodes_nothing_is_said() -> None:
    assert find_shared_node([run(n, NODES[:8], bad=True) for n in range(9)]) is None


def test_operations_hear_of_several_trainings_only() -> None:
    """One training alone may be at fault itself."""
    assert list_shared_findings(spread(4, training="alice/llm")) == ()
    (finding,) = list_shared_findings(spread(4))
    assert finding.subject == "node gpu07"
    assert finding.labels == {"node": "gpu07"}, "no user: no owner gets it"
    assert finding.tell_once
    assert finding.summary.endswith("; all were alice's, whose jobs may be at fault themselves")
    two = [replace(one, user=f"u{n % 2}") for n, one in enumerate(spread(4))]
    assert "whose jobs" not in list_shared_findings(two)[0].summary


def death(watch: Watch, number: int, nodes: str, state: str = "FAILED", **more: str) -> str:
    """A job of the training runs on these nodes and ends so; returns the details of the message."""
    name = str(number)
    one = job(name, nodes=nodes, started=NOW, **more)
    watch.look(one, after=60)
    end = ended(
        name,
        state,
        nodes=nodes,
        started=NOW,
        ended=NOW + number,
        exit_code=0 if state == "COMPLETED" else 1,
    )
    return watch.look(after=60, ends=[end]).details


def test_a_death_names_the_node_that_the_last_ones_shared() -> None:
    watch = Watch(check())
    for n in range(30):
        assert "interrupted runs" not in death(
            watch, 100 + n, f"gpu[{20 + 3 * n}-{22 + 3 * n}]", "COMPLETED"
        )
    told = [death(watch, 200 + n, f"gpu07,gpu{20 + n}") for n in range(3)]
    assert "interrupted runs" not in told[1]
    assert (
        "3 of the last 3 interrupted runs had node gpu07; by chance that happens once in" in told[2]
    )


def test_a_user_hears_of_their_own_runs_only() -> None:
    """bob's runs died on that node too; alice's message does not say so, and operations hear of it."""
    watch = Watch(JobCheck(users=["*"]))
    for n in range(30):
        death(watch, 100 + n, f"gpu[{20 + 3 * n}-{22 + 3 * n}]", "COMPLETED", name=f"ok{n}")
    for n, user in enumerate(("bob", "bob", "bob", "alice")):
        death(watch, 200 + n, f"gpu07,gpu{20 + n}", name=f"{user}{n}", user=user)
    slurm = FixedSlurm(jobs=[], ends={})
    report = watch.check.run(context(slurm, watch.clock.now(), memory=watch.memory, limit=10.0))
    mine = [f for f in report.findings if f.labels.get("user") == "alice"]
    assert mine
    assert not any("interrupted runs" in f.details for f in mine)
    assert [f.labels for f in report.findings if f.subject == "node gpu07"] == [{"node": "gpu07"}]


def test_old_runs_and_too_many_are_forgotten() -> None:
    old = run(NOW - 40 * DAY, ["gpu01"], bad=True)
    many = [run(NOW - n, ["gpu01"], bad=True) for n in range(MAX_ENDED_RUNS + 50)]
    kept = add_ended_runs([old, *many], {}, START)
    assert len(kept) == MAX_ENDED_RUNS
    assert old not in kept
