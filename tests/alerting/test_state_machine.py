"""Each row of the life cycle in words; then random lives against a plain model."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.processor import forget_checks
from sentinel.alerting.settings import Hours, Route
from sentinel.alerting.state_machine import (
    AlertPolicy,
    FlapPolicy,
    advance_alert,
    announce_again,
    recent_changes,
)
from sentinel.core.clock import Instant, shift_instant
from sentinel.core.model import Alert, Finding, Key, Status
from sentinel.testing import START
from tests.alerting.test_pending_notifications import PLAN, Night

KEY = Key("lab", "scratch", "/scratch")
SELF = Key("lab", "scratch", "")
OK, WARN, CRIT, UNKNOWN = Status.OK, Status.WARNING, Status.CRITICAL, Status.UNKNOWN


def live(
    *seen: tuple[float, Status | None],
    policy: AlertPolicy | None = None,
    key: Key = KEY,
    patience: float = 0,
) -> list[tuple[float, str, Status]]:
    """Walk observations (seconds, status; None: no longer reported); the transitions told."""
    policy = policy or AlertPolicy(kind="fs")
    alert: Alert | None = None
    told = []
    for at, status in seen:
        waits = patience if status is CRIT else 0
        finding = status and Finding(
            subject=key.subject, status=status, summary=status.value, patience=waits
        )
        result = advance_alert(key, alert, finding, policy, shift_instant(START, at))
        alert = result.alert
        if result.transition:
            told.append((at, result.transition.reason, result.transition.status))
    return told


TEN, KEEP, BLIND = ({"for_": 600.0}, {"keep_firing_for": 300.0}, {"blind_after": 3})
FIRES, WARNS = (0, "firing", CRIT), (0, "firing", WARN)
Row = tuple[str, dict[str, Any], list[tuple[float, Status | None]], list[tuple[float, str, Status]]]

RULES: list[Row] = [
    ("bad once fires at once without `for`", {}, [(0, CRIT)], [FIRES]),
    ("good from the start says nothing", {}, [(0, OK), (60, OK), (120, None)], []),
    ("the same trouble seen again is not told again", {}, [(0, CRIT), (60, CRIT), (120, CRIT)], [FIRES]),
    ("bad for 539 s of 600 s is pending", TEN, [(0, WARN), (539, WARN)], []),
    ("a look that comes a second early counts", TEN, [(0, WARN), (300, WARN), (599, WARN)], [(599, "firing", WARN)]),
    ("a look a minute waits for the tenth", TEN, [(60.0 * n, WARN) for n in range(10)], []),
    ("a chain every ten minutes fires at the second", TEN, [(0, WARN), (575, WARN)], [(575, "firing", WARN)]),
    ("`for` counts from the first trouble of any degree", TEN, [(0, WARN), (300, CRIT), (600, CRIT)], [(600, "firing", CRIT)]),
    ("bad for 600 s of 600 s fires", TEN, [(0, WARN), (600, WARN)], [(600, "firing", WARN)]),
    ("good within `for` is never told", TEN, [(0, WARN), (300, OK)], []),
    ("good within `for` starts it anew", TEN, [(0, WARN), (300, OK), (301, WARN), (600, WARN), (860, WARN)], []),
    ("gone within `for` is never told", TEN, [(0, WARN), (300, None), (900, None)], []),
    ("unknown within `for` changes nothing", TEN, [(0, WARN), (300, UNKNOWN), (600, WARN)], [(600, "firing", WARN)]),
    ("worse while pending fires as bad as it is", TEN, [(0, WARN), (600, CRIT)], [(600, "firing", CRIT)]),
    ("good after firing resolves", {}, [(0, CRIT), (60, OK)], [FIRES, (60, "resolved", OK)]),
    ("good again after resolved is quiet", {}, [(0, CRIT), (60, OK), (120, OK)], [FIRES, (60, "resolved", OK)]),
    ("bad again after resolved is a new firing", {}, [(0, CRIT), (60, OK), (120, CRIT)], [FIRES, (60, "resolved", OK), (120, "firing", CRIT)]),
    ("no longer reported after firing is gone", {}, [(0, CRIT), (60, None)], [FIRES, (60, "gone", OK)]),
    ("clear for 269 s of 300 s is not resolved", KEEP, [(0, CRIT), (60, OK), (329, OK)], [FIRES]),
    ("clear for 300 s of 300 s is resolved", KEEP, [(0, CRIT), (60, OK), (360, OK)], [FIRES, (360, "resolved", OK)]),
    ("bad in between starts the wait anew", KEEP, [(0, CRIT), (60, OK), (200, CRIT), (400, OK), (660, OK)], [FIRES]),
    ("unknown in between does not", KEEP, [(0, CRIT), (60, OK), (200, UNKNOWN), (360, OK)], [FIRES, (360, "resolved", OK)]),
    ("gone waits for keep_firing_for too", KEEP, [(0, CRIT), (60, None), (320, None), (360, None)], [FIRES, (360, "gone", OK)]),
    ("warning to critical is told as worse, once", {}, [(0, WARN), (60, CRIT), (120, CRIT)], [WARNS, (60, "worse", CRIT)]),
    ("critical to warning is not told", {}, [(0, CRIT), (60, WARN)], [FIRES]),
    ("back to what was told is not worse", {}, [(0, WARN), (60, CRIT), (120, WARN), (180, CRIT)], [WARNS, (60, "worse", CRIT)]),
    ("unknown opens no alert about a subject", {}, [(0, UNKNOWN), (60, UNKNOWN), (180, UNKNOWN)], []),
    ("unknown closes no alert about a subject", {}, [(0, CRIT), (60, UNKNOWN), (120, OK)], [FIRES, (120, "resolved", OK)]),
]  # fmt: skip

ITSELF: list[Row] = [
    ("two blind runs of three are silence", BLIND, [(0, UNKNOWN), (60, UNKNOWN)], []),
    ("the third is told, and sight ends it", BLIND, [(0, UNKNOWN), (60, UNKNOWN), (120, UNKNOWN), (180, OK)], [(120, "firing", UNKNOWN), (180, "resolved", OK)]),
    ("blind runs are counted in a row", BLIND, [(0, UNKNOWN), (60, UNKNOWN), (120, OK), (180, UNKNOWN), (240, UNKNOWN)], []),
    ("still blind is told once", BLIND, [(n * 60.0, UNKNOWN) for n in range(6)], [(120, "firing", UNKNOWN)]),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "policy", "seen", "told"), RULES, ids=[r[0] for r in RULES])
def test_the_life_of_a_subject(rule: str, policy: Any, seen: Any, told: Any) -> None:
    """One row a rule, in words."""
    assert live(*seen, policy=AlertPolicy(kind="fs", **policy)) == told, rule


@pytest.mark.parametrize(("rule", "policy", "seen", "told"), ITSELF, ids=[r[0] for r in ITSELF])
def test_the_life_of_a_check_that_cannot_see(rule: str, policy: Any, seen: Any, told: Any) -> None:
    """The check itself is the empty subject: it alone can be alerted on as unknown."""
    assert live(*seen, policy=AlertPolicy(kind="fs", **policy), key=SELF) == told, rule


PATIENCE: list[Row] = [
    ("what is decisive fires at once", {}, [(0, CRIT)], [FIRES]),
    ("patience counts from the first sight", {"p": 30.0}, [(0, CRIT), (20, CRIT), (30, CRIT)], [(30, "firing", CRIT)]),
    ("what passes within it is never told", {"p": 30.0}, [(0, CRIT), (20, OK), (40, CRIT)], []),
    ("what gets worse has to last anew", {"p": 30.0}, [(0, WARN), (60, CRIT), (80, CRIT), (90, CRIT)], [(0, "firing", WARN), (90, "worse", CRIT)]),
    ("and is not told when it does not", {"p": 30.0}, [(0, WARN), (60, CRIT), (80, WARN), (90, CRIT)], [(0, "firing", WARN)]),
    ("an explicit `for` counts alone", {"p": 9000.0, **TEN}, [(0, CRIT), (600, CRIT)], [(600, "firing", CRIT)]),
    ("`for: 0s` too", {"p": 9000.0, "for_": 0.0}, [(0, CRIT)], [FIRES]),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "policy", "seen", "told"), PATIENCE, ids=[r[0] for r in PATIENCE])
def test_a_finding_may_ask_for_patience(rule: str, policy: Any, seen: Any, told: Any) -> None:
    """Only a critical one does so here."""
    patience = policy.get("p", 0.0)
    policy = AlertPolicy(kind="job", **{k: v for k, v in policy.items() if k != "p"})
    assert live(*seen, policy=policy, patience=patience) == told, rule


@pytest.mark.parametrize(
    ("last", "told"), [((930, CRIT), (930, "settled", CRIT)), ((920, OK), (920, "settled", OK))]
)
def test_what_flapped_is_not_told_as_settled_before_it_is_known_how(
    last: tuple[float, Status], told: tuple[float, str, Status]
) -> None:
    """It was told as good while something critical waited for its 30 seconds, which then began anew."""
    swings = [
        (0, WARN),
        (60, OK),
        (120, CRIT),
        (150, CRIT),
        (180, OK),
        (240, CRIT),
        (270, CRIT),
        (280, OK),
    ]
    policy = AlertPolicy(kind="job", flap=FlapPolicy(changes=4, window=600.0))
    heard = live(*swings, (900, CRIT), last, policy=policy, patience=30.0)
    assert heard[-2:] == [(270, "flapping", CRIT), told]


def test_what_is_told_of_an_alert_is_numbered_from_one() -> None:
    """By these ids a message is sent once, and people find it again."""
    alert: Alert | None = None
    told = []
    for at, status in ((0, WARN), (60, CRIT), (120, OK)):
        finding = Finding(subject=KEY.subject, status=status, summary="")
        result = advance_alert(
            KEY, alert, finding, AlertPolicy(kind="fs"), shift_instant(START, at)
        )
        alert = result.alert
        assert result.transition
        told.append(result.transition.id.removeprefix(result.transition.alert))
    assert told == ["-1", "-2", "-3"]


def test_an_alert_names_the_host_that_looked_and_stays_one_where_a_chain_moves() -> None:
    """The host is a value: neither the id nor the labels, which are the identity at Alertmanager, know it.
    One that was stored before hosts were told goes on as it was."""
    alert: Alert | None = None
    ids, told = set[str](), []
    for at, host in enumerate(("", "n1", "n2", "n2")):
        policy = AlertPolicy(kind="fs", host=host, tells_host=True, labels={"team": "a"})
        finding = Finding(subject=KEY.subject, status=CRIT, summary="full")
        step = advance_alert(KEY, alert, finding, policy, shift_instant(START, 60 * at))
        alert = step.alert
        assert alert
        assert alert.values.get("host", "") == host
        assert alert.labels == {"team": "a"}
        ids.add(alert.id)
        told += [step.transition] if step.transition else []
    assert (len(ids), len(told)) == (1, 1)


@pytest.mark.parametrize(
    ("tells", "labels", "subject", "said"),
    [
        (True, {}, "/scratch", "n1"),
        (False, {}, "/scratch", None),  # what Slurm says is the same from everywhere
        (False, {}, "", "n1"),  # who is blind
        (True, {"node": "n7"}, "/scratch", None),  # it was seen there
    ],
)
def test_the_host_is_named_where_the_finding_is_true_of_it(
    tells: bool, labels: dict[str, str], subject: str, said: str | None
) -> None:
    """Of a node that was asked the node is named."""
    policy = AlertPolicy(kind="fs", host="n1", tells_host=tells, blind_after=1)
    status = CRIT if subject else Status.UNKNOWN
    finding = Finding(subject=subject, status=status, summary="", labels=labels)
    alert = advance_alert(Key("lab", "c", subject), None, finding, policy, START).alert
    assert alert
    assert alert.values.get("host") == said


def test_what_fires_already_gets_worse_at_once_under_a_longer_for_too() -> None:
    """A reload with a longer `for` does not make it wait for what was told."""
    alert: Alert | None = None
    told = []
    for at, status, for_ in ((0, WARN, 0.0), (60, CRIT, 9000.0)):
        finding = Finding(subject=KEY.subject, status=status, summary="")
        result = advance_alert(
            KEY, alert, finding, AlertPolicy(kind="fs", for_=for_), shift_instant(START, at)
        )
        alert = result.alert
        told.append(result.transition and result.transition.reason)
    assert told == ["firing", "worse"]


def test_a_clock_that_jumps_neither_fires_nor_delays() -> None:
    """`for` counts on the boot's own clock: an hour forward or back changes nothing."""
    ten = AlertPolicy(kind="fs", for_=600)
    bad = Finding(subject="/scratch", status=CRIT, summary="full")
    first = advance_alert(KEY, None, bad, ten, START).alert
    for jump in (3600, -3600):
        early = _jumped(shift_instant(START, 300), jump)
        late = _jumped(shift_instant(START, 600), jump)
        assert advance_alert(KEY, first, bad, ten, early).transition is None
        assert advance_alert(KEY, first, bad, ten, late).transition is not None


