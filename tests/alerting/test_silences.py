"""What silences and inhibition keep from being told, and what they never do."""

from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.alerting.matchers import matches_alert
from sentinel.alerting.settings import Inhibit, Match, SilenceWindow
from sentinel.alerting.silences import (
    MAINTENANCE_GRACE_S,
    SLURM_ORIGIN,
    Inhibition,
    Orders,
    Remark,
    Silence,
    find_causing_maintenance,
    find_silence,
    match_exactly,
    may_be_muted,
    parse_moment,
    window_silences,
    window_span,
)
from sentinel.core import cron
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.errors import Invalid
from sentinel.core.model import Alert, Key, Status
from sentinel.core.values import Duration
from sentinel.testing import START


def alert(kind: str, subject: str = "s", firing: bool = True) -> Alert:
    return Alert(
        key=Key("lab", kind, subject),
        id=kind,
        kind=kind,
        status=Status.CRITICAL,
        summary="",
        since=START,
        last=START,
        firing=firing,
    )


def mutes(when: str, mute: str) -> Inhibit:
    return Inhibit(when=Match(kind=when), mute=Match(kind=mute))


SLURM, JOB, LOG, FS = (alert(kind) for kind in ("slurm", "job", "log", "fs"))
CHAIN = [mutes("job", "log"), mutes("slurm", "job")]


def test_of_several_silences_the_longest_is_named() -> None:
    """Whoever reads it wants to know when they will hear of it."""
    ends = {"a": 60, "b": 90, "c": 30}
    several = [
        Silence(id=name, match=Match(), starts=0, ends=START.wall + left)
        for name, left in ends.items()
    ]
    found = find_silence(JOB, several, START)
    assert found is not None
    assert found.id == "b"


def test_only_what_fires_mutes() -> None:
    """A trouble that is over, or has not lasted long enough, explains nothing."""
    assert Inhibition(CHAIN, [alert("slurm", firing=False), JOB]).find_explanation(JOB) is None
    assert Inhibition(CHAIN, [SLURM, JOB]).find_explanation(JOB) == SLURM


def test_what_is_muted_still_mutes_and_the_first_cause_is_named() -> None:
    """slurmctld is down: that no job runs and no log grows are both of it."""
    found = Inhibition(CHAIN, [LOG, JOB, SLURM])
    assert [found.find_explanation(a) for a in (LOG, JOB, SLURM)] == [SLURM, SLURM, None]


def test_alerts_that_mute_each_other_are_all_told() -> None:
    """Else nobody would hear of either: two rules, and three in a circle."""
    two = Inhibition([mutes("job", "fs"), mutes("fs", "job")], [JOB, FS])
    assert [two.find_explanation(a) for a in (JOB, FS)] == [None, None]
    rules = [mutes("job", "log"), mutes("log", "fs"), mutes("fs", "job")]
    three = Inhibition(rules, [JOB, LOG, FS])
    assert [three.find_explanation(a) for a in (JOB, LOG, FS)] == [None, None, None]


def test_a_circle_with_a_cause_outside_is_muted_by_that() -> None:
    """Both are explained after all."""
    rules = [mutes("job", "fs"), mutes("fs", "job"), mutes("slurm", "job")]
    found = Inhibition(rules, [JOB, FS, SLURM])
    assert [found.find_explanation(a) for a in (JOB, FS, SLURM)] == [SLURM, SLURM, None]


def test_alerts_are_looked_through_once_for_all_questions() -> None:
    """A storm of 2,000 alerts that asked about each other held a pass up for half a minute."""
    once = iter([SLURM, *(alert("job", str(n)) for n in range(50))])
    found = Inhibition(CHAIN, once)
    assert all(found.find_explanation(alert("job", str(n))) == SLURM for n in range(50))


def on(node: str, kind: str) -> Alert:
    return replace(alert(kind, f"{kind} {node}"), labels={"node": node} if node else {})


