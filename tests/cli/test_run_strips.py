"""Strips of trainings as characters, in `status` and `top`."""

from datetime import timezone
from typing import get_args

from sentinel.cli.run_strips import STRIP_MARKS, render_run_strips
from sentinel.cli.screen import render_to_lines
from sentinel.cli.top_view import TAB_NAMES, TopView, render_body
from sentinel.core.run_ledger import StripClass
from sentinel.status.types import RunFact, StripFact
from tests.status.test_run_reader import shown
from tests.web.scenery import week

HOUR, DAY = 3600.0, 86_400.0


def test_each_class_has_a_character_of_its_own() -> None:
    """So that it is told apart without colours."""
    assert set(STRIP_MARKS) == set(get_args(StripClass))
    assert len({mark for mark, _ in STRIP_MARKS.values()}) == len(get_args(StripClass))


def test_a_day_and_a_week_in_characters() -> None:
    """It ran for 5 days and a half, hung for 6 hours, was down for 12 and hung again for the last 6."""
    now = 100 * DAY
    spans = ((7, 1.5, "steps"), (1.5, 1.0, "hung"), (0.75, 0.25, "down"), (0.25, 0, "slow"))
    strip = tuple(StripFact(now - a * DAY, now - b * DAY, kind) for a, b, kind in spans)  # type: ignore[arg-type]
    run = RunFact(run="a-training-of-a-long-name", strip=strip)
    line, legend = (text.plain for text in render_run_strips([run], now))
    day = " " * 6 + "x" * 12 + "▓" * 6
    assert line == f"{'a-training-of…':<14} 24h {day} 7d {'█' * 22}!! xx▓"
    assert legend == "█ steps  ▓ slow  ! hung  x down  (each 1h, 6h)", "what is drawn, and no more"
    assert render_run_strips([], now) == []
    starts = RunFact(run="x", strip=(StripFact(now - 60, now, "queued"),))
    assert render_run_strips([starts], now)[-1].plain.startswith(
        ". queue, start "
    )  # its job may run


def test_a_strip_of_which_nothing_is_known_has_no_legend() -> None:
    """An `x` in its name is no mark."""
    lines = render_run_strips([RunFact(run="x", strip=())], 100 * DAY)
    assert [text.plain.split() for text in lines] == [["x", "24h", "7d"]]


def test_lines_fit_into_80_columns() -> None:
    """In `top`, above the table of jobs."""
    facts = shown(*week("run-" + "x" * 60))
    view = TopView(tab=TAB_NAMES.index("jobs"))
    lines = render_to_lines(render_body(view, facts, timezone.utc, 20), 80, colour=False)
    assert lines[0].startswith("run-xxxxxxxxx…")
    told = render_run_strips(facts.runs, facts.at)
    assert max(len(text.plain) for text in told) <= 80
    assert lines[1].startswith("█ steps")