def test_after_a_reboot_the_wall_clock_counts() -> None:
    """Another boot has another monotonic clock, which must not be compared."""
    ten = AlertPolicy(kind="fs", for_=600)
    bad = Finding(subject="/scratch", status=CRIT, summary="full")
    first = advance_alert(KEY, None, bad, ten, START).alert
    rebooted = Instant(wall=START.wall + 700_000_000, boot="boot-2", mono=5_000_000)
    assert advance_alert(KEY, first, bad, ten, rebooted).transition is not None


def test_every_transition_of_an_episode_has_its_own_id() -> None:
    """Ids repeat only when the same message is sent twice; a new episode has a new one."""
    bad = Finding(subject="/scratch", status=WARN, summary="full")
    policy = AlertPolicy(kind="fs")
    first = advance_alert(KEY, None, bad, policy, START)
    assert first.alert
    _, again = announce_again(first.alert, "repeat", shift_instant(START, 60))
    later = advance_alert(KEY, None, bad, policy, shift_instant(START, 120))
    ids = [t.id for t in (first.transition, again, later.transition) if t]
    assert len(set(ids)) == 3
    assert [i.rpartition("-")[2] for i in ids] == ["1", "2", "1"]
    assert ids[0].rpartition("-")[0] == ids[1].rpartition("-")[0] != ids[2].rpartition("-")[0]


