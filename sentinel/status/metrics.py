"""The numbers that kinds of checks declare, of what was seen last. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sentinel.core.clock import Instant, elapsed
from sentinel.core.declared import ANY, Metric
from sentinel.core.text import visible
from sentinel.status.collect import Material
from sentinel.status.last_seen import CheckLook, Shown
from sentinel.status.types import MetricFact, Series

MOST = 200
"""Series of one name that one check may make: no check pushes out another's."""


def told(m: Material) -> tuple[MetricFact, ...]:
    """By name; where two kinds declare one name with other labels, the first has it."""
    found: dict[str, tuple[Metric, dict[tuple[str, ...], float]]] = {}
    for check in m.around.checks:
        look = m.looks.get(check.name)
        for metric in check.plugin.METRICS if look else ():
            first, rows = found.setdefault(metric.name, (metric, {}))
            if look and first.all_labels == metric.all_labels:
                rows.update(_series(metric, check.name, look, m))
    return tuple(_fact(metric, rows) for metric, rows in found.values() if rows)


def _series(
    metric: Metric, check: str, look: CheckLook, m: Material
) -> Mapping[tuple[str, ...], float]:
    rows: dict[tuple[str, ...], float] = {}
    for finding in look.findings:
        for key, number in _numbers(metric, check, finding, m):
            labels = (check, *_labels(metric, finding, key))
            rows.setdefault(tuple(map(visible, labels)), _now(metric, number, look, m.now))
            if len(rows) == MOST:
                return rows
    return rows


def _numbers(
    metric: Metric, check: str, finding: Shown, m: Material
) -> Iterator[tuple[str, float]]:
    """Unknown ones are left out: 0 would be an answer."""
    if metric.moves == "rate":
        rate = pace(m.paces.get((check, finding.subject, metric.value), ()))
        if rate is not None:
            yield metric.value, rate
        return
    for key, value in finding.values.items():
        if metric.value in (key, ANY) and isinstance(value, int | float):
            yield key, float(value)


def pace(points: Sequence[tuple[Instant, float]]) -> float | None:
    """Steps a second since the number last fell (a restart counts anew); None if it cannot be
    told."""
    start = 0
    for place in range(1, len(points)):
        if points[place][1] < points[place - 1][1]:
            start = place
    rising = points[start:]
    seconds = elapsed(rising[0][0], rising[-1][0]) if rising else 0.0
    return (rising[-1][1] - rising[0][1]) / seconds if seconds > 0 else None


def _labels(metric: Metric, finding: Shown, key: str) -> Iterator[str]:
    if metric.subject:
        yield finding.subject
    yield from (finding.labels.get(name, "") for name in metric.labels)
    if metric.value == ANY:
        yield key


def _now(metric: Metric, number: float, look: CheckLook, now: Instant) -> float:
    if metric.moves == "up":
        return number + elapsed(look.at, now)
    if metric.moves == "down":
        return max(0.0, number - elapsed(look.at, now))
    return number * 0.01 if metric.unit == "percent" else number


def _fact(metric: Metric, rows: Mapping[tuple[str, ...], float]) -> MetricFact:
    series = tuple(Series(labels=labels, value=value) for labels, value in rows.items())
    return MetricFact(name=metric.name, help=metric.help, labels=metric.all_labels, series=series)
