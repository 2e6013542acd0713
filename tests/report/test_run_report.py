"""A run beside the period before."""

from fractions import Fraction

import pytest

from sentinel.core.run_ledger import LedgerRow
from sentinel.report.run_report import RunReport, get_read_start, report_runs
from sentinel.report.text_lines import describe_change
from tests.report.ledger_rows import at, held, saved, span, steps

DAY = 1440


def report(*rows: LedgerRow) -> RunReport:
    """Of the second of two days."""
    (one,) = report_runs({("", "llm"): rows}, at(DAY), at(2 * DAY))
    return one


def day(number: int, hung: float, useful: float = 1000) -> list[LedgerRow]:
    """A job of that day: useful steps, then a hang."""
    began, name = number * DAY, str(number)
    first = number * 10_000
    return [
        held(began, began + useful + hung, name, cause="time_limit"),
        steps(began, began + useful, first, first + 10_000, name),
        span("hung", began + useful, began + useful + hung, name),
        saved(began + useful, first + 10_000),
    ]


def test_the_loss_that_grew_most_since_the_period_before() -> None:
    """The day before lost nothing, this one a fifth."""
    one = report(*day(0, 0), *day(1, 250))
    assert one.before is not None
    assert (one.before.goodput, one.account.goodput) == (1, Fraction(4, 5))
    assert one.grown == "hung"
    assert describe_change(one) == (
        "the period before: goodput 100%, 133 GPU-hours; grew most: hung, 0% to 20%"
    )


@pytest.mark.parametrize("hung", [(250, 250), (250, 100), (10, 20)])
def test_what_did_not_grow_is_not_named(hung: tuple[float, float]) -> None:
    """Nor what grew by less than a percent."""
    one = report(*day(0, hung[0]), *day(1, hung[1]))
    assert one.before is not None
    assert one.grown is None
    assert "grew" not in describe_change(one)


def test_without_evidence_of_the_period_before_nothing_is_said() -> None:
    """It held nothing, or most of its time is not known."""
    alone = report(*day(1, 250))
    assert (alone.before, alone.grown, describe_change(alone)) == (None, None, "")
    blind = report(held(0, 1000, "0"), *day(1, 250))
    assert blind.before is not None
    assert blind.grown is None


def test_what_later_rows_say_of_the_period_before() -> None:
    """The steps at its end were lost: only a start of this period tells."""
    first = [held(0, DAY, "0", cause="gpu"), steps(0, DAY, 0, DAY, "0"), saved(DAY / 2, DAY / 2)]
    one = report(*first, held(DAY, 2 * DAY, "1"), steps(DAY, 2 * DAY, DAY / 2, 1.5 * DAY, "1"))
    assert one.before is not None
    assert one.before.goodput == 0.5


def test_the_ledger_is_read_from_before_the_period_before() -> None:
    """A week before it begins."""
    assert get_read_start(at(DAY), at(2 * DAY)) == at(0 - 7 * DAY)
