"""Who hears of what, one rule a test."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from sentinel.alerting.matchers import matches_alert
from sentinel.alerting.routing import DEFAULT_REPEAT_S, find_listeners, is_outside_hours, lookback_s
from sentinel.alerting.settings import Escalate, Hours, Match, Route
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.errors import Invalid
from sentinel.core.model import Alert, Key, Status
from sentinel.core.values import Duration
from sentinel.testing import START

CHANNELS = ["mail", "chat", "book"]
BERLIN = ZoneInfo("Europe/Berlin")


def alert(**more: object) -> Alert:
    facts: dict[str, object] = {
        "key": Key("lab", "drained", "node-1"),
        "id": "a1",
        "kind": "drained",
        "status": Status.WARNING,
        "severity": Status.WARNING,
        "summary": "drained",
        "since": START,
        "last": START,
        "firing": True,
        "labels": {"node": "node-1", "team": "six"},
    }
    return Alert(**(facts | more))  # type: ignore[arg-type]


def heard(
    an_alert: Alert, routes: list[Route], at: float = 0.0, acked: bool = False
) -> dict[str, float]:
    now = shift_instant(START, at)
    return {
        n: h.repeat for n, h in find_listeners(an_alert, routes, CHANNELS, now, acked=acked).items()
    }


def test_without_routes_every_channel_hears_everything() -> None:
    """The interface's default, repeated once a day."""
    assert heard(alert(), []) == dict.fromkeys(CHANNELS, DEFAULT_REPEAT_S)


def test_the_first_matching_route_decides() -> None:
    """Later routes are not asked, even where they match, too."""
    routes = [Route(to=["mail"], match=Match(kind="drained")), Route(to=["chat"])]
    assert list(heard(alert(), routes)) == ["mail"]
    assert list(heard(alert(kind="fs"), routes)) == ["chat"]


def test_continue_asks_the_next_route_too() -> None:
    """And the first route to name a channel sets its repeat."""
    routes = [
        Route(to=["mail"], repeat=Duration(60), continue_=True),
        Route(to=["mail", "chat"], repeat=Duration(3600)),
        Route(to=["book"]),
    ]
    assert heard(alert(), routes) == {"mail": 60.0, "chat": 3600.0}


def test_when_no_route_matches_nobody_is_told() -> None:
    """A route is a promise to tell only whom it names."""
    assert heard(alert(), [Route(to=["mail"], match=Match(kind="fs"))]) == {}


def test_escalation_adds_a_channel_after_its_time_unless_acknowledged() -> None:
    """Exactly at `after`, counted from the firing."""
    routes = [Route(to=["mail"], escalate=Escalate(after=Duration(1800), to=["chat"]))]
    fired = alert(fired=START)
    assert list(heard(fired, routes, 1799)) == ["mail"]
    assert list(heard(fired, routes, 1800)) == ["mail", "chat"]
    assert list(heard(fired, routes, 1800, acked=True)) == ["mail"]


def test_alerts_of_one_group_share_a_message() -> None:
    """By default those of one check; else by the keys and labels of the route."""

    def group(an_alert: Alert, *routes: Route) -> str:
        return find_listeners(an_alert, routes, CHANNELS, START)["mail"].group

    other = alert(key=Key("lab", "drained", "node-2"), labels={"node": "node-2", "team": "six"})
    assert group(alert()) == group(other)
    assert group(alert()) != group(alert(key=Key("lab", "disks", "/")))
    by_node = Route(to=["mail"], group_by=["node"])
    assert group(alert(), by_node) != group(other, by_node)
    by_team = Route(to=["mail"], group_by=["team"])
    assert group(alert(), by_team) == group(other, by_team)


def test_messages_are_remembered_for_an_hour_and_for_the_longest_interval() -> None:
    """Caps count an hour; a route may tell of its groups more rarely."""
    rare = Route(to=["mail"], group_interval=Duration(7200))
    assert [lookback_s(routes) for routes in ([], [Route(to=["mail"])], [rare])] == [
        3600,
        3600,
        7200,
    ]


NIGHT = Instant(wall=1_800_000_000_000_000)  # Fri 2027-01-15 09:00 in Berlin


