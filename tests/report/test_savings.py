"""What would have saved most: each line follows from rows, by hand; without evidence there is none."""

import pytest

from sentinel.core.run_ledger import EndCause, LedgerRow
from sentinel.report.run_report import report_runs
from sentinel.report.savings import Saving, compute_best_interval
from tests.report.ledger_rows import MINUTE, at, held, saved, span, steps


def savings(*rows: LedgerRow, since: float = 0, until: float = 100_000) -> list[Saving]:
    (report,) = report_runs({("", "llm"): rows}, at(since), at(until))
    return list(report.savings)


def interrupted(
    count: int, every: int = 180, cost: float = 6, cause: EndCause = "software"
) -> list[LedgerRow]:
    """Jobs of 700 minutes one after the other, each begun from the checkpoint at minute 540."""
    rows = list[LedgerRow]()
    for number in range(count):
        began, step, name = number * 700, number * 540, str(number)
        spent = int(cost * (540 // every) * MINUTE)
        rows += [
            held(began, began + 700, name, cause=cause, submitted=began - 5),
            steps(began, began + 700, step, step + 700, name, checkpoint_us=spent),
            *(saved(began + at_minute, step + at_minute) for at_minute in range(every, 541, every)),
        ]
    return rows


def test_an_interval_that_is_too_long() -> None:
    """Of 180 minutes of work a checkpoint takes 4.6, and an interruption comes every 700, with 6
    cases every 5 h 22 m to 32 h: Daly's interval lies between 52 minutes and 2 h 10 m."""
    (one,) = savings(*interrupted(6))
    assert one.kind == "checkpoint_interval"
    assert one.text == (
        "a checkpoint every 52m to 2h 10m instead of 3h (one costs 4m 37s, an interruption comes "
        "every 11h 40m)"
    )
    # At the interval for 700 minutes (77.5 minutes) 108 minutes of saving become 251, and 779
    # minutes redone (5 times 160, but for what saving took) become 335.
    assert one.saved / MINUTE / 8 == pytest.approx(108 + 779 - 251 - 335, abs=2)
    assert one.evidence["cases"] == 6
    assert one.evidence["today_s"] == 180 * 60


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(interrupted(4), id="below five interruptions there is no rate"),
        pytest.param(interrupted(6, every=110), id="the interval lies in the range already"),
        pytest.param(interrupted(6, cost=0), id="the log tells no cost of a checkpoint"),
        pytest.param(interrupted(6, cause="time_limit"), id="planned ends are no interruptions"),
        pytest.param(
            [row for row in interrupted(6) if row.kind != "saved"], id="no checkpoint is known"
        ),
        pytest.param(interrupted(6, every=18, cost=0.1), id="too often to be measured"),
    ],
)
def test_no_interval_without_evidence(rows: list[LedgerRow]) -> None:
    """Nothing is said that the ledger does not show."""
    assert [one for one in savings(*rows) if one.kind == "checkpoint_interval"] == []


def test_the_interval_is_youngs_where_a_checkpoint_costs_little() -> None:
    """sqrt(2 · 10 s · 20,000 s) is 632 s; where it costs more than two interruptions are apart,
    Daly takes the time between them."""
    assert compute_best_interval(10, 20_000) == pytest.approx(632 - 10, rel=0.01)
    assert compute_best_interval(500, 100) == 100


def broken(*places: tuple[str, EndCause]) -> list[LedgerRow]:
    """Jobs that ended after 100 minutes each, of which the last 50 steps were redone."""
    rows = list[LedgerRow]()
    for number, (nodes, cause) in enumerate(places):
        began, step, name = number * 100, number * 50, str(number)
        row = held(began, began + 100, name, cause=cause, submitted=began - 5)
        rows += [
            LedgerRow(**{f: getattr(row, f) for f in row.__struct_fields__} | {"nodes": nodes}),
            steps(began, began + 100, step, step + 100, name),
            saved(began + 50, step + 50),
        ]
    return rows


def test_the_node_of_the_interruptions_that_cost_most() -> None:
    """Node n7 stands in two of three; each cost the 50 minutes of 8 GPUs that were redone."""
    (one,) = savings(*broken(("n7", "gpu"), ("n2", "node"), ("n7", "node"), ("n1", "completed")))
    assert one.text == "without node n7: it stands in 2 of 3 interruptions (gpu 1, node 1)"
    assert one.saved == 2 * 50 * 8 * MINUTE
    assert one.evidence == {"node": "n7", "cases": 2, "of": 3}


@pytest.mark.parametrize(
    "places",
    [
        pytest.param([("n7", "gpu"), ("n2", "gpu")], id="each node once"),
        pytest.param([("n7", "gpu"), ("n2", "gpu")] * 2, id="two that cost the same"),
        pytest.param([("n[1-8]", "gpu")] * 4, id="the whole job"),
        pytest.param([("n[1-8", "gpu")] * 4, id="a host list that was cut"),
        pytest.param([("n7", "software")] * 4, id="the program, on any node"),
        pytest.param([("", "node")] * 4, id="no node is named"),
    ],
)
def test_no_node_without_evidence(places: list[tuple[str, EndCause]]) -> None:
    """A node is named only if it stands out."""
    found = savings(*broken(*places, ("n1", "completed")))
    assert [one for one in found if one.kind == "leave_out_node"] == []


def pause(cause: EndCause, *between: LedgerRow) -> list[LedgerRow]:
    """Two jobs with 300 minutes between them."""
    return [
        held(0, 600, "1", cause=cause), steps(0, 600, 0, 600, "1"), saved(600, 600),
        *between,
        held(900, 1200, "2", cause="completed"), steps(900, 1200, 600, 900, "2"), saved(1200, 900),
    ]  # fmt: skip


def test_the_time_without_a_job_after_an_end() -> None:
    """Of 5 hours it waited in the queue for one, and another was announced maintenance."""
    rows = pause("time_limit", span("queued", 840, 900, ""), span("maintenance", 600, 660, ""))
    (one,) = savings(*rows)
    assert one.text == (
        "a next job in the queue (sbatch --dependency=singleton): 3h passed without any job after "
        "1 end"
    )
    assert one.saved == 180 * 8 * MINUTE
    assert one.evidence == {"hours": 3, "ends": 1}


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(pause("completed"), id="the training was done"),
        pytest.param(pause("person"), id="somebody ended it"),
        pytest.param(pause("gpu")[:3], id="nothing came after it"),
        pytest.param(pause("gpu", span("queued", 600, 900, "")), id="it waited all the time"),
        pytest.param(pause("gpu", held(590, 901, "3", gpus=1)), id="another one ran"),
    ],
)
def test_no_gap_without_evidence(rows: list[LedgerRow]) -> None:
    """Only time counts in which a job could have run, and one came later."""
    assert [one for one in savings(*rows) if one.kind == "next_job"] == []


def test_only_the_period_counts() -> None:
    """Half of the 300 minutes lie before it; a saving below 1 % of what was held has no line."""
    (one,) = savings(*pause("gpu"), since=750)
    assert one.saved == 150 * 8 * MINUTE
    assert savings(*pause("gpu"), since=898) == []
