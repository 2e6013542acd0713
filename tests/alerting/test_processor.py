"""Runs become exactly one transaction's worth of alerts, transitions and messages."""

from collections.abc import Sequence
from datetime import timezone
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.alerting.notifications import NotificationPlan, describe_hold
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.processor import forget_checks, process_outcomes
from sentinel.alerting.settings import Escalate, Hours, Match, Route
from sentinel.alerting.state_machine import AlertPolicy
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.holds import Held, HeldKind
from sentinel.core.model import Alert, Batch, Finding, Key, Report, Sample, Status, Value
from sentinel.core.run_ledger import LedgerRow
from sentinel.core.values import Duration
from sentinel.testing import ALL_SEEN, START

PLAN = NotificationPlan(
    cluster="lab",
    policies={"disks": AlertPolicy(kind="fs"), "train": AlertPolicy(kind="job")},
    channels=["mail", "book"],
)
FINE = Finding(subject="", status=Status.OK, summary="sees")


def disk(subject: str, status: Status) -> Finding:
    return Finding(subject=subject, status=status, summary=f"{status.value}!")


def ran(*findings: Finding, check: str = "disks", blind: str = "") -> RunOutcome:
    itself = Finding(subject="", status=Status.UNKNOWN, summary=blind) if blind else FINE
    report = (
        None
        if blind
        else Report(coverage=ALL_SEEN, findings=findings, samples=(Sample("/a", "x", 1.0),))
    )
    return RunOutcome(check=check, kind="fs", itself=itself, report=report, seconds=0.1)


def after(batch: Batch, before: dict[Key, Alert] | None = None) -> dict[Key, Alert]:
    alerts = {**(before or {}), **{a.key: a for a in batch.alerts}}
    return {k: a for k, a in alerts.items() if k not in batch.closed}


def reasons(batch: Batch) -> list[tuple[str, str]]:
    return [(t.key.subject, t.reason) for t in batch.transitions]


def test_one_message_per_transition_and_channel() -> None:
    """Two bad disks, two channels: four rows, in the order of the findings."""
    batch = process_outcomes(
        [ran(disk("/a", Status.CRITICAL), disk("/b", Status.WARNING))], {}, PLAN, START
    )
    assert [(o.notification.subject, o.channel) for o in batch.outbox] == [
        ("/a", "mail"), ("/a", "book"), ("/b", "mail"), ("/b", "book"),
    ]  # fmt: skip
    assert len({o.notification.key for o in batch.outbox}) == 2


def test_a_run_that_changes_nothing_writes_only_itself() -> None:
    """No alert rows, no transitions: a quiet night costs one row a run."""
    batch = process_outcomes([ran(disk("/a", Status.OK))], {}, PLAN, START)
    assert (batch.alerts, batch.closed, batch.transitions, batch.outbox) == ((), (), (), ())
    assert [r.check for r in batch.runs] == ["disks"]
    assert batch.samples == {"disks": (Sample("/a", "x", 1.0),)}


def test_rows_of_the_ledger_get_the_name_of_the_cluster() -> None:
    """A check does not know it; two clusters may have runs of one name."""
    row = LedgerRow(run="llm", kind="held", began=1, ended=2, job="7", gpus=8)
    seen = ran(disk("/a", Status.OK))
    assert seen.report is not None
    batch = process_outcomes(
        [replace(seen, report=replace(seen.report, ledger=(row,)))], {}, PLAN, START
    )
    assert batch.ledger == (replace(row, cluster="lab"),)


@pytest.mark.parametrize(
    ("run", "asked"),
    [
        pytest.param(ran(disk("/a", Status.OK)), False, id="a check that is well"),
        pytest.param(ran(disk("/a", Status.CRITICAL)), True, id="one with an alert of its own"),
        pytest.param(ran(check="train"), True, id="one whose alerts end"),
    ],
)
def test_causes_are_looked_for_only_where_alerts_change(run: RunOutcome, asked: bool) -> None:
    """While thousands of alerts of others fire, that costs every commit."""
    plan = replace(PLAN, policies={**PLAN.policies, "others": AlertPolicy(kind="job")})
    fired = [ran(disk("/z", Status.CRITICAL), check=check) for check in ("train", "others")]
    alerts = after(process_outcomes(fired, {}, plan, START))
    read = list[str]()

    class Values(dict[str, Value]):
        """Values of an alert that note which of them is looked at: a path is for causes."""

        def get(self, name: str, default: Any = None) -> Any:
            read.append(name)
            return super().get(name, default)

    others = {key: replace(alert, values=Values(alert.values)) for key, alert in alerts.items()}
    process_outcomes([run], others, plan, shift_instant(START, 60))
    assert ("path" in read) is asked


