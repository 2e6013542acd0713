"""Who hears of what, one rule a test."""

import pytest

from sentinel.core.clock import shifted
from sentinel.core.model import Alert, Key, Status, Transition
from sentinel.core.routing import DEFAULT_REPEAT, audience, matches, recipients, repeats_due
from sentinel.core.settings import Match, Route
from sentinel.core.values import Duration
from sentinel.testing import START

CHANNELS = ["mail", "chat", "book"]


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


def test_without_routes_every_channel_hears_everything() -> None:
    """The interface's default, repeated once a day."""
    assert audience(alert(), [], CHANNELS) == dict.fromkeys(CHANNELS, DEFAULT_REPEAT)


def test_the_first_matching_route_decides() -> None:
    """Later routes are not asked, even where they match, too."""
    routes = [Route(to=["mail"], match=Match(kind="drained")), Route(to=["chat"])]
    assert list(audience(alert(), routes, CHANNELS)) == ["mail"]
    assert list(audience(alert(kind="fs"), routes, CHANNELS)) == ["chat"]


def test_continue_asks_the_next_route_too() -> None:
    """And the first route to name a channel sets its repeat."""
    routes = [
        Route(to=["mail"], repeat=Duration(60), continue_=True),
        Route(to=["mail", "chat"], repeat=Duration(3600)),
        Route(to=["book"]),
    ]
    assert audience(alert(), routes, CHANNELS) == {"mail": 60.0, "chat": 3600.0}


def test_when_no_route_matches_nobody_is_told() -> None:
    """A route is a promise to tell only whom it names."""
    assert audience(alert(), [Route(to=["mail"], match=Match(kind="fs"))], CHANNELS) == {}


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
    assert matches(match, alert()) is fits


def transition(reason: str) -> Transition:
    a = alert()
    return Transition(
        id="a1-1", alert="a1", key=a.key, kind=a.kind, reason=reason, status=a.status,
        severity=a.severity, summary="", at=START, since=START,
    )  # fmt: skip


@pytest.mark.parametrize("reason", ["resolved", "gone"])
def test_only_those_who_were_told_hear_of_the_end(reason: str) -> None:
    """Whatever the routes say by then."""
    told = alert(told={"mail": START})
    assert recipients(told, transition(reason), ["chat"]) == ["mail"]
    assert recipients(told, transition("worse"), ["chat"]) == ["chat"]


def test_repeats_are_due_per_channel() -> None:
    """At the interval, not before; a channel that was never told is due at once."""
    told = alert(told={"mail": START})
    heard = {"mail": 60.0, "chat": 60.0}
    assert repeats_due(told, heard, shifted(START, 59)) == ["chat"]
    assert repeats_due(told, heard, shifted(START, 60)) == ["mail", "chat"]


def test_nothing_is_repeated_of_what_does_not_fire_or_is_clear() -> None:
    """Pending alerts are nobody's business yet; keep_firing_for is a wait for the end."""
    later = shifted(START, 10**6)
    assert repeats_due(alert(firing=False), {"mail": 60.0}, later) == []
    assert repeats_due(alert(clear_since=START), {"mail": 60.0}, later) == []
