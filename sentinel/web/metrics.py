"""Renders facts as Prometheus metrics: names and units follow
https://prometheus.io/docs/practices/naming/.

Labels hold names from the configuration and words from fixed lists; subjects of checks (paths,
jobs) are limited for each check. So no user can create series by naming a job or giving a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from sentinel import __version__
from sentinel.core.model import Status
from sentinel.core.text import shortened
from sentinel.status.types import CheckFact, Facts

MAX_SERIES = 200
"""Series per metric name of sentinel itself; for metrics that kinds declare see status.metrics."""

MAX_LABEL_CHARS = 120
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
NO_CLUSTERS: Mapping[str, str] = {}
SeriesRow = tuple[tuple[str, ...], float | None]


def render_metrics(facts: Facts) -> bytes:
    """Metrics in the text exposition format; with those of the process if a service runs."""
    registry = CollectorRegistry()
    registry.register(_FactsCollector(facts))
    if facts.vitals is not None:
        registry.register(_ProcessCollector(facts.cluster))
    return generate_latest(registry)


class _FactsCollector:
    """Gives prometheus_client the metrics of the facts. Sentinel's own names come first, and each
    name once."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        others = {c.name: c.elsewhere for c in facts.checks if c.elsewhere}
        self._elsewhere = {
            shortened(n, MAX_LABEL_CHARS): shortened(c, MAX_LABEL_CHARS) for n, c in others.items()
        }

    def collect(self) -> Iterator[Metric]:
        """Every metric family, in the order of docs/metrics.md."""
        names = set[str]()
        for family in self._list_families():
            if family.name not in names:
                names.add(family.name)
                yield _add_cluster_label(family, self._facts.cluster, self._elsewhere)

    def _list_families(self) -> Iterator[Metric]:
        f = self._facts
        yield _make_gauge(
            "build_info", "The version that runs.", ("version",), [((__version__,), 1)]
        )
        yield _make_gauge(
            "last_look_timestamp_seconds", "When these numbers were collected.", (), [((), f.at)]
        )
        for part in (
            _list_check_metrics,
            _list_alert_metrics,
            _list_outbox_metrics,
            _list_cluster_metrics,
            _list_other_metrics,
            _list_run_metrics,
            _list_vital_metrics,
            _list_declared_metrics,
        ):
            yield from part(f)


class _ProcessCollector:
    """Gives prometheus_client the metrics of the process, with the label `cluster`."""

    def __init__(self, cluster: str) -> None:
        self._cluster, self._known = cluster, ProcessCollector(registry=None)

    def collect(self) -> Iterator[Metric]:
        """The usual process_* metric families."""
        for family in self._known.collect():
            yield _add_cluster_label(family, self._cluster)


def _add_cluster_label(
    family: Metric, cluster: str, elsewhere: Mapping[str, str] = NO_CLUSTERS
) -> Metric:
    """Add the label `cluster` to every series, since one Prometheus may scrape several clusters.

    `elsewhere`: by the name of the check, the clusters of checks that ask another cluster."""
    name = shortened(cluster, MAX_LABEL_CHARS)
    family.samples = [
        s._replace(labels={"cluster": elsewhere.get(s.labels.get("check", ""), name), **s.labels})
        for s in family.samples
    ]
    return family


def _list_check_metrics(f: Facts) -> Iterator[Metric]:
    ran = [c for c in f.checks if c.status is not None]
    names = ("check", "kind")
    states = [((c.name, c.kind, s.value), float(c.status is s)) for c in ran for s in Status]
    labels, most = (*names, "status"), MAX_SERIES * len(Status)
    yield _make_gauge(
        "check_status",
        "1 for the status of the last run; unknown where that is overdue.",
        labels,
        states,
        most,
    )
    told = (
        ("check_duration_seconds", "How long the last run took.", "duration_s"),
        ("check_last_run_timestamp_seconds", "When it last ran.", "ran"),
        ("check_next_run_timestamp_seconds", "When it runs next.", "next"),
        ("check_blind_seconds", "For how long it has not seen all that it should.", "blind_s"),
    )
    for name, text, field in told:
        yield _make_gauge(
            name, text, names, [(_get_check_labels(c), getattr(c, field)) for c in ran]
        )
    seen, text = "check_seen_timestamp_seconds", "When the check last saw what it watches."
    yield _make_gauge(seen, text, names, [(_get_check_labels(c), c.seen) for c in f.checks])


def _get_check_labels(check: CheckFact) -> tuple[str, str]:
    return check.name, check.kind


def _list_alert_metrics(f: Facts) -> Iterator[Metric]:
    counts = Counter((a.check, a.kind, a.tone.value, a.state) for a in f.alerts)
    yield _make_gauge(
        "alerts", "Alerts now.", ("check", "kind", "severity", "state"), _build_count_rows(counts)
    )
    quiet = Counter(
        reason
        for a in f.firing
        for reason, so in (("acknowledged", a.acknowledged_by), ("silenced", a.silenced_until))
        if so
    )
    yield _make_gauge(
        "alerts_quiet", "Firing alerts that are not told.", ("why",), _build_count_rows(quiet)
    )
    yield _make_gauge("silences", "Silences in force.", (), [((), len(f.silences))])


