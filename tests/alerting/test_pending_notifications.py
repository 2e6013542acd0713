"""Silences, acknowledgements, inhibition, escalation, flapping: each rule in words."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.processor import process_outcomes, review_alerts
from sentinel.alerting.settings import Escalate, Hours, Inhibit, Match, Route, SilenceWindow
from sentinel.alerting.silences import Ack, Orders, Silence
from sentinel.alerting.state_machine import AlertPolicy, FlapPolicy
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.holds import Held, HeldKind
from sentinel.core.model import Alert, Batch, Finding, Key, Report, Status
from sentinel.core.values import Duration
from sentinel.testing import ALL_SEEN, START

POLICIES = {
    "disks": AlertPolicy(kind="fs"),
    "slurm": AlertPolicy(kind="slurm"),
    "train": AlertPolicy(kind="job"),
}
PLAN = NotificationPlan(cluster="lab", policies=POLICIES, channels=["mail"])
DISKS = Match(check="disks")


class Night:
    """A sequence of runs and reviews; remembers who was told what, by minute."""

    def __init__(self, plan: NotificationPlan = PLAN) -> None:
        self.plan, self.orders = plan, Orders()
        self.alerts: dict[Key, Alert] = {}
        self.told: list[tuple[float, str, str]] = []
        self.notes: list[str] = []

    def sees(self, minute: float, *statuses: Status, check: str = "disks") -> "Night":
        """A run of the check over subjects /0, /1, …"""
        findings = tuple(
            Finding(subject=f"/{i}", status=s, summary=s.value) for i, s in enumerate(statuses)
        )
        itself = Finding(subject="", status=Status.OK, summary="sees")
        ran = RunOutcome(
            check=check,
            kind=POLICIES[check].kind,
            itself=itself,
            report=Report(coverage=ALL_SEEN, findings=findings),
            seconds=0,
        )
        now = shift_instant(START, 60 * minute)
        return self._keep(minute, process_outcomes([ran], self.alerts, self.plan, now, self.orders))

    def passes(self, minute: float) -> "Night":
        """Nothing new is seen; what is owed is looked at."""
        return self._keep(
            minute,
            review_alerts(self.alerts, self.plan, shift_instant(START, 60 * minute), self.orders),
        )

    def silence(self, begin: float, end: float, match: Match = DISKS) -> "Night":
        one = Silence(
            id="s",
            match=match,
            starts=_at(begin).wall,
            ends=_at(end).wall,
            who="alice",
            reason="moving",
        )
        self.orders = replace(self.orders, silences=(*self.orders.silences, one))
        return self

    def ack(self, minute: float) -> "Night":
        [alert] = [a for a in self.alerts.values() if a.firing]
        ack = Ack(alert=alert.id, at=_at(minute), who="bob")
        self.orders = replace(self.orders, acks={alert.id: ack})
        return self

    def _keep(self, minute: float, batch: Batch) -> "Night":
        self.alerts |= {a.key: a for a in batch.alerts}
        self.alerts = {k: a for k, a in self.alerts.items() if k not in batch.closed}
        self.told += [(minute, o.channel, o.notification.reason) for o in batch.outbox]
        self.notes += [o.notification.note for o in batch.outbox]
        return self


def _at(minute: float) -> Instant:
    return shift_instant(START, 60 * minute)


OK, WARN, CRIT = Status.OK, Status.WARNING, Status.CRITICAL
HOURLY = replace(PLAN, routes=[Route(to=["mail"], repeat=Duration(3600))])


def test_a_silenced_alert_is_not_told() -> None:
    """Neither its firing nor its end: nobody knew of it."""
    assert Night().silence(-5, 60).sees(0, CRIT).passes(1).sees(30, OK).told == []


def test_a_silence_that_ends_while_it_still_fires_tells_then() -> None:
    """At its end, to the second, without waiting for the next run of the check."""
    night = Night().silence(-5, 60).sees(0, CRIT).passes(59.9).passes(60)
    assert night.told == [(60, "mail", "firing")]


def test_a_silence_after_the_firing_still_tells_the_end_to_those_who_know() -> None:
    """Alertmanager's oldest open wish (#226); the message names the silence's end."""
    night = Night().sees(0, CRIT).silence(1, 60).sees(30, OK)
    assert night.told == [(0, "mail", "firing"), (30, "mail", "resolved")]
    assert "silenced until 2027-01-15T09:00:00+00:00 by alice: moving" in night.notes[1]


def test_a_silence_holds_repeats_back_but_not_for_others() -> None:
    """Only what matches is silent."""
    night = Night(HOURLY).sees(0, CRIT, CRIT).silence(1, 200, Match(subject="/0")).passes(60)
    assert night.told == [(0, "mail", "firing"), (0, "mail", "firing"), (60, "mail", "repeat")]


def test_an_acknowledged_alert_is_not_repeated_but_its_end_is_told() -> None:
    """Until clear; a new episode needs a new acknowledgement."""
    night = Night(HOURLY).sees(0, CRIT).ack(1).passes(61).passes(500).sees(501, OK).sees(502, CRIT)
    assert [t[2] for t in night.told] == ["firing", "ack", "resolved", "firing"]


def test_an_acknowledgement_is_told_once_to_those_who_know() -> None:
    """The others may go back to bed; somebody who knew nothing is not woken by it."""
    route = Route(to=["mail"], escalate=Escalate(after=Duration(1800), to=["sms"]))
    plan = replace(PLAN, channels=["mail", "sms"], routes=[route])
    night = Night(plan).sees(0, CRIT).ack(1).passes(2).passes(3).sees(4, CRIT)
    assert night.told == [(0, "mail", "firing"), (2, "mail", "ack")]
    assert night.notes[1] == "acknowledged by bob"


def test_an_acknowledgement_postpones_no_repeat() -> None:
    """Were it taken back, the repeat would come when it was due."""
    night = Night(HOURLY).sees(0, CRIT).ack(30).passes(31)
    night.orders = Orders()
    assert night.passes(60).told[-1] == (60, "mail", "repeat")


def test_an_acknowledged_alert_that_gets_worse_is_told() -> None:
    """Bob acknowledged a warning, not this, and the message says so; no other one shows the worse state
    as acknowledged."""
    night = Night().sees(0, WARN).ack(1).sees(2, CRIT).passes(3)
    assert [t[2] for t in night.told] == ["firing", "worse"]
    assert night.notes[1] == "acknowledged before this by bob"
    assert Night().sees(0, WARN).sees(2, CRIT).ack(3).passes(4).notes[-1] == "acknowledged by bob"
    early = Night().sees(0, WARN).ack(1).passes(2).sees(3, CRIT)
    assert [t[2] for t in early.told] == ["firing", "ack", "worse"]


def test_escalation_tells_others_when_nobody_has_acknowledged() -> None:
    """They are told the firing, once, and its end."""
    route = Route(to=["mail"], escalate=Escalate(after=Duration(1800), to=["sms"]))
    plan = replace(PLAN, channels=["mail", "sms"], routes=[route])
    night = Night(plan).sees(0, CRIT).passes(29).passes(30).passes(31).sees(40, OK)
    assert night.told == [
        (0, "mail", "firing"), (30, "sms", "firing"), (40, "mail", "resolved"), (40, "sms", "resolved"),
    ]  # fmt: skip
    assert [t[1] for t in Night(plan).sees(0, CRIT).ack(1).passes(30).told] == ["mail", "mail"]


MUTING = replace(
    PLAN, inhibit=[Inhibit(when=Match(kind="slurm"), mute=Match(kind=["job", "slurm"]))]
)


def test_what_another_alert_explains_is_not_told() -> None:
    """slurmctld down mutes the job check, whichever comes later, and not the disks."""
    night = Night(MUTING).sees(0, CRIT, check="slurm").sees(1, CRIT, check="train").sees(2, CRIT)
    assert [(t[0], t[2]) for t in night.told] == [(0, "firing"), (2, "firing")]
    held = [a.on_hold for a in night.alerts.values() if a.key.check == "train"]
    assert held == [Held(HeldKind.MUTED, "slurm /0")]


def test_a_mute_ends_with_its_cause() -> None:
    """What still fires then is told."""
    night = Night(MUTING).sees(0, CRIT, check="slurm").sees(1, CRIT, check="train")
    night.sees(5, OK, check="slurm").passes(5.1)
    assert night.told[-1] == (5.1, "mail", "firing")


def test_an_alert_that_matches_both_sides_does_not_mute_itself() -> None:
    """`mute: {kind: [job, slurm]}` above includes the cause."""
    assert Night(MUTING).sees(0, CRIT, check="slurm").told == [(0, "mail", "firing")]


def test_what_is_not_critical_waits_for_the_hours_of_its_route() -> None:
    """START is 08:00 UTC on a Friday; critical wakes people."""
    route = Route(to=["mail"], hours=Hours(days="mon-fri", from_="09:00", until="17:00"))
    night = Night(replace(PLAN, routes=[route]))
    assert night.sees(0, WARN, CRIT).passes(59).told == [(0, "mail", "firing")]
    assert night.passes(60).told[-1] == (60, "mail", "firing")


def test_a_new_channel_hears_of_what_already_fires() -> None:
    """After a reload; somebody who joins the rota must not be the only one not to know."""
    night = Night().sees(0, CRIT)
    night.plan = replace(PLAN, channels=["mail", "chat"])
    assert night.passes(1).told == [(0, "mail", "firing"), (1, "chat", "firing")]


def test_what_is_only_kept_firing_is_told_to_nobody_else() -> None:
    """It is good again: a new channel hears of it if it comes back, not of what seems over."""
    kept = {"disks": AlertPolicy(kind="fs", keep_firing_for=600)}
    night = Night(replace(PLAN, policies=kept)).sees(0, CRIT).sees(1, OK)
    night.plan = replace(night.plan, channels=["mail", "chat"])
    assert night.passes(2).told == [(0, "mail", "firing")]
    assert night.sees(3, CRIT).told[-1] == (3, "chat", "firing")


def test_windows_of_the_file_are_silences() -> None:
    """Fixed ones in the file's zone, recurring ones by crontab."""
    fixed = SilenceWindow(
        match=DISKS, from_="2027-01-15T08:00", until="2027-01-15T09:00", reason="move"
    )
    night = Night(replace(PLAN, windows=[fixed])).sees(0, CRIT).passes(59).passes(60)
    assert night.told == [(60, "mail", "firing")]
    weekly = SilenceWindow(match=DISKS, cron="0 8 * * fri", for_=Duration(7200))
    night = Night(replace(PLAN, windows=[weekly])).sees(0, CRIT).passes(119).passes(120)
    assert night.told == [(120, "mail", "firing")]


