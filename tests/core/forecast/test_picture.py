"""Rules of what is drawn of a file system's past and future."""

from xml.etree import ElementTree

import pytest

from sentinel.core.forecast.forecast import Forecast
from sentinel.core.forecast.picture import (
    HEIGHT,
    ForecastSeries,
    render_forecast_svg,
    render_sparkline,
)

NOW, HOUR = 1_800_000_000.0, 3600.0
SVG = "{http://www.w3.org/2000/svg}"


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


def series(**more: object) -> ForecastSeries:
    known = {"title": "/scratch", "subtitle": "96% used", "now": NOW, "points": ((NOW, 96.0),)}
    return ForecastSeries(**{**known, **more})  # type: ignore[arg-type]


def drawn(*found: ForecastSeries) -> ElementTree.Element:
    return ElementTree.fromstring(render_forecast_svg(found))


def test_a_picture_is_well_formed_whatever_a_path_is_called() -> None:
    """Markup and control characters of a name are text in it."""
    root = drawn(series(title="/<script>&\x1b[31m\udc80", subtitle='"><x onload=""/>'))
    assert not list(root.iter(f"{SVG}script"))
    assert not list(root.iter(f"{SVG}x"))
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert "/<script>&\\x1b[31m\\udc80" in texts


def test_the_future_is_a_band_and_a_line() -> None:
    """The band ends at early and late; where it may never be full it is open."""
    both = Forecast(full_in=10 * HOUR, early=8 * HOUR, late=20 * HOUR, rate=1.0)
    points = tuple((NOW - 40 * HOUR + n * HOUR, 50.0 + n) for n in range(41))
    (band,) = drawn(series(points=points, forecast=both)).iter(f"{SVG}polygon")
    assert len(band.attrib["points"].split()) == 3
    never = Forecast(full_in=None, early=8 * HOUR, late=None, rate=1.0)
    root = drawn(series(points=points, forecast=never))
    (band,) = root.iter(f"{SVG}polygon")
    assert len(band.attrib["points"].split()) == 4
    assert not [e for e in root.iter(f"{SVG}line") if "stroke-dasharray" in e.attrib]


def test_nothing_is_drawn_outside() -> None:
    """Shares above 100, a past of years, a future of weeks."""
    far = Forecast(full_in=50 * 86_400.0, early=0.0, late=None, rate=1.0)
    points = ((NOW - 4e7, -5.0), (NOW - 1.0, 250.0), (NOW, 100.0))
    root = drawn(series(points=points, forecast=far), series())
    assert root.attrib["height"] == str(2 * HEIGHT)
    for shape in (*root.iter(f"{SVG}polyline"), *root.iter(f"{SVG}polygon")):
        for pair in shape.attrib["points"].split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= 760
            assert 0 <= y <= 2 * HEIGHT