def test_flapping_lasts_through_several_good_looks_in_a_row() -> None:
    """Two good looks are a pause: what comes after is neither a new alert nor told."""
    looks = [*[CRIT, OK] * 4, OK, CRIT, OK]
    told = [reason for _, reason, _ in live(*((60.0 * i, s) for i, s in enumerate(looks)))]
    assert told == [*["firing", "resolved"] * 3, "flapping"]


NEXT = {
    "quiet": {"firing": "bad", "flapping": "flaps"},
    "bad": {"worse": "bad", "resolved": "quiet", "gone": "quiet"},
    "flaps": {"settled": "settled"},
}
"""What may follow what; a settled alert is bad or quiet by its status."""


@given(st.lists(st.sampled_from([OK, WARN, CRIT, UNKNOWN, None]), max_size=80))
def test_in_every_life_ends_follow_beginnings(statuses: list[Status | None]) -> None:
    """No end without a beginning, no two beginnings in a row, and a good subject is not bad."""
    state = "quiet"
    for _, reason, status in live(*((60.0 * i, s) for i, s in enumerate(statuses))):
        state = NEXT[state][reason]
        if state == "settled":
            state = "quiet" if status is OK else "bad"
    sight = [s for s in statuses if s is not UNKNOWN]
    if sight and (sight[-1] is OK or sight[-1] is None):
        assert state != "bad"
    if sight and sight[-1] in (WARN, CRIT):
        assert state != "quiet"