@pytest.mark.parametrize(
    ("hours", "at_hour", "sleeps"),
    [
        (Hours(days="mon-fri", from_="09:00", until="17:00"), 0, False),
        (Hours(days="mon-fri", from_="09:01", until="17:00"), 0, True),
        (Hours(days="mon-fri", from_="08:00", until="09:00"), 0, True),
        (Hours(days="mon-thu", from_="09:00", until="17:00"), 0, True),
        (Hours(days="fri-mon", from_="09:00", until="17:00"), 0, False),
        (Hours(from_="22:00", until="06:00"), 0, True),
        (Hours(from_="22:00", until="06:00"), 13, False),
        (Hours(from_="22:00", until="06:00"), 20, False),
        (Hours(days="fri", from_="22:00", until="06:00"), 20, False),
        (Hours(days="fri", from_="22:00", until="06:00"), 21, True),
        (Hours(days="mon-fri", from_="22:00", until="06:00"), -4, False),
        (Hours(days="mon-fri", from_="22:00", until="06:00"), -4 + 3 * 24, True),
        (Hours(from_="08:00", until="08:00"), 12, False),
        (Hours(days="fri", from_="08:00", until="08:00"), 22, False),
        (Hours(days="fri", from_="08:00", until="08:00"), 23, True),
        (Hours(from_="00:00", until="00:00"), 12, False),
        (Hours(), 12, False),
        (Hours(from_="09:15", until="09:45"), 0.2, True),
        (Hours(from_="09:15", until="09:45"), 0.25, False),
        (Hours(from_="09:15", until="09:45"), 0.75, True),
        (None, 12, False),
    ],
)
def test_outside_its_hours_a_route_sleeps(
    hours: Hours | None, at_hour: float, sleeps: bool
) -> None:
    """Begin inclusive, end exclusive, over midnight where the end is not after the begin; a night
    belongs to the day on which it began, and one moment twice is a whole day."""
    now = shift_instant(NIGHT, 3600 * at_hour)
    assert is_outside_hours(hours, alert(), now, BERLIN) is sleeps
    assert is_outside_hours(hours, alert(severity=Status.CRITICAL), now, BERLIN) is False


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"days": "mon-fry"}, "'fry' is no day"),
        ({"days": "mon-"}, "'' is no day"),
        ({"from_": "8"}, "'8' is no time of the day"),
        ({"until": "24:01"}, "no time of the day"),
        ({"until": "12:60"}, "no time of the day"),
    ],
)
def test_hours_that_make_no_sense_are_refused(bad: dict[str, str], words: str) -> None:
    """When the file is read, not at night."""
    with pytest.raises(Invalid, match=words):
        Hours(**bad)


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        (Match(), True),
        (Match(severity="warning"), True),
        (Match(severity="critical"), False),
        (Match(severity=["critical", "warning"]), True),
        (Match(node="node-*"), True),
        (Match(node="gpu-*"), False),
        (Match(check="drained", kind="drained", cluster="lab", subject="node-1"), True),
        (Match(check="drained", cluster="other"), False),
        (Match(user="alice"), False),
        (Match(labels={"team": "six"}), True),
        (Match(labels={"team": "seven"}), False),
        (Match(labels={"missing": "x"}), False),
    ],
)
def test_every_key_given_must_fit(match: Match, fits: bool) -> None:
    """Values are shell patterns, a list is alternatives."""
    assert matches_alert(match, alert()) is fits


@pytest.mark.parametrize(
    ("begin", "end", "opens", "closes"),
    [
        pytest.param("01:00", "04:00", "2027-10-30T23:00Z", "2027-10-31T03:00Z", id="not doubled"),
        pytest.param("02:30", "03:30", "2027-10-31T00:30Z", "2027-10-31T02:30Z", id="in one piece"),
        pytest.param("01:00", "02:30", "2027-10-30T23:00Z", "2027-10-31T00:30Z", id="closed once"),
        pytest.param("01:00", "04:00", "2027-03-28T00:00Z", "2027-03-28T02:00Z", id="spring"),
        pytest.param("02:30", "04:00", "2027-03-28T01:00Z", "2027-03-28T02:00Z", id="in the gap"),
    ],
)
def test_hours_open_and_close_once_when_clocks_change(
    begin: str, end: str, opens: str, closes: str
) -> None:
    """In Berlin, in the nights of 2027; every ten minutes around."""
    first, last = (datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (opens, closes))
    for minutes in range(-120, 421, 10):
        at = first + timedelta(minutes=minutes)
        now = Instant(wall=int(at.timestamp()) * SECOND)
        awake = not is_outside_hours(Hours(from_=begin, until=end), alert(), now, BERLIN)
        assert awake is (first <= at < last), at
