"""An alert that flaps: who hears of it, of what, and when it is over."""

from msgspec.structs import replace

from sentinel.alerting.flapping import FlapPolicy
from sentinel.alerting.processor import Plan, forget
from sentinel.alerting.settings import Hours, Route
from sentinel.alerting.state_machine import Policy, step
from sentinel.core.clock import Instant, shifted
from sentinel.core.model import Alert, Finding, Key, Status
from sentinel.testing import START
from tests.alerting.test_pending_notifications import PLAN, Night

OK, WARN, CRIT = Status.OK, Status.WARNING, Status.CRITICAL
BAD, GOOD = [5.0 * n for n in range(0, 12, 2)], [5.0 * n for n in range(1, 12, 2)]


def flapping(night: Night, bad: Status = CRIT) -> Night:
    """An hour of a look every five minutes, bad and good by turns."""
    for minute in sorted([*BAD, *GOOD]):
        night.sees(minute, bad if minute in BAD else OK)
    return night


def heard_from(night: Night, minute: float) -> list[tuple[float, str]]:
    return [(at, reason) for at, _, reason in night.told if at >= minute]


def test_it_begins_with_the_firing_that_is_one_change_too_many() -> None:
    """Exactly at the limit: firings and ends count alike."""
    policies = {"disks": Policy(kind="fs", flap=FlapPolicy(changes=5))}
    night = Night(replace(PLAN, policies=policies))
    for n in range(5):
        night.sees(n, OK if n % 2 else CRIT)
    reasons = [reason for _, _, reason in night.told]
    assert reasons == ["firing", "resolved", "firing", "resolved", "flapping"]


def test_it_is_over_when_a_third_of_the_limit_is_left_in_the_window() -> None:
    """Changes at 0, 5, … 30 minutes, six an hour: when the one at 20 is an hour ago two are left."""
    night = Night()
    for minute in range(0, 100, 5):
        night.sees(minute, OK if minute % 10 and minute < 30 else CRIT)
    assert heard_from(night, 31) == [(80, "settled")]


def test_whoever_was_not_told_hears_that_it_flaps_as_soon_as_they_may() -> None:
    """It began in a silence and goes on after it: nobody knows yet."""
    night = flapping(Night().silence(-5, 57))
    assert night.told == []
    night.sees(60, CRIT).sees(65, OK).sees(70, CRIT)
    assert heard_from(night, 57) == [(60, "flapping")]


def test_a_route_whose_hours_begin_hears_that_it_flaps() -> None:
    """START is 08:00: what flaps all day long is told at 09:00, not never."""
    route = Route(to=["mail"], hours=Hours(from_="09:00", until="17:00"))
    night = flapping(Night(replace(PLAN, routes=[route])), WARN)
    for minute in range(60, 600, 5):
        night.sees(minute, WARN if minute % 10 == 0 else OK)
    assert night.told == [(60, "mail", "flapping")]


def test_what_gets_worse_while_it_flaps_is_told_once() -> None:
    """A disk that swings about its warning and then is full: critical is no flapping news."""
    night = flapping(Night(), WARN)
    night.sees(60, CRIT).sees(65, OK).sees(70, CRIT).sees(75, WARN)
    assert heard_from(night, 56) == [(60, "worse")]


def test_what_flaps_is_not_repeated() -> None:
    """It was said that it comes and goes; the rest is noise until it settles."""
    night = flapping(Night())
    for minute in range(60, 3000, 5):
        night.sees(minute, CRIT if minute % 10 == 0 else OK)
    assert heard_from(night, 56) == []


def test_a_flapping_alert_of_a_check_that_is_removed_ends() -> None:
    """Those who heard that it flaps hear that it is over; nothing of it is left in the state."""
    for last in (CRIT, OK):
        night = flapping(Night()).sees(60, last)
        [alert] = night.alerts.values()
        assert (alert.flapping, alert.firing) == (True, last is CRIT)
        batch = forget(list(night.alerts), night.alerts, PLAN, shifted(START, 3700))
        assert [(o.notification.reason, o.notification.status) for o in batch.outbox] == [
            ("settled", OK)
        ]
        assert list(batch.closed) == list(night.alerts)


def test_flapping_that_is_turned_off_settles_at_the_next_look() -> None:
    """`changes: 0` in a file that is loaded anew."""
    night = flapping(Night())
    night.plan = Plan(
        cluster="lab",
        policies={"disks": Policy(kind="fs", flap=FlapPolicy(changes=0))},
        channels=["mail"],
    )
    assert heard_from(night.sees(60, CRIT), 56) == [(60, "settled")]


def test_a_blip_that_would_not_fire_is_no_change() -> None:
    """With `for: 2m`: what is bad for a moment now and then has settled, as it would not be told."""
    key, policy = Key("lab", "disks", "/"), Policy(kind="fs", for_=120)
    alert: Alert | None = None
    told = []
    long = [CRIT, CRIT, CRIT, OK] * 6
    for minute, status in enumerate(long + [CRIT, OK] * 40):
        finding = Finding(subject="/", status=status, summary="")
        done = step(key, alert, finding, policy, shifted(START, 60 * minute))
        alert = done.alert
        told += [done.transition.reason] if done.transition else []
    assert told[-2:] == ["flapping", "settled"]


def test_blind_runs_are_counted_anew_while_a_check_flaps() -> None:
    """One blind run in a while is none of the three in a row that would be told."""
    key, policy = Key("lab", "disks", ""), Policy(kind="fs", blind_after=3)
    alert: Alert | None = None
    told = []
    blind, sees = Status.UNKNOWN, OK
    for minute, status in enumerate([blind, blind, blind, sees] * 6 + [blind, sees] * 40):
        finding = Finding(subject="", status=status, summary="")
        done = step(key, alert, finding, policy, shifted(START, 60 * minute))
        alert = done.alert
        told += [done.transition.reason] if done.transition else []
    assert told[-2:] == ["flapping", "settled"]


def _flaps(at: Instant) -> Alert:
    alert: Alert | None = None
    key, policy = Key("lab", "disks", "/"), Policy(kind="fs")
    for n in range(8):
        finding = Finding(subject="/", status=OK if n % 2 else CRIT, summary="")
        alert = step(key, alert, finding, policy, shifted(at, 60 * n)).alert
    assert alert is not None
    assert alert.flapping
    return alert


def test_a_clock_that_was_a_year_ahead_silences_nothing_for_a_year() -> None:
    """A host that boots with a wrong clock, and is corrected: what flapped then is over."""
    year = 365 * 86_400
    alert = _flaps(Instant(wall=START.wall + year * 1_000_000, boot="boot-1", mono=START.mono))
    bad = Finding(subject="/", status=CRIT, summary="full")
    done = step(alert.key, alert, bad, Policy(kind="fs"), shifted(START, 600))
    assert done.transition is not None
    assert (done.transition.reason, done.transition.status) == ("settled", CRIT)


def test_a_clock_that_was_minutes_ahead_changes_nothing() -> None:
    """NTP steps it back: the changes still count."""
    alert = _flaps(shifted(START, 300))
    bad = Finding(subject="/", status=CRIT, summary="full")
    assert step(alert.key, alert, bad, Policy(kind="fs"), shifted(START, 60)).transition is None