def _jumped(now: Instant, seconds: float) -> Instant:
    return Instant(wall=now.wall + int(seconds * 1e6), boot=now.boot, mono=now.mono)


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
    policies = {"disks": AlertPolicy(kind="fs", flap=FlapPolicy(changes=5))}
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
        batch = forget_checks(list(night.alerts), night.alerts, PLAN, shift_instant(START, 3700))
        assert [(o.notification.reason, o.notification.status) for o in batch.outbox] == [
            ("settled", OK)
        ]
        assert list(batch.closed) == list(night.alerts)


def test_flapping_that_is_turned_off_settles_at_the_next_look() -> None:
    """`changes: 0` in a file that is loaded anew."""
    night = flapping(Night())
    night.plan = NotificationPlan(
        cluster="lab",
        policies={"disks": AlertPolicy(kind="fs", flap=FlapPolicy(changes=0))},
        channels=["mail"],
    )
    assert heard_from(night.sees(60, CRIT), 56) == [(60, "settled")]


def test_a_blip_that_would_not_fire_is_no_change() -> None:
    """With `for: 2m`: what is bad for a moment now and then has settled, as it would not be told."""
    key, policy = Key("lab", "disks", "/"), AlertPolicy(kind="fs", for_=120)
    alert: Alert | None = None
    told = []
    long = [CRIT, CRIT, CRIT, OK] * 6
    for minute, status in enumerate(long + [CRIT, OK] * 40):
        finding = Finding(subject="/", status=status, summary="")
        done = advance_alert(key, alert, finding, policy, shift_instant(START, 60 * minute))
        alert = done.alert
        told += [done.transition.reason] if done.transition else []
    assert told[-2:] == ["flapping", "settled"]


