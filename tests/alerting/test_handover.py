"""What becomes of alerts that somebody told while nothing could be written."""

import pytest
from msgspec.structs import replace

from sentinel.alerting.handover import Handover, export_handover, merge_handover
from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.silences import Orders
from sentinel.core.model import Alert, Batch, LastNotified, Outgoing, Status
from tests.store.nouns import alert, at, outgoing, transition

PLAN = NotificationPlan(cluster="lab", policies={}, channels=["mail", "chat"])
EARLY, LATE = LastNotified(at(1), alert().status), LastNotified(at(2), alert().status)
TOLD = alert(firing=True, count=3, told={"mail": EARLY, "chat": LATE})


def batch(*here: Alert, known: bool = False, handed: Handover | None = None) -> Batch:
    handed = handed or Handover((TOLD,), (transition(),))
    return merge_handover(handed, lambda _: known, {a.key: a for a in here}, PLAN, at(5), Orders())


def row(reason: str, channel: str = "mail", *, about: str = TOLD.id, key: str = "") -> Outgoing:
    made = outgoing(channel=channel, about=about)
    said = replace(made.notification, reason=reason, key=key or f"{about}-{reason}")
    return replace(made, notification=said, seq=7)


def test_one_that_is_unknown_goes_on() -> None:
    """Under its id, and nobody hears of it again; its past is known."""
    found = batch()
    assert (found.alerts, found.outbox, found.transitions) == ((TOLD,), (), (transition(),))


def test_one_that_was_seen_to_its_end_is_over() -> None:
    """It does not begin again."""
    assert batch(known=True).alerts == ()


@pytest.mark.parametrize("over", [False, True])
def test_one_that_is_open_here_too(over: bool) -> None:
    """Each channel knows what it was given last; numbers of messages go on from the highest."""
    here = alert(firing=not over, over=over, count=1, told={"mail": LATE, "chat": EARLY})
    (kept,) = batch(here).alerts
    assert (kept.told, kept.count) == ({"mail": LATE, "chat": LATE}, 3)
    assert (kept.firing, kept.over) == (not over, over)


@pytest.mark.parametrize("name", ["the same", "another"])
def test_one_that_only_begins_here_fires(name: str) -> None:
    """Else it could pass before it fires here, and those who were told would hear of no end."""
    here = alert() if name == "the same" else alert(id="another")
    (kept,) = batch(here).alerts
    assert (kept.id, kept.firing, set(kept.told)) == (TOLD.id, True, {"mail", "chat"})


def test_another_episode_fires_here() -> None:
    """That goes on; the one that was told has its end."""
    found = batch(alert(id="another", firing=True))
    assert (found.alerts, found.closed) == ((), ())
    assert [(r.channel, r.notification.alert, r.notification.reason) for r in found.outbox] == [
        ("mail", TOLD.id, "gone"),
        ("chat", TOLD.id, "gone"),
    ]


def test_what_waits_was_told_to_nobody() -> None:
    """Only what was sent is handed over: whoever leads tells the rest itself."""
    sent = alert("/sent", told={"mail": EARLY})
    waits = alert("/waits", told={"mail": EARLY})
    first = row("firing", about=waits.id)
    past = [transition(), replace(transition(), id=first.notification.key)]
    rows = [first, row("resolved", about=waits.id)]
    found = export_handover([sent, waits, alert("/silent")], past, rows)
    assert found == Handover((sent,), (transition(),))


def test_that_it_is_worse_waits_to_be_told() -> None:
    """Who heard that it began hears of its end, and that it is worse before."""
    found = export_handover([TOLD], [], [row("worse", "chat")])
    assert found.alerts == (
        replace(TOLD, told={"mail": EARLY, "chat": LastNotified(at(2), Status.WARNING)}),
    )


def test_an_end_that_waits_is_told_by_whoever_leads() -> None:
    """To those who have heard of the beginning; the first number here is its own."""
    end, past = row("resolved"), replace(transition(), id="alert-/scratch-resolved")
    rows = [row("firing", "chat"), end, row("resolved", "chat", key="never told")]
    handed = export_handover([], [past], rows)
    twice = replace(handed, ends=(*handed.ends, *handed.ends))  # a crash right after the first
    for given in (handed, twice):
        found = batch(handed=given)
        assert (found.outbox, found.transitions) == ((replace(end, seq=0),), (past,))


def test_an_end_that_was_seen_here_is_not_told_again() -> None:
    """Whoever knows the alert has told the end, or will."""
    handed = export_handover(
        [], [replace(transition(), id=row("gone").notification.key)], [row("gone")]
    )
    found = batch(handed=handed, known=True)
    assert (found.outbox, found.transitions) == ((), ())
