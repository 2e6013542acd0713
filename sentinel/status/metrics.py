"""Makes the metrics that kinds of checks declare, from the last observations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from statistics import median

from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.declared import ANY, Metric
from sentinel.core.text import visible
from sentinel.status.collect import StatusInputs
from sentinel.status.freshness import explain_stale_look
from sentinel.status.last_seen import CheckLook, ShownFinding
from sentinel.status.types import MetricFact, MetricSeries

MAX_SERIES = 200
"""Series of one name that one check may make: no check pushes out another's."""


PACE_WINDOW_S = 300.0
"""Seconds over which a speed is measured. It is short, so that the time before a slowdown does not
hide it."""

STANDSTILL_FACTOR = 3.0
"""So many times as long as between two steps, and it stands still."""


def collect_metrics(m: StatusInputs) -> tuple[MetricFact, ...]:
    """The metrics by name. If two kinds declare a name with different labels, the first one keeps
    it.

    Values that are not current are left out, because Prometheus would take them for present ones.
    """
    found: dict[str, tuple[Metric, dict[tuple[str, ...], float]]] = {}
    for check in m.around.checks:
        look = m.looks.get(check.name)
        if look is None or explain_stale_look(check, look.at, m):
            continue
        for metric in check.plugin.METRICS:
            first, rows = found.setdefault(metric.name, (metric, {}))
            if first.all_labels == metric.all_labels:
                rows.update(_collect_series(metric, check.name, look, m))
    return tuple(_make_metric_fact(metric, rows) for metric, rows in found.values() if rows)


def _collect_series(
    metric: Metric, check: str, look: CheckLook, m: StatusInputs
) -> Mapping[tuple[str, ...], float]:
    rows: dict[tuple[str, ...], float] = {}
    for finding in look.findings:
        for key, number in _collect_numbers(metric, check, finding, m):
            labels = (check, *_get_label_values(metric, finding, key))
            rows.setdefault(
                tuple(map(visible, labels)), _extrapolate_value(metric, number, look, m.now)
            )
            if len(rows) == MAX_SERIES:
                return rows
    return rows


def _collect_numbers(
    metric: Metric, check: str, finding: ShownFinding, m: StatusInputs
) -> Iterator[tuple[str, float]]:
    """Unknown ones are left out: 0 would be an answer."""
    if metric.moves == "rate":
        rate = compute_pace(m.paces.get((check, finding.subject, metric.value), ()))
        if rate is not None:
            yield metric.value, rate
        return
    for key, value in finding.values.items():
        if metric.value in (key, ANY) and isinstance(value, int | float) and isfinite(value):
            yield key, float(value)


def compute_pace(points: Sequence[tuple[Instant, float]]) -> float | None:
    """Steps per second over the last RECENT seconds, or over the time of two steps. 0 if it stands
    still.

    It counts since the number last fell, because a restart counts from the beginning, or stood still,
    because the job may have been dead. None if it cannot be computed.
    """
    steps, seen = _find_steps([p for p in points if isfinite(p[1])])
    if not steps or get_elapsed_s(steps[0][0], seen) <= 0:
        return None
    if len(steps) == 1:
        return 0.0
    end, final = steps[-1]
    usual = median(get_elapsed_s(a[0], b[0]) for a, b in pairwise(steps))
    still = get_elapsed_s(end, seen)
    if still > STANDSTILL_FACTOR * usual:
        return 0.0
    gaps = (get_elapsed_s(a[0], b[0]) for a, b in pairwise(steps))
    moved = steps[
        max((n for n, s in enumerate(gaps, 1) if s > STANDSTILL_FACTOR * usual), default=0) :
    ]
    earlier = [s for s in moved[:-1] if get_elapsed_s(s[0], end) >= PACE_WINDOW_S] or moved[:1]
    since, before = earlier[-1]
    seconds = get_elapsed_s(since, end) + (still if still > usual else 0.0)
    return (final - before) / seconds if seconds > 0 else None


def _find_steps(
    points: Sequence[tuple[Instant, float]],
) -> tuple[list[tuple[Instant, float]], Instant]:
    """When each number was first seen since it last fell, and when it was looked at last."""
    steps: list[tuple[Instant, float]] = []
    for at, value in points:
        if steps and value < steps[-1][1]:
            steps = []
        if not steps or value > steps[-1][1]:
            steps.append((at, value))
    return steps, points[-1][0] if points else Instant(wall=0)


def _get_label_values(metric: Metric, finding: ShownFinding, key: str) -> Iterator[str]:
    if metric.subject:
        yield finding.subject
    yield from (finding.labels.get(name, "") for name in metric.labels)
    if metric.value == ANY:
        yield key


def _extrapolate_value(metric: Metric, number: float, look: CheckLook, now: Instant) -> float:
    if metric.moves == "up":
        return number + get_elapsed_s(look.at, now)
    if metric.moves == "down":
        return max(0.0, number - get_elapsed_s(look.at, now))
    return number * 0.01 if metric.unit == "percent" else number


def _make_metric_fact(metric: Metric, rows: Mapping[tuple[str, ...], float]) -> MetricFact:
    series = tuple(MetricSeries(labels=labels, value=value) for labels, value in rows.items())
    return MetricFact(name=metric.name, help=metric.help, labels=metric.all_labels, series=series)
