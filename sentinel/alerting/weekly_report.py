"""The weekly report of trainings: one message, by the ordinary routes."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, time, timedelta, tzinfo

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.notifications import NotificationPlan, make_notification
from sentinel.alerting.routing import Listener, find_listeners
from sentinel.alerting.settings import ReportSettings
from sentinel.alerting.silences import Orders, find_silence, window_silences
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cron import resolve_local_time
from sentinel.core.guidance import name_config
from sentinel.core.model import Alert, Batch, Key, Outgoing, Status, Transition
from sentinel.core.run_ledger import LedgerRow
from sentinel.core.stored_memory import decode_memory
from sentinel.report.documents import HOUR_US
from sentinel.report.run_report import RunReport, get_read_start, group_runs, report_runs
from sentinel.report.text_lines import (
    describe_change,
    format_hours,
    format_saving,
    format_share,
    render_sentence,
)

WEEKLY_KEY = "sentinel/report"
"""Under this name the state remembers which weekly report was sent last."""

WEEK_S = 7 * 86_400
MAX_SENTENCES = 10
"""Trainings that a report names: a message shows 12 lines of details."""

NO_REPORT = "the weekly report could not be made: internal error; the log of sentinel has the rest"

_LOG = logging.getLogger("sentinel")

MAX_WHOLE_RUNS = 3
"""Of more trainings than this each has one sentence."""


class SentReport(Struct, frozen=True):
    """The last weekly report: `slot` is the time for which it was due, in seconds UTC, by the
    setting `weekly`."""

    weekly: str = ""
    slot: int = 0


def make_report(
    plan: NotificationPlan,
    now: Instant,
    orders: Orders,
    stored: Mapping[str, object],
    read_ledger: Callable[[int], Sequence[LedgerRow]],
) -> Batch | None:
    """What to write: the messages, and the memory that the report was sent. None if it is not due,
    or nobody hears it now."""
    settings = plan.report
    assert settings is not None
    sent = decode_memory(stored, SentReport) or SentReport()
    slot, rows = find_last_slot(settings, now, plan.zone), list[Outgoing]()
    if sent.weekly == settings.weekly:
        names = [] if sent.slot >= slot else [*find_report_listeners(plan, now, orders)]
        if not names:
            return None
        rows = make_report_rows(_report_week(slot, read_ledger), names, plan, now, slot)
    memory = {WEEKLY_KEY: {"weekly": settings.weekly, "slot": slot}}
    return Batch(at=now, outbox=tuple(rows), memory=memory)


def _report_week(
    slot: int, read_ledger: Callable[[int], Sequence[LedgerRow]]
) -> list[RunReport] | None:
    """The reports of the week before. None if a fault of sentinel prevents them: that is sent once,
    because to try again would fail at each pass."""
    until = slot * SECOND
    since = until - WEEK_S * SECOND
    rows = read_ledger(get_read_start(since, until))
    try:
        return report_runs(group_runs(rows), since, until)
    except Exception:
        _LOG.exception("internal error: there is no weekly report")
        return None


def find_last_slot(settings: ReportSettings, now: Instant, zone: tzinfo) -> int:
    """The last time at which a report was due (seconds UTC)."""
    weekday, minutes = settings.parse_weekly()
    wall = now.wall // SECOND
    today = datetime.combine(datetime.fromtimestamp(wall, tz=zone).date(), time())
    day = today - timedelta(days=(today.isoweekday() - weekday) % 7)
    slots = [
        resolve_local_time(day - timedelta(weeks=back) + timedelta(minutes=minutes), zone)
        for back in (0, 1)
    ]
    return slots[0] if slots[0] <= wall else slots[1]


def find_report_listeners(
    plan: NotificationPlan, now: Instant, orders: Orders
) -> Mapping[str, Listener]:
    """The channels that get the report now. Not those that tell each user of their own jobs: it
    tells of everybody's. Outside the hours of a route and while a silence fits it waits."""
    alert = _make_alert(plan, now, "")
    if find_silence(alert, (*orders.silences, *window_silences(plan.windows, now, plan.zone)), now):
        return {}
    heard = find_listeners(alert, plan.routes, plan.channels, now, plan.zone)
    return {name: listener for name, listener in heard.items() if name not in plan.personal}


def make_report_rows(
    reports: Sequence[RunReport] | None,
    names: Sequence[str],
    plan: NotificationPlan,
    now: Instant,
    slot: int,
) -> list[Outgoing]:
    """The message for each channel. Empty if no training held anything. If the reports could not be
    made, the message says so."""
    held = [one for one in reports or () if one.account.held]
    if reports is not None and not held:
        return []
    alert = _make_alert(plan, now, NO_REPORT if reports is None else summarize_week(held))
    transition = Transition(
        id=f"report-{slot}",
        alert="",
        key=alert.key,
        kind=alert.kind,
        reason="digest",
        status=Status.OK,
        severity=Status.OK,
        summary=alert.summary,
        at=now,
        since=now,
    )
    message = replace(
        make_notification(alert, transition, plan),
        details="\n".join(list_week_lines(held)),
        commands=(name_config("sentinel report", plan.config),),
    )
    return [Outgoing(channel=name, notification=message, created=now) for name in names]


def summarize_week(reports: Sequence[RunReport]) -> str:
    """The week in one sentence."""
    held = sum(one.account.held for one in reports)
    useful = sum(one.account.parts["useful"] for one in reports)
    count = len(reports)
    hours = format_hours(held / HOUR_US)
    text = f"{count} training{'s' * (count != 1)} held {hours} GPU-hours in 7 days"
    is_known = all(one.account.goodput is not None for one in reports)
    if not useful and not is_known:
        return text
    share = f"{'' if is_known else 'at least '}{format_share(useful, held)}"
    return f"{text}; {share} of them went into the model"


def list_week_lines(reports: Sequence[RunReport]) -> list[str]:
    """The lines below it, those that held most first."""
    lines = list[str]()
    for one in reports[:MAX_SENTENCES]:
        lines.append(render_sentence(one.account))
        if len(reports) > MAX_WHOLE_RUNS:
            continue
        if change := describe_change(one):
            lines.append(f"  {change}")
        lines += [f"  would have saved most: {format_saving(s)}" for s in one.savings[:1]]
    if len(reports) > MAX_SENTENCES:
        lines.append(f"and {len(reports) - MAX_SENTENCES} more")
    return lines


def _make_alert(plan: NotificationPlan, now: Instant, summary: str) -> Alert:
    """A substitute by which routes and silences are matched. It is never stored."""
    return Alert(
        key=Key(plan.cluster, "sentinel", "report"),
        id="",
        kind="sentinel",
        status=Status.OK,
        severity=Status.OK,
        summary=summary,
        since=now,
        last=now,
    )
