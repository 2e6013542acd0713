"""Each row of the life cycle in words; then random lives against a plain model."""

from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.clock import Instant, shifted
from sentinel.core.lifecycle import Policy, announced, step
from sentinel.core.model import Alert, Finding, Key, Status
from sentinel.testing import START

KEY = Key("lab", "scratch", "/scratch")
SELF = Key("lab", "scratch", "")
OK, WARN, CRIT, UNKNOWN = Status.OK, Status.WARNING, Status.CRITICAL, Status.UNKNOWN


def live(
    *seen: tuple[float, Status | None], policy: Policy | None = None, key: Key = KEY
) -> list[tuple[float, str, Status]]:
    """Walk observations (seconds, status; None: no longer reported); the transitions told."""
    policy = policy or Policy(kind="fs")
    alert: Alert | None = None
    told = []
    for at, status in seen:
        finding = status and Finding(subject=key.subject, status=status, summary=status.value)
        result = step(key, alert, finding, policy, shifted(START, at))
        alert = result.alert
        if result.transition:
            told.append((at, result.transition.reason, result.transition.status))
    return told


def test_bad_once_fires_at_once_without_for() -> None:
    """`for` defaults to 0s: the first bad finding is told."""
    assert live((0, CRIT)) == [(0, "firing", CRIT)]


def test_good_from_the_start_says_nothing() -> None:
    """No resolved without a firing."""
    assert live((0, OK), (60, OK), (120, None)) == []


def test_still_firing_is_told_once() -> None:
    """The same trouble seen again is not told again; repeats are routing's."""
    assert live((0, CRIT), (60, CRIT), (120, CRIT)) == [(0, "firing", CRIT)]


def test_for_waits_until_exactly_its_length() -> None:
    """Bad for 599 s of 600 s is pending; at 600 s it fires."""
    ten = Policy(kind="fs", for_=600)
    assert live((0, WARN), (599, WARN), policy=ten) == []
    assert live((0, WARN), (600, WARN), policy=ten) == [(600, "firing", WARN)]


def test_a_short_trouble_within_for_is_never_told() -> None:
    """Pending and good again: neither firing nor resolved, and `for` starts anew."""
    ten = Policy(kind="fs", for_=600)
    assert live((0, WARN), (300, OK), (301, WARN), (900, WARN), policy=ten) == []


def test_good_after_firing_resolves() -> None:
    """The end of a told trouble is told."""
    assert live((0, CRIT), (60, OK)) == [(0, "firing", CRIT), (60, "resolved", OK)]


def test_keep_firing_for_holds_the_resolved_back() -> None:
    """Clear for 299 s of 300 s is not resolved; bad again in between starts the wait anew."""
    keep = Policy(kind="fs", keep_firing_for=300)
    assert live((0, CRIT), (60, OK), (359, OK), policy=keep) == [(0, "firing", CRIT)]
    assert live((0, CRIT), (60, OK), (360, OK), policy=keep)[-1] == (360, "resolved", OK)
    assert live((0, CRIT), (60, OK), (200, CRIT), (400, OK), (699, OK), policy=keep) == [
        (0, "firing", CRIT)
    ]


def test_worse_is_told_better_is_not() -> None:
    """warning to critical is told once; back and forth below the worst told is quiet."""
    assert live((0, WARN), (60, CRIT), (120, WARN), (180, CRIT)) == [
        (0, "firing", WARN),
        (60, "worse", CRIT),
    ]


def test_unknown_opens_no_alert_about_a_subject() -> None:
    """Blindness is not badness."""
    assert live((0, UNKNOWN), (60, UNKNOWN), (120, UNKNOWN), (180, UNKNOWN)) == []


def test_unknown_closes_no_alert_about_a_subject() -> None:
    """A firing alert stays while nobody can see, and resolves when good is seen."""
    assert live((0, CRIT), (60, UNKNOWN), (120, OK)) == [(0, "firing", CRIT), (120, "resolved", OK)]


def test_a_subject_no_longer_reported_is_gone() -> None:
    """A good run without the subject ends its alert under another name than resolved."""
    assert live((0, CRIT), (60, None)) == [(0, "firing", CRIT), (60, "gone", OK)]


def test_a_check_alerts_on_itself_only_after_blind_after_runs() -> None:
    """Two blind runs of three are silence, the third is told; sight ends it."""
    blind = Policy(kind="fs", blind_after=3)
    assert live((0, UNKNOWN), (60, UNKNOWN), policy=blind, key=SELF) == []
    assert live((0, UNKNOWN), (60, UNKNOWN), (120, UNKNOWN), (180, OK), policy=blind, key=SELF) == [
        (120, "firing", UNKNOWN),
        (180, "resolved", OK),
    ]


def test_seeing_once_starts_the_count_of_blind_runs_anew() -> None:
    """blind_after counts runs in a row."""
    blind = Policy(kind="fs", blind_after=2)
    assert live((0, UNKNOWN), (60, OK), (120, UNKNOWN), (180, OK), policy=blind, key=SELF) == []


def test_a_clock_that_jumps_neither_fires_nor_delays() -> None:
    """`for` counts on the boot's own clock: an hour forward or back changes nothing."""
    ten = Policy(kind="fs", for_=600)
    bad = Finding(subject="/scratch", status=CRIT, summary="full")
    first = step(KEY, None, bad, ten, START).alert
    for jump in (3600, -3600):
        early = _jumped(shifted(START, 300), jump)
        late = _jumped(shifted(START, 600), jump)
        assert step(KEY, first, bad, ten, early).transition is None
        assert step(KEY, first, bad, ten, late).transition is not None


def test_after_a_reboot_the_wall_clock_counts() -> None:
    """Another boot has another monotonic clock, which must not be compared."""
    ten = Policy(kind="fs", for_=600)
    bad = Finding(subject="/scratch", status=CRIT, summary="full")
    first = step(KEY, None, bad, ten, START).alert
    rebooted = Instant(wall=START.wall + 700_000_000, boot="boot-2", mono=5_000_000)
    assert step(KEY, first, bad, ten, rebooted).transition is not None


def test_every_transition_of_an_episode_has_its_own_id() -> None:
    """Ids repeat only when the same message is sent twice; a new episode has a new one."""
    bad = Finding(subject="/scratch", status=WARN, summary="full")
    policy = Policy(kind="fs")
    first = step(KEY, None, bad, policy, START)
    assert first.alert
    _, again = announced(first.alert, "repeat", shifted(START, 60))
    later = step(KEY, None, bad, policy, shifted(START, 120))
    ids = [t.id for t in (first.transition, again, later.transition) if t]
    assert len(set(ids)) == 3
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