def test_blind_runs_are_counted_anew_while_a_check_flaps() -> None:
    """One blind run in a while is none of the three in a row that would be told."""
    key, policy = Key("lab", "disks", ""), AlertPolicy(kind="fs", blind_after=3)
    alert: Alert | None = None
    told = []
    blind, sees = Status.UNKNOWN, OK
    for minute, status in enumerate([blind, blind, blind, sees] * 6 + [blind, sees] * 40):
        finding = Finding(subject="", status=status, summary="")
        done = advance_alert(key, alert, finding, policy, shift_instant(START, 60 * minute))
        alert = done.alert
        told += [done.transition.reason] if done.transition else []
    assert told[-2:] == ["flapping", "settled"]


def _flaps(at: Instant) -> Alert:
    alert: Alert | None = None
    key, policy = Key("lab", "disks", "/"), AlertPolicy(kind="fs")
    for n in range(8):
        finding = Finding(subject="/", status=OK if n % 2 else CRIT, summary="")
        alert = advance_alert(key, alert, finding, policy, shift_instant(at, 60 * n)).alert
    assert alert is not None
    assert alert.flapping
    return alert


def test_a_clock_that_was_a_year_ahead_silences_nothing_for_a_year() -> None:
    """A host that boots with a wrong clock, and is corrected: what flapped then is over."""
    year = 365 * 86_400
    alert = _flaps(Instant(wall=START.wall + year * 1_000_000, boot="boot-1", mono=START.mono))
    bad = Finding(subject="/", status=CRIT, summary="full")
    done = advance_alert(alert.key, alert, bad, AlertPolicy(kind="fs"), shift_instant(START, 600))
    assert done.transition is not None
    assert (done.transition.reason, done.transition.status) == ("settled", CRIT)


def test_a_clock_that_was_minutes_ahead_changes_nothing() -> None:
    """NTP steps it back: the changes still count."""
    alert = _flaps(shift_instant(START, 300))
    bad = Finding(subject="/", status=CRIT, summary="full")
    assert (
        advance_alert(
            alert.key, alert, bad, AlertPolicy(kind="fs"), shift_instant(START, 60)
        ).transition
        is None
    )


def test_only_a_check_that_was_blind_sees_again() -> None:
    """And only where somebody was told; a subject that is well says what it is."""

    def end(key: Key, status: Status, told: bool) -> str:
        policy = AlertPolicy(kind="fs", blind_after=1)
        bad = Finding(subject=key.subject, status=status, summary="bad")
        alert = advance_alert(key, None, bad, policy, START).alert
        assert alert is not None
        good = Finding(subject=key.subject, status=OK, summary="fine")
        after = advance_alert(
            key, replace(alert, told=told), good, policy, shift_instant(START, 60)
        )
        return after.transition.summary if after.transition else ""

    assert end(SELF, UNKNOWN, told=True) == "sees again: fine"
    assert end(SELF, UNKNOWN, told=False) == "fine"
    assert end(KEY, CRIT, told=True) == "fine"


