"""What becomes of alerts that somebody told while nothing could be written."""

import pytest
from msgspec.structs import replace

from sentinel.alerting.handover import Handed, heard, taken_over, told
from sentinel.alerting.processor import Plan
from sentinel.alerting.silences import Orders
from sentinel.core.model import Alert, Told
from tests.store.nouns import alert, at, outgoing, transition

PLAN = Plan(cluster="lab", policies={}, channels=["mail", "chat"])
EARLY, LATE = Told(at(1), alert().status), Told(at(2), alert().status)
TOLD = alert(firing=True, count=3, told={"mail": EARLY, "chat": LATE})


def batch(*here: Alert, ended: bool = False):  # type: ignore[no-untyped-def]
    known = {a.key: a for a in here}
    handed = Handed((TOLD,), (transition(),))
    return taken_over(handed, lambda _: ended, known, PLAN, at(5), Orders())


def test_one_that_is_unknown_goes_on() -> None:
    """Under its id, and nobody hears of it again; its past is known."""
    found = batch()
    assert (found.alerts, found.outbox, found.transitions) == ((TOLD,), (), (transition(),))


def test_one_that_was_seen_to_its_end_is_over() -> None:
    """It does not begin again."""
    assert batch(ended=True).alerts == ()


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
    rows = [outgoing("full", channel="mail", about=waits.id)]
    assert told([sent, waits, alert("/silent")], rows) == (sent,)
    past = [transition(), replace(transition(), id=rows[0].notification.key)]
    assert heard(past, rows) == (transition(),)
