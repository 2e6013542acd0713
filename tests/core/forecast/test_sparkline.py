"""Rules of the line of bars that shows a week."""

import pytest

from sentinel.core.forecast.sparkline import render_sparkline

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("points", "line"),
    [
        ([], "          "),
        ([(NOW, 0.0)], "         ▁"),
        ([(NOW - 100.0, 100.0), (NOW, 100.0)], "█        █"),
        ([(NOW - 101.0, 50.0)], "          "),
        ([(NOW - 95.0 + 10 * n, 10.0 * n) for n in range(10)], "▁▁▂▃▄▅▅▆▇█"),
    ],
)
def test_a_sparkline_is_blank_where_nothing_is_known(
    points: list[tuple[float, float]], line: str
) -> None:
    """From nothing to full, whatever the smallest and largest were."""
    assert render_sparkline(points, NOW, 100.0) == line