def flips(
    minutes: Mapping[float, Status], plan: NotificationPlan = PLAN
) -> list[tuple[float, str]]:
    night = Night(plan)
    for minute, status in minutes.items():
        night.sees(minute, status)
    return [(t[0], t[2]) for t in night.told]


def test_an_alert_that_changes_too_often_is_told_once_as_flapping() -> None:
    """Six changes within an hour: the fifth, sixth … messages do not come."""
    story = {i * 5.0: CRIT if i % 2 == 0 else OK for i in range(12)}
    reasons = [r for _, r in flips(story)]
    assert reasons == ["firing", "resolved", "firing", "resolved", "firing", "resolved", "flapping"]


@pytest.mark.parametrize(("last", "after"), [(OK, []), (CRIT, [])])
def test_flapping_settles_once_one_way_or_the_other(last: Status, after: list[str]) -> None:
    """When at most a third of the limit is left within the hour."""
    story: dict[float, Status] = {i * 5.0: CRIT if i % 2 == 0 else OK for i in range(8)}
    story |= {40.0 + i: last for i in range(0, 120, 5)}
    told = flips(story)
    assert [r for _, r in told].count("flapping") == 1
    assert [r for _, r in told][-1] == "settled"
    assert [r for _, r in told].count("settled") == 1


def test_few_changes_are_no_flapping() -> None:
    """Five within the hour, or many over many hours."""
    assert "flapping" not in [r for _, r in flips({0: CRIT, 5: OK, 10: CRIT, 15: OK, 20: CRIT})]
    slow = {i * 30.0: CRIT if i % 2 == 0 else OK for i in range(40)}
    assert "flapping" not in [r for _, r in flips(slow)]


def test_flapping_can_be_turned_off() -> None:
    """`changes: 0`."""
    off = {"disks": AlertPolicy(kind="fs", flap=FlapPolicy(changes=0))}
    story = {i * 1.0: CRIT if i % 2 == 0 else OK for i in range(30)}
    assert "flapping" not in [r for _, r in flips(story, replace(PLAN, policies=off))]


def test_the_start_is_where_the_tests_think_it_is() -> None:
    """08:00 UTC, a Friday."""
    assert START.wall == 1_800_000_000 * SECOND
