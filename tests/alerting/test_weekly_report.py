"""The weekly report of trainings: by the ordinary routes, once."""

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from sentinel.alerting.settings import Hours, Match, ReportSettings, Route, SilenceWindow
from sentinel.alerting.silences import Orders
from sentinel.alerting.weekly_report import (
    NO_REPORT,
    WEEKLY_KEY,
    find_last_slot,
    list_week_lines,
    make_report,
    summarize_week,
)
from sentinel.channels.event import incident_move
from sentinel.channels.format.text import make_card, render_text, subject_line
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.errors import Invalid
from sentinel.core.model import Batch, Notification
from sentinel.core.run_ledger import LedgerRow
from sentinel.engine.tick import run_pass
from sentinel.report.run_report import group_runs, report_runs
from sentinel.store.memory import MemoryStore
from sentinel.testing import ManualClock
from tests.engine.worlds import Book, Says, Scene, play, world

WEEKLY = ReportSettings(weekly="mon 08:00")
MONDAY = datetime(2027, 1, 18, 8, 0, tzinfo=timezone.utc)
HOUR, DAY = 3600.0, 86_400.0


def moment(when: datetime, after: float = 0.0) -> Instant:
    return Instant(int(when.timestamp() + after) * SECOND)


def ledger(when: datetime, *runs: str) -> tuple[LedgerRow, ...]:
    """Trainings that held 8 GPUs for 10 hours, until an hour before."""
    ended = moment(when, -HOUR).wall
    began = moment(when, -11 * HOUR).wall
    return tuple(
        LedgerRow(run=run, kind="held", began=began, ended=ended, job="1", gpus=8) for run in runs
    )


class Post:
    """Passes of a chain: each has an engine of its own over the same state."""

    def __init__(self, *runs: str, **plan: object) -> None:
        self.book, self.other = Book(), Book()
        made = world({"disks": Says()}, {"book": self.book, "other": self.other})
        self.world = replace(made, plan=replace(made.plan, **{"report": WEEKLY, **plan}))  # type: ignore[arg-type]
        self.store = MemoryStore()
        self.pass_at(-3 * DAY)
        self.store.take_lead("test", moment(MONDAY))
        self.store.commit(Batch(at=moment(MONDAY), ledger=ledger(MONDAY, *runs)))
        self.store.release_lead()

    def pass_at(self, after: float) -> None:
        """A pass so many seconds after Monday, 08:00."""
        clock = ManualClock(moment(MONDAY, after))

        async def story(scene: Scene) -> None:
            await run_pass(scene.engine, clock.now())

        play(story, self.world, self.store, clock)

    @property
    def reports(self) -> list[Notification]:
        return [n for n in self.book.got if n.reason == "digest"]


def test_it_is_sent_once_at_its_time() -> None:
    """Not a second before; not again after a restart, in the next pass, nor when a clock was set
    back; and again a week later if something was held."""
    post = Post("llm")
    post.pass_at(-1)
    assert post.reports == []
    for after in (0, 1, HOUR, -2 * HOUR, 6 * DAY):
        post.pass_at(after)
    (one,) = post.reports
    assert one.summary == "1 training held 80.0 GPU-hours in 7 days"
    assert one.details.startswith(
        "Run llm held 80.0 GPU-hours. How much of that went into the model"
    )
    assert (one.check, one.subject, one.alert) == ("sentinel", "report", "")
    post.pass_at(7 * DAY)
    assert len(post.reports) == 1, "nothing was held in that week"
    post.store.take_lead("test", moment(MONDAY))
    week = ledger(MONDAY, "llm")[0]
    shift = 13 * 86_400 * SECOND
    again = replace(week, began=week.began + shift, ended=week.ended + shift, job="2")
    post.store.commit(Batch(at=moment(MONDAY), ledger=(again,)))
    post.store.release_lead()
    post.pass_at(14 * DAY)
    assert len({n.key for n in post.reports}) == len(post.reports) == 2


def test_it_comes_later_where_no_pass_was_made_at_its_time() -> None:
    """The period is that before its time all the same."""
    post = Post("llm")
    post.pass_at(2 * DAY)
    assert [n.key for n in post.reports] == [f"report-{int(MONDAY.timestamp())}"]


def test_nothing_is_sent_if_nothing_was_held() -> None:
    """Nor without the setting, nor at once where it was set or changed just now."""
    empty = Post()
    empty.pass_at(0)
    off = Post("llm", report=None)
    off.pass_at(0)
    assert empty.reports == off.reports == []
    fresh = Post("llm", report=ReportSettings(weekly="fri 08:00"))
    fresh.world = replace(fresh.world, plan=replace(fresh.world.plan, report=WEEKLY))
    fresh.pass_at(HOUR)
    assert fresh.reports == []


def test_a_report_that_cannot_be_made_is_told_once_and_is_no_quiet_week() -> None:
    """A row that no code expects. The next pass does not try again."""
    post, now = Post(), moment(MONDAY, 60)
    earlier = {"weekly": "mon 08:00", "slot": 0}
    made = make_report(post.world.plan, now, Orders(), earlier, lambda _: [None])  # type: ignore[list-item]
    assert made is not None
    assert {row.notification.summary for row in made.outbox} == {NO_REPORT}
    stored = made.memory[WEEKLY_KEY]
    assert stored is not None
    assert make_report(post.world.plan, now, Orders(), stored, lambda _: []) is None