def test_what_has_ended_is_forgotten_when_its_changes_no_longer_count() -> None:
    """Until then it is kept, for they may still add up to flapping."""
    policy = AlertPolicy(kind="fs", flap=FlapPolicy(changes=6, window=3600))
    crit = Finding(subject="/scratch", status=CRIT, summary="bad")
    alert = advance_alert(KEY, None, crit, policy, START).alert
    alert = advance_alert(KEY, alert, None, policy, shift_instant(START, 60)).alert
    assert alert is not None
    assert alert.over
    alert = advance_alert(KEY, alert, None, policy, shift_instant(START, 3600)).alert
    assert alert is not None
    assert advance_alert(KEY, alert, None, policy, shift_instant(START, 3661)).alert is None


def test_getting_worse_is_no_change_that_counts_as_flapping() -> None:
    """Only firings and ends are: what swings between warning and critical goes on firing."""
    alert = _flaps(START)
    key, policy = Key("lab", "disks", "/"), AlertPolicy(kind="fs")
    counts = []
    for n, status in enumerate([WARN, CRIT, WARN, CRIT]):
        finding = Finding(subject="/", status=status, summary="")
        after = advance_alert(key, alert, finding, policy, shift_instant(START, 480 + 60 * n))
        assert after.alert is not None
        alert = after.alert
        counts.append(len(alert.changes))
    assert counts == [counts[0]] * 4
    assert (alert.flapping, alert.firing, alert.status) == (True, True, CRIT)


def test_what_has_settled_says_how_it_is() -> None:
    """Good for an hour, and no end of its own to tell."""
    alert: Alert | None = _flaps(START)
    key, policy = Key("lab", "disks", "/"), AlertPolicy(kind="fs")
    good = Finding(subject="/", status=OK, summary="fine")
    told = []
    for n in range(20):
        after = advance_alert(key, alert, good, policy, shift_instant(START, 480 + 600 * n))
        alert = after.alert
        told += [(after.transition.reason, after.transition.summary)] if after.transition else []
    assert told == [("settled", "good, and no change for a while")]


def test_what_counts_where_nothing_is_configured() -> None:
    """Six changes within an hour are flapping, the third blind run in a row is an alert."""
    policy = AlertPolicy(kind="fs")
    for every, last in ((600.0, "flapping"), (720.0, "firing")):  # six within the hour, and five
        looks = [(every * n, (CRIT, OK)[n % 2]) for n in range(7)]
        assert live(*looks, policy=policy)[-1][1] == last
    blind: list[tuple[float, Status | None]] = [(60.0 * n, UNKNOWN) for n in range(3)]
    assert live(*blind, policy=policy, key=SELF) == [(120, "firing", UNKNOWN)]


def test_getting_worse_is_no_change_of_an_alert_that_does_not_flap() -> None:
    """Else one that fires, gets worse and ends would be half way to flapping."""
    alert, policy = None, AlertPolicy(kind="fs")
    for at, status in enumerate([WARN, CRIT]):
        seen = Finding(subject="/scratch", status=status, summary="")
        alert = advance_alert(KEY, alert, seen, policy, shift_instant(START, 60.0 * at)).alert
    assert alert is not None
    assert (alert.status, len(alert.changes)) == (CRIT, 1)


def test_what_has_ended_fires_no_more_and_is_forgotten_where_nothing_is_to_flap() -> None:
    """It is kept for its changes only; without flapping there is nothing to keep it for."""
    policy = AlertPolicy(kind="fs")
    bad, good = (Finding(subject="/scratch", status=s, summary="") for s in (CRIT, OK))
    alert = advance_alert(KEY, None, bad, policy, START).alert
    alert = advance_alert(KEY, alert, good, policy, shift_instant(START, 60)).alert
    assert alert is not None
    assert (alert.over, alert.firing) == (True, False)
    off = replace(policy, flap=FlapPolicy(changes=0))
    assert advance_alert(KEY, alert, good, off, shift_instant(START, 120)).alert is None


def test_an_alert_remembers_a_hundred_changes_at_most() -> None:
    """However fast they come: it is stored with each of them."""
    alert = _flaps(START)
    alert = replace(alert, changes=tuple(START.wall - n for n in range(1000, 0, -1)))
    assert recent_changes(alert, START, FlapPolicy()) == tuple(
        START.wall - n for n in range(100, 0, -1)
    )
