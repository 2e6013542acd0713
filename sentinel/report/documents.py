"""The report for programs: one JSON document, or a table in CSV. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from sentinel.core.text import escape_formula, visible
from sentinel.report.gpu_time import CLASSES
from sentinel.report.interruptions import MeanTime, compute_mtbf, compute_mttr, count_causes
from sentinel.report.run_account import HungTime, RunAccount
from sentinel.report.run_report import RunReport

HOUR_US = 3600 * 10**6

TimeFormatter = Callable[[int], str]
"""Formats a moment (µs UTC) as ISO 8601."""


def make_report_document(
    report: RunReport,
    format_time: TimeFormatter,
    link: Callable[[str, int], str] | None = None,
) -> dict[str, Any]:
    """One run, with the period before (null where nothing was held then) and what would have
    saved."""
    before, grown = report.before, report.grown
    document = make_run_document(report.account, format_time, link)
    document["before"] = before and {
        "since": format_time(before.began),
        "until": format_time(before.ended),
        "goodput": _to_share(before.goodput),
        "gpu_hours": _make_hours(before),
    }
    document["grew_most"] = grown
    document["savings"] = [
        {
            "kind": saving.kind,
            "text": saving.text,
            "gpu_hours": _to_hours(saving.saved),
            "evidence": dict(saving.evidence),
        }
        for saving in report.savings
    ]
    return document


def make_run_document(
    account: RunAccount,
    format_time: TimeFormatter,
    link: Callable[[str, int], str] | None = None,
) -> dict[str, Any]:
    """One run. `goodput` and `ettr` are null where nothing says which steps are in the model."""
    calendar = account.calendar
    return {
        "run": account.run,
        "cluster": account.cluster,
        "since": format_time(account.began),
        "until": format_time(account.ended),
        "goodput": _to_share(account.goodput),
        "ettr": _to_share(account.ettr),
        "gpu_hours": _make_hours(account),
        "hung_gpu_hours": {
            name: _to_hours(getattr(account.hung, name)) for name in HungTime.__struct_fields__
        },
        "calendar_hours": {
            "held": _to_hours(calendar.held),
            "queued": _to_hours(calendar.queued),
            "not_submitted": _to_hours(calendar.not_submitted),
            "maintenance": _to_hours(calendar.maintenance),
        },
        "interruptions": [
            {
                "at": format_time(one.at),
                "cause": one.cause,
                "nodes": one.nodes,
                "job": one.job,
                "lost_gpu_hours": _to_hours(cost),
                "ended_by": one.ended_by,
                "url": link(account.run, one.at) if link else "",
            }
            for one, cost in zip(account.interruptions, account.costs, strict=True)
        ],
        "interruptions_by_cause": count_causes(account.interruptions),
        "mtbf": _make_rate(compute_mtbf(len(account.interruptions), calendar.held)),
        "mttr": _make_rate(compute_mttr(account.interruptions)),
        "mttr_automatic": _make_rate(compute_mttr(account.interruptions, "automatic")),
        "mttr_person": _make_rate(compute_mttr(account.interruptions, "person")),
        "missing_checks": list(account.missing),
        "doubts": list(account.doubts),
    }


def list_csv_rows(accounts: Sequence[RunAccount]) -> Iterator[list[str]]:
    """A header, and a row for each run. Hours are GPU-hours but for the calendar's."""
    calendar = ("queued", "not_submitted", "maintenance")
    yield ["cluster", "run", "goodput", "ettr", "held", *CLASSES, *calendar, "interruptions"]
    for one in accounts:
        # of a job that ran, without GPUs that Slurm tells of, nothing is known
        known = one.held or not one.calendar.held
        hours = [one.held, *(one.parts[name] for name in CLASSES)] if known else []
        unknown = [] if known else [""] * (1 + len(CLASSES))
        spans = [getattr(one.calendar, name) for name in calendar]
        ratios = [_to_share(one.goodput), _to_share(one.ettr)]
        yield [
            escape_formula(visible(one.cluster)),
            escape_formula(visible(one.run)),
            *("" if ratio is None else str(ratio) for ratio in ratios),
            *unknown,
            *(str(_to_hours(time)) for time in (*hours, *spans)),
            str(len(one.interruptions)),
        ]


def _make_hours(account: RunAccount) -> dict[str, float]:
    return {
        "held": _to_hours(account.held),
        **{str(name): _to_hours(account.parts[name]) for name in CLASSES},
    }


def _to_hours(time: int) -> float:
    return round(time / HOUR_US, 6)


def _to_share(ratio: Fraction | None) -> float | None:
    return None if ratio is None else round(float(ratio), 6)


def _make_rate(rate: MeanTime) -> dict[str, float | int | None]:
    """Seconds. Without enough cases there are only the cases."""
    return {"cases": rate.cases, "mean_s": rate.mean_s, "low_s": rate.low_s, "high_s": rate.high_s}