def test_routes_decide_who_gets_it() -> None:
    """By check and subject; a route for warnings and worse does not get it."""
    routes = [
        Route(to=["book"], match=Match(severity="critical")),
        Route(to=["other"], match=Match(check="sentinel", subject="report")),
    ]
    post = Post("llm", routes=routes)
    post.pass_at(0)
    assert post.reports == []
    assert [n.reason for n in post.other.got] == ["digest"]


def test_it_waits_for_the_hours_of_its_route_and_for_the_end_of_a_silence() -> None:
    """It is not lost."""
    late = Route(to=["book"], hours=Hours(from_="10:00", until="18:00"))
    post = Post("llm", routes=[late])
    post.pass_at(0)
    assert post.reports == []
    post.pass_at(2 * HOUR)
    assert len(post.reports) == 1
    window = SilenceWindow(from_="2027-01-18T00:00:00Z", until="2027-01-18T12:00:00Z")
    quiet = Post("llm", windows=[window])
    quiet.pass_at(HOUR)
    assert quiet.reports == []
    quiet.pass_at(4 * HOUR)
    assert len(quiet.reports) == 1


def test_a_channel_that_tells_each_user_of_their_own_jobs_does_not_get_it() -> None:
    """It tells of everybody's trainings."""
    post = Post("llm", personal=["book"])
    post.pass_at(0)
    assert post.reports == []
    assert len(post.other.got) == 1


def test_what_a_person_and_a_pager_get() -> None:
    """A mail says REPORT and lists the trainings; no incident is opened."""
    post = Post("llm", "other")
    post.pass_at(0)
    (one,) = post.reports
    assert subject_line([one]).startswith("REPORT lab sentinel report: 2 trainings held 160 GPU-h")
    text = render_text([one])
    assert "llm held 80.0 GPU-hours" in text
    assert "other held 80.0 GPU-hours" in text
    assert "sentinel report" in text
    card = make_card(one)
    assert (card.tone, card.more) == ("info", ())
    assert incident_move(one) == "note"


def test_many_trainings_fit_into_a_message() -> None:
    """Ten of them, and how many more there are."""
    rows = ledger(MONDAY, *(f"run-{n}" for n in range(30)))
    until = moment(MONDAY).wall
    reports = report_runs(group_runs(rows), until - 7 * 86_400 * SECOND, until)
    lines = list_week_lines(reports)
    assert len(lines) == 11
    assert lines[-1] == "and 20 more"
    assert summarize_week(reports) == "30 trainings held 2,400 GPU-hours in 7 days"


def test_the_share_of_all_trainings_together() -> None:
    """All of the first went into the model; of the second nobody knows, so it is at least half."""
    held = ledger(MONDAY, "llm")[0]
    steps = replace(held, kind="steps", first_step=0.0, last_step=100.0)
    saved = replace(held, kind="saved", job="", began=held.ended, last_step=100.0)
    until = moment(MONDAY).wall
    known = [held, steps, saved]

    def summary(*rows: LedgerRow) -> str:
        return summarize_week(report_runs(group_runs(rows), until - 7 * 86_400 * SECOND, until))

    start = "1 training held 80.0 GPU-hours in 7 days"
    assert summary(*known) == f"{start}; 100% of them went into the model"
    both = summary(*known, replace(held, run="other"))
    assert (
        both == "2 trainings held 160 GPU-hours in 7 days; at least 50% of them went into the model"
    )


@pytest.mark.parametrize(
    ("zone", "now", "slot"),
    [
        ("UTC", "2027-01-18T07:59:59+00:00", "2027-01-11T08:00+00:00"),
        ("UTC", "2027-01-18T08:00:00+00:00", "2027-01-18T08:00+00:00"),
        ("UTC", "2027-01-24T23:59:59+00:00", "2027-01-18T08:00+00:00"),
        ("Europe/Berlin", "2027-01-18T07:00:00+00:00", "2027-01-18T08:00+01:00"),
        ("Asia/Tokyo", "2027-01-17T23:00:00+00:00", "2027-01-18T08:00+09:00"),
        ("America/Los_Angeles", "2027-01-18T15:59:59+00:00", "2027-01-11T08:00-08:00"),
        # clocks go forward on 28 March, between two Mondays
        ("Europe/Berlin", "2027-03-29T06:00:00+00:00", "2027-03-29T08:00+02:00"),
        ("Europe/Berlin", "2027-03-29T05:59:59+00:00", "2027-03-22T08:00+01:00"),
    ],
)
def test_the_time_is_local(zone: str, now: str, slot: str) -> None:
    """On each side of a change of clocks."""
    found = find_last_slot(WEEKLY, moment(datetime.fromisoformat(now)), ZoneInfo(zone))
    assert found == int(datetime.fromisoformat(slot).timestamp())


@pytest.mark.parametrize(
    "text", ["", "monday 08:00", "mon", "08:00", "mon 8", "mon 24:00", "mon 08:60", "mon-fri 08:00"]
)
def test_what_is_no_day_and_time_is_refused(text: str) -> None:
    """When the file is read."""
    with pytest.raises(Invalid, match=r"mon 08:00|of the day|next day"):
        ReportSettings(weekly=text)


def test_a_day_in_capitals_is_the_same() -> None:
    """As in `hours`."""
    assert ReportSettings(weekly=" Sun 23:59 ").parse_weekly() == (7, 23 * 60 + 59)
    assert shift_instant(moment(MONDAY), 0) == moment(MONDAY)
