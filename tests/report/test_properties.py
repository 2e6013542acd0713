"""Whatever the rows say, the parts add up to the whole."""

from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.core.run_ledger import EndCause, LedgerKind, LedgerRow
from sentinel.report.gpu_time import PRECEDENCE, cut_pieces
from sentinel.report.run_account import RunAccount, account_run

TIMES = st.integers(0, 400).map(lambda n: n * 10_000_019)
STEPS = st.none() | st.integers(0, 300).map(float) | st.floats(0, 300, allow_nan=False)
JOBS = st.sampled_from([("1", 1), ("1", 2), ("2", 1), ("3", 1), ("", 0)])


@st.composite
def rows(draw: st.DrawFn) -> LedgerRow:
    """Any row: clocks jump (it ends before it began), steps go back, jobs overlap, worlds change."""
    job, attempt = draw(JOBS)
    return LedgerRow(
        run="llm",
        kind=draw(st.sampled_from(get_args(LedgerKind))),
        began=draw(TIMES),
        ended=draw(TIMES),
        job=job,
        attempt=attempt,
        gpus=draw(st.sampled_from([0, 1, 7, 512])),
        submitted=draw(st.none() | st.integers(0, 4000)),
        cause=draw(st.sampled_from(get_args(EndCause) or ("",))),
        first_step=draw(STEPS),
        last_step=draw(STEPS),
        noticed=draw(st.none() | TIMES),
        acted=draw(st.none() | TIMES),
        checkpoint_us=draw(st.sampled_from([0, 1_000_003, 10**12])),
        evaluation_us=draw(st.sampled_from([0, 7, 10**12])),
    )


def check_sums(found: RunAccount) -> None:
    assert sum(found.parts.values()) == found.held
    assert min(found.parts.values()) >= 0
    assert all(isinstance(time, int) for time in found.parts.values())
    assert len(found.costs) == len(found.interruptions)
    assert min(found.costs, default=0) >= 0
    hung = found.hung
    assert hung.until_noticed + hung.until_acted + hung.until_over == found.parts["hung"]
    assert min(hung.until_noticed, hung.until_acted, hung.until_over) >= 0
    for ratio in (found.goodput, found.ettr):
        assert ratio is None or 0 <= ratio <= 1


@settings(max_examples=400, deadline=None)
@given(st.lists(rows(), max_size=30), TIMES, TIMES)
def test_the_parts_add_up_to_the_whole(several: list[LedgerRow], since: int, until: int) -> None:
    """Exactly, and none is negative, in any window."""
    found = account_run("llm", several, since, until)
    check_sums(found)
    calendar = found.calendar
    assert min(calendar.held, calendar.queued, calendar.maintenance, calendar.not_submitted) >= 0
    assert calendar.counted + calendar.maintenance <= max(0, until - since)


@settings(max_examples=200, deadline=None)
@given(st.lists(rows(), max_size=30), TIMES)
def test_windows_that_touch_hold_what_both_hold_together(
    several: list[LedgerRow], middle: int
) -> None:
    """What was held is cut in two, and nothing is lost at the cut."""
    whole = account_run("llm", several, 0, 10**12)
    one, other = account_run("llm", several, 0, middle), account_run("llm", several, middle, 10**12)
    assert one.held + other.held == whole.held


@settings(max_examples=200, deadline=None)
@given(st.lists(rows().filter(lambda row: row.kind != "saved" and row.job != ""), max_size=20))
def test_one_job_without_checkpoints_has_nothing_useful(several: list[LedgerRow]) -> None:
    """Only a later start could prove more, and there is none."""
    alone = [row for row in several if (row.job, row.attempt) == ("1", 1)]
    forward = [
        row for n, row in enumerate(alone)
        if row.kind != "steps" or n == next(i for i, r in enumerate(alone) if r.kind == "steps")
    ]  # fmt: skip
    found = account_run("llm", forward, 0, 10**12)
    assert found.parts["useful"] == found.parts["provisional"] == 0
    assert found.goodput is None
    assert "checkpoint" in found.missing


@settings(max_examples=300, deadline=None)
@given(st.lists(rows(), max_size=30), TIMES, TIMES)
def test_pieces_touch_and_never_overlap(several: list[LedgerRow], began: int, ended: int) -> None:
    """And no piece goes to a row while one of a kind before it claims the time."""
    pieces = cut_pieces(began, ended, several)
    places = [began, *(p.ended for p in pieces)] if pieces else []
    assert [p.began for p in pieces] == places[:-1]
    assert not pieces or places[-1] == ended
    for piece in pieces:
        rank = PRECEDENCE.index(piece.row.kind) if piece.row else len(PRECEDENCE)
        for row in several:
            if row.kind in PRECEDENCE[:rank]:
                assert (
                    row.ended <= piece.began or row.began >= piece.ended or row.ended <= row.began
                )