def test_a_node_that_is_down_mutes_the_alerts_of_that_node() -> None:
    """And of no other, nor of what is about no node at all."""
    rule = Inhibit(when=Match(kind="nodes"), mute=Match(kind=["gpu", "fs"]), same=["node"])
    found = Inhibition([rule], [on("n1", "nodes"), on("n2", "gpu"), on("n1", "gpu")])
    assert found.find_explanation(on("n1", "gpu")) == on("n1", "nodes")
    assert found.find_explanation(on("n1", "fs")) == on("n1", "nodes")
    assert [found.find_explanation(on(node, "gpu")) for node in ("n2", "n10", "")] == [
        None,
        None,
        None,
    ]
    assert found.find_explanation(on("n1", "job")) is None


def test_two_alerts_without_a_node_are_not_of_the_same_node() -> None:
    """The check of nodes is blind, and no GPU of the cluster is told any more? Alertmanager takes
    two missing labels for equal; here nobody knows."""
    rule = Inhibit(when=Match(kind="nodes"), mute=Match(kind="gpu"), same=["node"])
    assert Inhibition([rule], [on("", "nodes")]).find_explanation(on("", "gpu")) is None


def test_same_takes_what_an_alert_has_of_itself_too() -> None:
    """Both must agree where two are named."""
    when, mute = Match(kind="fs", status="critical"), Match(kind="fs", status="warning")
    rule = Inhibit(when=when, mute=mute, same=["cluster", "node"])
    bad, less = on("n1", "fs"), replace(on("n1", "fs"), status=Status.WARNING)
    away = replace(less, key=Key("other", "fs", "s"))
    found = Inhibition([rule], [bad, less, away])
    assert [found.find_explanation(a) for a in (bad, less, away)] == [None, bad, None]


def test_what_fits_both_sides_is_muted_by_what_fits_one() -> None:
    """As in Alertmanager; by itself, or by one like it, it is not."""
    rule = Inhibit(when=Match(kind=["slurm", "job"]), mute=Match(kind="job"))
    assert Inhibition([rule], [SLURM, JOB]).find_explanation(JOB) == SLURM
    assert Inhibition([rule], [JOB, alert("job", "t")]).find_explanation(JOB) is None
    other = Inhibit(when=Match(kind="fs"), mute=Match(subject="t"))
    assert Inhibition([rule, other], [JOB, alert("job", "t"), FS]).find_explanation(JOB) is None


def test_each_node_has_a_chain_of_its_own() -> None:
    """The first cause on that node is named; a storm over 2,000 nodes is looked through at once."""
    rules = [
        Inhibit(when=Match(kind="gpu"), mute=Match(kind="log"), same=["node"]),
        Inhibit(when=Match(kind="nodes"), mute=Match(kind="gpu"), same=["node"]),
    ]
    storm = [on(f"n{n}", kind) for n in range(2000) for kind in ("log", "gpu", "nodes")]
    found = Inhibition(rules, storm)
    assert all(
        found.find_explanation(on(f"n{n}", "log")) == on(f"n{n}", "nodes") for n in range(2000)
    )


@pytest.mark.parametrize(
    "key", [k for k in Match.__struct_fields__ if k not in ("labels", "matchers")]
)
def test_no_key_of_a_match_goes_unread(key: str) -> None:
    """A key that nobody looks at would let a silence take everything."""
    assert not matches_alert(replace(Match(), **{key: "no such thing"}), JOB)


BERLIN = ZoneInfo("Europe/Berlin")
CRONS = ("0 3 * * sun", "*/7 1-4 * * *", "30 22 1,15 * mon", "59 23 31 12 *", "0 0 29 2 *")


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"from_": "2027-01-01"},
        {"from_": "2027-01-01", "for_": Duration(60)},
        {"cron": "@daily"},
        {"cron": "@daily", "for_": Duration(60), "until": "2027-01-01"},
    ],
)
def test_a_window_is_one_span_or_recurs(keys: dict[str, Any]) -> None:
    """A key that would be ignored is refused: a daily silence `until` a day is not what it says."""
    with pytest.raises(Invalid, match="a silence always ends"):
        SilenceWindow(**keys)


def weekly(at: datetime) -> tuple[datetime, datetime] | None:
    return opened("0 3 * * sun", 7200, at)


def opened(text: str, length: float, at: datetime) -> tuple[datetime, datetime] | None:
    found = window_span(SilenceWindow(cron=text, for_=Duration(length)), at.timestamp(), BERLIN)
    return found and tuple(datetime.fromtimestamp(t, tz=timezone.utc) for t in found)  # type: ignore[return-value]