def test_a_blind_run_ends_no_alert() -> None:
    """A failed query is not an empty result: no subject is gone."""
    first = process_outcomes([ran(disk("/a", Status.CRITICAL))], {}, PLAN, START)
    second = process_outcomes(
        [ran(blind="no answer")], after(first), PLAN, shift_instant(START, 60)
    )
    assert second.closed == ()
    assert reasons(second) == []
    assert second.runs[0].status is Status.UNKNOWN


def unseen(*names: str) -> RunOutcome:
    status = Status.UNKNOWN if names else Status.OK
    itself = Finding(subject="", status=status, summary="saw some", unseen=names)
    return replace(ran(), itself=itself)


def live_unseen(*looks: RunOutcome) -> list[tuple[int, str, str]]:
    """What is told at each look, a minute apart: number of the look, reason, sentence."""
    alerts, told = dict[Key, Alert](), list[tuple[int, str, str]]()
    for number, look in enumerate(looks):
        batch = process_outcomes([look], alerts, PLAN, shift_instant(START, 60.0 * number))
        alerts = after(batch, alerts)
        sent = {o.notification.key: o.notification for o in batch.outbox}
        told += [(number, n.reason, n.summary) for n in sent.values()]
    return told


def test_while_one_stays_unseen_the_next_one_is_told_too() -> None:
    """One user who keeps a log from being read does not keep another's unseen log quiet. As with
    the first, three looks in a row count."""
    told = live_unseen(*[unseen("eve")] * 4, *[unseen("bob", "eve")] * 6)
    assert [(look, why) for look, why, _ in told] == [(2, "firing"), (6, "again")]
    assert told[1][2] == "now not seen either: bob; saw some"