def _list_outbox_metrics(f: Facts) -> Iterator[Metric]:
    waiting = Counter((u.channel, u.reason) for u in f.unsent)
    failing = Counter((u.channel,) for u in f.unsent if u.attempts)
    oldest: dict[tuple[str, ...], float] = {}
    for u in f.unsent:
        oldest[(u.channel,)] = max(oldest.get((u.channel,), 0.0), u.waiting_s)
    yield _make_gauge(
        "outbox_messages",
        "Messages not sent yet.",
        ("channel", "reason"),
        _build_count_rows(waiting),
    )
    yield _make_gauge(
        "outbox_failing_messages",
        "Of these, tried and failed.",
        ("channel",),
        _build_count_rows(failing),
    )
    yield _make_gauge(
        "outbox_oldest_seconds", "Age of the oldest.", ("channel",), list(oldest.items())
    )


def _list_cluster_metrics(f: Facts) -> Iterator[Metric]:
    if f.nodes_seen is None:
        return
    yield _make_gauge(
        "nodes_seen_timestamp_seconds",
        "When Slurm last answered about its nodes.",
        (),
        [((), f.nodes_seen)],
    )
    if f.nodes_trouble:
        return
    reasons = Counter[tuple[str, ...]]()
    for group in f.nodes:
        if group.reason_class != "none":
            reasons[(group.state, group.reason_class)] += group.count
    states = {(state,): float(n) for state, n in f.node_states.items()}
    yield _make_gauge("nodes", "Nodes by state.", ("state",), list(states.items()))
    yield _make_gauge(
        "nodes_with_reason",
        "Nodes by class of reason.",
        ("state", "reason"),
        _build_count_rows(reasons),
    )
    jobs = {(state.lower(),): float(n) for state, n in f.queue.items()}
    yield _make_gauge("jobs", "Jobs in the queue that are watched.", ("state",), list(jobs.items()))


def _list_declared_metrics(f: Facts) -> Iterator[Metric]:
    """Metrics that kinds of checks declare for their findings, plugins too. They were limited when
    they were collected."""
    for one in f.metrics:
        rows = [(s.labels, s.value) for s in one.series]
        yield _make_gauge(one.name, one.help, one.labels, rows, len(rows))


def _list_other_metrics(f: Facts) -> Iterator[Metric]:
    standings = {(word,): float(n) for word, n in f.gpu_standings.items()}
    yield _make_gauge(
        "gpus", "GPUs with a history, by standing.", ("standing",), list(standings.items())
    )
    recent = Counter((a.action, a.outcome) for a in f.actions if f.at - a.at < 3600)
    text = "Actions of the last hour, of the newest 50."
    yield _make_gauge("actions_last_hour", text, ("action", "outcome"), _build_count_rows(recent))
    troubles = {
        "blind_check": sum(c.blind for c in f.checks),
        "unsent_message": sum(u.attempts > 0 for u in f.unsent),
        "slurm": int(bool(f.nodes_trouble)),
        "state": len(f.notices),
    }
    rows = [((reason,), float(n)) for reason, n in troubles.items()]
    yield _make_gauge("failures", "What does not work now.", ("reason",), rows)


def _list_run_metrics(f: Facts) -> Iterator[Metric]:
    """What the goodput of trainings is made of. It is a gauge: a part shrinks as its time leaves
    the week, and steps that were provisional become useful or lost."""
    text = "GPU-seconds that trainings held in the last 7 days, by what they went into."
    rows: list[SeriesRow] = [
        ((run.elsewhere or f.cluster, run.run, part), seconds)
        for run in f.runs
        for part, seconds in run.gpu_seconds.items()
    ]
    yield _make_gauge("run_gpu_seconds", text, ("cluster", "run", "class"), rows, len(rows))


def _list_vital_metrics(f: Facts) -> Iterator[Metric]:
    if f.vitals is None:
        return
    yield _make_gauge("loop_lag_seconds", "Delay of the event loop.", (), [((), f.vitals.lag_s)])
    told = (
        ("slurm_requests", "Commands of Slurm run.", "requests"),
        ("slurm_request_failures", "Of these, failed.", "failures"),
        ("slurm_request_seconds", "Time they took.", "seconds"),
    )
    for name, text, field in told:
        counter = CounterMetricFamily(f"sentinel_{name}", text, labels=("command",))
        for command, count in sorted(f.vitals.slurm.items()):
            counter.add_metric((command,), getattr(count, field))
        yield counter


def _make_gauge(
    name: str, text: str, labels: Sequence[str], rows: Sequence[SeriesRow], most: int = MAX_SERIES
) -> Metric:
    """A gauge without unknown numbers and without series beyond `most`."""
    gauge = GaugeMetricFamily(f"sentinel_{name}", text, labels=labels)
    for values, number in _select_distinct_rows(rows, most):
        gauge.add_metric([shortened(v, MAX_LABEL_CHARS) for v in values], number)
    return gauge


def _select_distinct_rows(
    rows: Iterable[SeriesRow], most: int
) -> Iterator[tuple[tuple[str, ...], float]]:
    """The first row for each set of labels: two series of one name and the same labels make the
    whole answer invalid."""
    seen = set[tuple[str, ...]]()
    for values, number in rows:
        key = tuple(shortened(v, MAX_LABEL_CHARS) for v in values)
        if number is not None and key not in seen and len(seen) < most:
            seen.add(key)
            yield values, number


def _build_count_rows(counts: Mapping[Any, int]) -> list[SeriesRow]:
    return [((k,) if isinstance(k, str) else k, float(n)) for k, n in counts.items()]