def test_a_recurring_window_is_open_from_its_minute_for_its_length() -> None:
    """Begin inclusive, end exclusive: two hours from Sunday 03:00 on."""
    begin = datetime(2027, 1, 17, 3, tzinfo=BERLIN)
    open_ = (begin, begin + timedelta(hours=2))
    assert weekly(begin - timedelta(seconds=1)) is None
    assert weekly(begin) == weekly(begin + timedelta(seconds=7199)) == open_
    assert weekly(begin + timedelta(hours=2)) is None


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        pytest.param("0 1 * * *", "2027-10-30T23:00Z", "2027-10-31T01:00Z", id="autumn: not cut"),
        pytest.param("30 2 * * *", "2027-10-31T00:30Z", "2027-10-31T02:30Z", id="autumn: once"),
        pytest.param(
            "0 1 * * *", "2027-03-28T00:00Z", "2027-03-28T02:00Z", id="spring: not longer"
        ),
        pytest.param("30 2 * * *", "2027-03-28T01:00Z", "2027-03-28T03:00Z", id="spring: not lost"),
    ],
)
def test_a_window_is_as_long_as_it_says_when_clocks_change(text: str, begin: str, end: str) -> None:
    """Two hours each, open at every minute between and at no other of that night."""
    first, last = (datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (begin, end))
    for minutes in range(-180, 301, 10):
        at = first + timedelta(minutes=minutes)
        inside = first <= at < last
        assert (opened(text, 7200, at) == (first, last)) is inside, at