def test_who_is_unseen_now_and_then_is_no_news() -> None:
    """Fewer than three looks in a row are none; who was told of is told of once, and three of an
    hour are told by themselves."""
    flaps = [unseen("bob", "eve"), unseen("bob", "eve"), unseen("eve")] * 6
    assert [look for look, *_ in live_unseen(*[unseen("eve")] * 3, *flaps)] == [2]
    long = [*[unseen("bob", "eve")] * 3, unseen("eve")] * 6
    assert [look for look, *_ in live_unseen(*[unseen("eve")] * 3, *long)] == [2, 5]
    many = [unseen("eve", *(f"u{n}" for n in range(look // 3))) for look in range(30)]
    assert len(live_unseen(*many)) == 1 + 3


def test_an_alert_of_a_check_that_was_taken_out_keeps_no_message_back() -> None:
    """It may still wait for other checks of its pass; the others are told all the same."""
    begun = after(process_outcomes([ran(disk("/a", Status.CRITICAL))], {}, PLAN, START))
    waits = Held(HeldKind.CHECKS_AT_WORK)
    alerts = {key: replace(alert, on_hold=waits) for key, alert in begun.items()}
    plan = replace(PLAN, policies={"train": AlertPolicy(kind="job")})
    dead = ran(disk("llm", Status.CRITICAL), check="train")
    batch = process_outcomes([dead], alerts, plan, shift_instant(START, 60))
    assert ("llm", "firing") in reasons(batch)


def on(node: str, subject: str, status: Status) -> Finding:
    return Finding(subject=subject, status=status, summary="!", labels={"node": node})


def test_what_a_blind_spot_may_hide_is_not_gone() -> None:
    """n1 tells nothing any more: nobody knows how its disk is. Of n2 it hides nothing."""
    full = [on("n1", "n1:/scratch", Status.CRITICAL), on("n2", "n2:/scratch", Status.CRITICAL)]
    first = after(process_outcomes([ran(*full)], {}, PLAN, START))
    silent = process_outcomes(
        [ran(on("n1", "n1", Status.UNKNOWN))], first, PLAN, shift_instant(START, 60)
    )
    assert reasons(silent) == [("n2:/scratch", "gone")]
    seen = process_outcomes([ran()], after(silent, first), PLAN, shift_instant(START, 120))
    assert reasons(seen) == [("n1:/scratch", "gone")]


def test_a_blind_spot_of_nowhere_may_hide_anything() -> None:
    """A ledger that cannot be read had the word about every card."""
    first = after(process_outcomes([ran(on("n1", "GPU-1", Status.CRITICAL))], {}, PLAN, START))
    blind = process_outcomes(
        [ran(disk("ledger", Status.UNKNOWN))], first, PLAN, shift_instant(START, 60)
    )
    assert reasons(blind) == []


@pytest.mark.parametrize("second", [Status.OK, Status.UNKNOWN, Status.WARNING])
def test_of_two_words_about_one_subject_the_worse_counts(second: Status) -> None:
    """What was seen to be bad is not made good by what came after it, nor by what saw nothing."""
    for both in (Status.CRITICAL, second), (second, Status.CRITICAL):
        batch = process_outcomes([ran(*(disk("/a", s) for s in both))], {}, PLAN, START)
        assert [a.severity for a in batch.alerts] == [Status.CRITICAL]
    batch = process_outcomes([ran(disk("/a", Status.WARNING), disk("/a", second))], {}, PLAN, START)
    assert [a.severity for a in batch.alerts] == [Status.WARNING]


def test_a_subject_that_a_good_run_leaves_out_is_gone() -> None:
    """Only of the check that ran: others' alerts stay."""
    first = process_outcomes(
        [ran(disk("/a", Status.CRITICAL)), ran(disk("x", Status.CRITICAL), check="train")],
        {},
        PLAN,
        START,
    )
    second = process_outcomes(
        [ran(disk("/b", Status.OK))], after(first), PLAN, shift_instant(START, 60)
    )
    assert reasons(second) == [("/a", "gone")]
    assert [(a.key.subject, a.over) for a in second.alerts] == [("/a", True)]


def test_the_end_goes_to_those_who_were_told_even_when_routes_changed() -> None:
    """A route that now leads elsewhere does not swallow the resolved message."""
    first = process_outcomes([ran(disk("/a", Status.CRITICAL))], {}, PLAN, START)
    elsewhere = NotificationPlan(
        cluster="lab", policies=PLAN.policies, channels=["mail", "book", "chat"],
        routes=[Route(to=["chat"])],
    )  # fmt: skip
    second = process_outcomes(
        [ran(disk("/a", Status.OK))], after(first), elsewhere, shift_instant(START, 60)
    )
    assert [(o.channel, o.notification.reason) for o in second.outbox] == [
        ("mail", "resolved"), ("book", "resolved"),
    ]  # fmt: skip


def test_ends_to_whom_no_route_leads_any_more_are_one_message() -> None:
    """500 nodes that recover at night are not 500 mails because the hours are over."""
    bad = [disk(f"/{n}", Status.WARNING) for n in range(3)]
    day = NotificationPlan(
        cluster="lab", policies=PLAN.policies, channels=["mail"],
        routes=[Route(to=["mail"], hours=Hours(from_="08:00", until="09:00"))],
    )  # fmt: skip
    first = process_outcomes([ran(*bad)], {}, day, START)
    ends = [disk(f"/{n}", Status.OK) for n in range(3)]
    second = process_outcomes([ran(*ends)], after(first), day, shift_instant(START, 7200))
    assert [o.notification.reason for o in second.outbox] == ["resolved"] * 3
    (bundle,) = {o.bundle for o in second.outbox}
    assert not bundle.is_alone


def test_a_pending_alert_that_passes_leaves_no_trace() -> None:
    """Closed, but never told."""
    slow = NotificationPlan(
        cluster="lab", policies={"disks": AlertPolicy(kind="fs", for_=600)}, channels=["mail"]
    )
    first = process_outcomes([ran(disk("/a", Status.CRITICAL))], {}, slow, START)
    assert [a.firing for a in first.alerts] == [False]
    second = process_outcomes(
        [ran(disk("/a", Status.OK))], after(first), slow, shift_instant(START, 60)
    )
    assert (second.closed, second.outbox) == ((Key("lab", "disks", "/a"),), ())


def test_repeats_follow_the_route() -> None:
    """At its interval the alert is told again, to those who are due."""
    plan = NotificationPlan(
        cluster="lab", policies=PLAN.policies, channels=["mail", "book"],
        routes=[Route(to=["mail"], match=Match(kind="fs"), repeat=Duration(120))],
    )  # fmt: skip
    alerts: dict[Key, Alert] = {}
    told = []
    for minute in range(5):
        batch = process_outcomes(
            [ran(disk("/a", Status.CRITICAL))], alerts, plan, shift_instant(START, 60 * minute)
        )
        alerts = after(batch, alerts)
        told += [(minute, o.channel, o.notification.reason) for o in batch.outbox]
    assert told == [(0, "mail", "firing"), (2, "mail", "repeat"), (4, "mail", "repeat")]


def test_information_is_told_once() -> None:
    """It is neither repeated nor escalated, and its end is told to those who know."""
    plan = NotificationPlan(
        cluster="lab", policies=PLAN.policies, channels=["mail", "book"],
        routes=[Route(to=["mail"], repeat=Duration(120),
                      escalate=Escalate(after=Duration(60), to=["book"]))],
    )  # fmt: skip
    alerts: dict[Key, Alert] = {}
    told = []
    finding = replace(disk("/a", Status.WARNING), tell_once=True)
    for minute in range(5):
        seen = finding if minute < 4 else disk("/a", Status.OK)
        batch = process_outcomes([ran(seen)], alerts, plan, shift_instant(START, 60 * minute))
        alerts = after(batch, alerts)
        told += [(minute, o.channel, o.notification.reason) for o in batch.outbox]
    assert told == [(0, "mail", "firing"), (4, "mail", "resolved")]


def test_alerts_of_checks_that_are_gone_end() -> None:
    """Removing a check from the file ends its alerts for those who were told."""
    first = process_outcomes([ran(disk("/a", Status.CRITICAL))], {}, PLAN, START)
    batch = forget_checks([Key("lab", "disks", "/a")], after(first), PLAN, shift_instant(START, 60))
    assert reasons(batch) == [("/a", "gone")]
    assert _channels(batch) == ["mail", "book"]


def test_a_message_of_an_end_carries_no_stale_evidence() -> None:
    """The log tail and the numbers of the death do not belong to the resolved message."""
    bad = Finding(
        subject="/a",
        status=Status.CRITICAL,
        summary="dead",
        details="Traceback",
        commands=("x",),
        values={"running": 0},
    )
    first = process_outcomes([ran(bad)], {}, PLAN, START)
    assert first.outbox[0].notification.details == "Traceback"
    second = process_outcomes(
        [ran(disk("/a", Status.OK))], after(first), PLAN, shift_instant(START, 60)
    )
    end = second.outbox[0].notification
    assert (end.details, end.commands, end.values) == ("", (), {})


def _channels(batch: Batch) -> Sequence[str]:
    return [o.channel for o in batch.outbox]


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (None, ""),
        (
            Held(HeldKind.SILENCED, "ann: we know", Instant(wall=1_800_000_000 * SECOND)),
            "silenced until 2027-01-15T08:00:00+00:00 by ann: we know",
        ),
        (Held(HeldKind.MUTED, "slurm"), "muted while slurm fires"),
        (Held(HeldKind.EXPLAINED, "nodes n3"), "told with its cause: nodes n3"),
        (
            Held(HeldKind.CHECKS_AT_WORK, "disks"),
            "waits until disks has run: it may find the cause",
        ),
        (Held(HeldKind.FIRST_LOOK), "waits for the first look to end"),
        (Held(HeldKind.SETTLING), "its cause is over; muted until it has been looked at again"),
    ],
)
def test_why_nobody_is_told_in_words(held: Held | None, said: str) -> None:
    """Every kind has its sentence."""
    assert describe_hold(held, timezone.utc) == said
