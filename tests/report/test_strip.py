"""What each moment of a run went into, in few classes, by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.core.run_ledger import EndCause, LedgerRow
from sentinel.report.run_account import account_run
from sentinel.report.strip import StripSpan, cut_cells, make_strip
from tests.report.ledger_rows import MINUTE, at, held, saved, span, steps
from tests.report.test_properties import TIMES, rows


def strip(*known: LedgerRow, since: float = 0, until: float = 1000) -> list[tuple[float, str]]:
    """The length of each span in minutes, with its class; `-` where there is none."""
    spans = list[StripSpan]()
    account_run("llm", known, at(since), at(until), spans)
    found, place = list[tuple[float, str]](), at(since)
    for one in make_strip(spans, known, at(since), at(until)):
        if one.began > place:
            found.append(((one.began - place) / MINUTE, "-"))
        found.append(((one.ended - one.began) / MINUTE, one.kind))
        place = one.ended
    return [*found, ((at(until) - place) / MINUTE, "-")] if place < at(until) else found


def test_a_day_in_classes() -> None:
    """It waits, starts, makes steps of which the last are lost, hangs, crashes, and comes again
    later; then it runs and nobody looks."""
    assert strip(
        span("queued", 50, 100, ""),
        held(100, 500, "1", cause="gpu"),
        span("startup", 100, 120, "1"),
        steps(120, 400, 0, 280, "1"),
        saved(300, 180),
        span("hung", 400, 450, "1"),
        span("crashed", 450, 500, "1"),
        held(700, 1000, "2"),
        steps(700, 800, 180, 280, "2"),
        span("blind", 800, 1000, "2"),
    ) == [
        (50, "-"),
        (70, "queued"),
        (180, "steps"),
        (100, "lost"),
        (50, "hung"),
        (250, "down"),
        (100, "steps"),
        (200, "blind"),
    ]


def test_slow_steps_are_a_class() -> None:
    """The last hour took twice as long for its steps as the others."""
    usual = [steps(n * 60, n * 60 + 60, n * 60, n * 60 + 60) for n in range(4)]
    found = strip(held(0, 300), *usual, steps(240, 300, 240, 270), saved(300, 270), until=300)
    assert found == [(240, "steps"), (60, "slow")]


def test_steps_are_steps_also_where_no_checkpoint_is_known() -> None:
    """Whether they are in the model is another question; so are those that begin anew each epoch."""
    assert strip(held(0, 100), steps(0, 100, 0, 10), until=100) == [(100, "steps")]
    epochs = span("steps", 0, 100)
    assert strip(held(0, 100), epochs, until=100) == [(100, "steps")]


@pytest.mark.parametrize(
    ("cause", "after"),
    [
        ("gpu", "down"),
        ("time_limit", "down"),
        ("completed", "-"),
        ("person", "-"),
        ("", "blind"),
    ],
)
def test_after_the_last_job(cause: EndCause, after: str) -> None:
    """Only an end that nobody wanted leaves it down; where nobody knows of an end it is not known."""
    found = strip(held(0, 100, cause=cause), steps(0, 100, 0, 10), until=200)
    assert found == [(100, "steps"), (100, after)]


def test_a_job_that_runs_is_not_unknown_between_two_rows() -> None:
    """Its row is written every 5 minutes."""
    assert strip(held(0, 100), steps(0, 100, 0, 10), until=105) == [(100, "steps"), (5, "-")]


def test_maintenance_is_nothing_that_was_lost() -> None:
    """Neither down nor queued, also where a job waits meanwhile."""
    found = strip(
        held(0, 100, "1", cause="gpu"), steps(0, 100, 0, 10, "1"),
        span("queued", 100, 300, ""), span("maintenance", 150, 250, ""),
        held(300, 400, "2"), steps(300, 400, 10, 20, "2"), until=400,
    )  # fmt: skip
    assert found == [(100, "steps"), (50, "queued"), (100, "-"), (50, "queued"), (100, "steps")]


def test_a_short_hang_is_seen_in_its_cell() -> None:
    """Two fifths of a cell are more than half of it if they are urgent; slow ones are not."""
    spans = [StripSpan(0, 60, "steps"), StripSpan(60, 100, "hung"), StripSpan(100, 160, "steps")]
    spans.append(StripSpan(160, 200, "slow"))
    assert cut_cells(spans, 0, 300, 3) == ["hung", "steps", None]


@settings(max_examples=150, deadline=None)
@given(st.lists(rows(), max_size=25), TIMES, TIMES)
def test_spans_are_in_order_and_never_overlap(
    several: list[LedgerRow], since: int, until: int
) -> None:
    """Whatever the rows say."""
    spans = list[StripSpan]()
    account_run("llm", several, since, until, spans)
    place = since
    for one in make_strip(spans, several, since, until):
        assert place <= one.began < one.ended <= until
        place = one.ended