@given(
    st.sampled_from(CRONS),
    st.datetimes(datetime(2023, 12, 1), datetime(2025, 2, 1), timezones=st.just(timezone.utc)),
    st.sampled_from([60, 3600, 90_000, 3 * 86_400]),
)
def test_a_window_is_open_when_a_minute_within_its_length_is_a_start(
    text: str, at: datetime, length: int
) -> None:
    """Against the plain way: look at every minute, the last first; in UTC, where no clock changes."""
    found = window_span(
        SilenceWindow(cron=text, for_=Duration(length)), at.timestamp(), timezone.utc
    )
    when, last = cron.parse_cron(text), at.replace(second=0, microsecond=0)
    minutes = (last - timedelta(minutes=back) for back in range(length // 60 + 1))
    starts = (
        m for m in minutes if cron.is_due_minute(when, m) and at - m < timedelta(seconds=length)
    )
    begin = next(starts, None)
    assert (found and found[0]) == (begin and begin.timestamp())


@pytest.mark.parametrize(
    ("text", "hour_utc"), [("T18:00", 17), ("T18:00Z", 18), ("T18:00+05:00", 13)]
)
def test_a_moment_without_an_offset_is_in_the_configured_zone(text: str, hour_utc: int) -> None:
    at = parse_moment(f"2026-12-24{text}", BERLIN, "from").timestamp()
    assert datetime.fromtimestamp(at, timezone.utc) == datetime(
        2026, 12, 24, hour_utc, tzinfo=timezone.utc
    )


def test_a_silence_of_one_alert_is_of_that_alert_alone() -> None:
    """Whatever stands in its names."""
    odd = Key("lab*", "fs~1", '=~"/scratch/[ab]*"')
    match = match_exactly(odd)
    near = [
        replace(odd, subject="/scratch/a"),
        replace(odd, check="fs"),
        replace(odd, cluster="labs"),
    ]
    fits = [matches_alert(match, replace(FS, key=key)) for key in (odd, *near)]
    assert fits == [True, False, False, False]


def silence(starts: int = 0, ends: int = 60, **more: Any) -> Silence:
    """From and until so many seconds after the start."""
    at = START.wall
    return Silence(
        **{"id": "s", "match": Match(), "starts": at + starts * SECOND, "ends": at + ends * SECOND,
           **more}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("quiet", "silences"),
    [
        (silence(), True),
        (silence(-60, 1), True),
        (silence(1), False),
        (silence(-60, 0), False),
        (silence(match=Match(kind="job")), True),
        (silence(match=Match(kind="log")), False),
        (silence(alerts=frozenset({"job"})), True),
        (silence(alerts=frozenset({"log"})), False),
        (silence(alerts=frozenset()), False),
        (silence(nodes=frozenset({"n1"})), True),
        (silence(nodes=frozenset({"n2"})), False),
        (silence(nodes=frozenset({""})), False),
    ],
)
def test_which_silence_covers_an_alert(quiet: Silence, silences: bool) -> None:
    """From its beginning on, until its end and not at it; by alert, node and match alike."""
    on_a_node = replace(JOB, labels={"node": "n1"})
    assert (find_silence(on_a_node, [quiet], START) is quiet) is silences


@pytest.mark.parametrize(
    ("planned", "joins"),
    [
        (silence(0, 60), True),
        (silence(1, 60), False),
        (silence(-900, -299), True),
        (silence(-900, -300), False),
        (silence(0, 60, alerts=frozenset({"log"})), False),
    ],
)
def test_what_begins_in_a_maintenance_is_its_trouble(planned: Silence, joins: bool) -> None:
    """Or within five minutes after it; by when it fired, else by when it began. A person's silence
    is no maintenance."""
    assert MAINTENANCE_GRACE_S == 300
    for began in ({"since": START}, {"since": shift_instant(START, -9999), "fired": START}):
        alert_then = replace(JOB, **began)
        assert find_causing_maintenance(alert_then, [planned]) is None
        plan = replace(planned, how=SLURM_ORIGIN)
        assert (find_causing_maintenance(alert_then, [planned, plan]) is plan) is joins


def test_what_people_said_of_an_incident() -> None:
    """The last word counts, of that incident alone; a split is no comment."""
    said = [("i", "assign", "ann"), ("i", "comment", "first"), ("i", "assign", "bob"),
            ("j", "assign", "eve"), ("i", "close", "done"), ("i", "split", ""), ("j", "comment", "x")]  # fmt: skip
    remarks = tuple(
        Remark(incident=incident, deed=deed, at=START, who="w", how="cli", text=text)  # type: ignore[arg-type]
        for incident, deed, text in said
    )
    orders = Orders(remarks=remarks)
    assert orders.find_assignee("i") == "bob"
    last = orders.last_comment("i")
    assert last is not None
    assert (last.deed, last.text) == ("close", "done")
    assert (orders.find_assignee("k"), orders.last_comment("k")) == ("", None)


def test_the_windows_of_the_file_are_silences_while_they_are_open() -> None:
    """Begin inclusive, end exclusive; each has a name of its own that stays."""
    fixed = SilenceWindow(
        from_="2027-01-15T08:00:00+00:00", until="2027-01-15T09:00:00+00:00", reason="move",
        match=Match(kind="job"),
    )  # fmt: skip
    daily = SilenceWindow(cron="0 8 * * *", for_=Duration(3600), reason="move")
    begin = int(datetime(2027, 1, 15, 8, tzinfo=timezone.utc).timestamp())
    names = set[str]()
    for offset, is_open in ((-1, False), (0, True), (3599, True), (3600, False)):
        now = Instant(wall=(begin + offset) * SECOND)
        found = window_silences([fixed, daily], now, timezone.utc)
        assert len(found) == 2 * is_open
        names |= {one.id for one in found}
        for one, window in zip(found, (fixed, daily), strict=False):
            assert (one.starts, one.ends) == (begin * SECOND, (begin + 3600) * SECOND)
            assert (one.match, one.reason, one.who) == (window.match, "move", "the configuration")
    assert len(names) == 2
    assert all(name.startswith("file-") and len(name) == 13 for name in names)


def test_which_checks_may_mute_an_alert() -> None:
    """By the check and the kind that a rule waits for, where the rule is about this alert at all."""
    named = Inhibit(when=Match(check="ctl", kind="slurm", subject="x"), mute=Match(kind="job"))
    assert may_be_muted(JOB, [named], {"ctl": "slurm"})
    assert not may_be_muted(JOB, [named], {"ctl": "fs"})
    assert not may_be_muted(JOB, [named], {"other": "slurm"})
    assert may_be_muted(JOB, [named], {"other": "slurm", "ctl": "slurm"})
    assert not may_be_muted(LOG, [named], {"ctl": "slurm"})
    assert not may_be_muted(JOB, [], {"ctl": "slurm"})
