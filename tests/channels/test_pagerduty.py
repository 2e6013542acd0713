"""PagerDuty's Events API v2: https://developer.pagerduty.com/docs/send-alert-event"""

import json
from typing import Any, ClassVar

import pytest

from sentinel.channels.pagerduty import Pagerduty
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from tests.channels.contract import SECRET, send
from tests.channels.samples import hostile, notification
from tests.channels.web import ServiceContract, Web, answers_json, sent

TOOK = answers_json(202, {"status": "success", "message": "Event processed", "dedup_key": "01J9"})


def pagerduty(url: str, **changes: Any) -> Pagerduty:
    return Pagerduty(routing_key=Secret(SECRET), url=f"{url}/v2/enqueue", **changes)


class TestContract(ServiceContract):
    """The key is in the body, and errors repeat it here."""

    MOODS: ClassVar[Any] = {
        "takes": TOOK,
        "refuses": answers_json(
            400, {"status": "invalid event", "errors": [f"'routing_key' {SECRET} is invalid"]}
        ),
        "later": answers_json(429, {"status": "throttle exceeded"}),
    }

    def channel(self, url: str, timeout: Duration) -> Pagerduty:
        return pagerduty(url, timeout=timeout)


OK, WARNING, UNKNOWN = Status.OK, Status.WARNING, Status.UNKNOWN
EVENTS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "trigger", "critical"),
    ({"reason": "worse"}, "trigger", "critical"),
    ({"reason": "repeat"}, "trigger", "critical"),
    ({"severity": WARNING, "status": WARNING}, "trigger", "warning"),
    ({"status": UNKNOWN}, "trigger", "error"),
    ({"reason": "ack"}, "acknowledge", "critical"),
    ({"reason": "resolved", "status": OK}, "resolve", "critical"),
    ({"reason": "gone", "status": OK}, "resolve", "critical"),
    ({"reason": "flapping"}, "trigger", "critical"),
    ({"reason": "settled"}, "trigger", "critical"),
    ({"reason": "settled", "status": OK}, "resolve", "critical"),
    ({"reason": "something new"}, "trigger", "critical"),
]


@pytest.mark.parametrize(("changes", "action", "severity"), EVENTS)
def test_what_a_message_does(changes: dict[str, Any], action: str, severity: str) -> None:
    """All events of one alert have its id as key."""
    with Web(TOOK) as server:
        event = sent(pagerduty(server.url), server, notification(**changes))
    assert event["event_action"] == action
    assert event["dedup_key"] == "01J9"
    assert event["payload"]["severity"] == severity


def test_an_event_holds_what_a_person_needs() -> None:
    """In the fields of the common event format."""
    with Web(TOOK) as server:
        event = sent(pagerduty(server.url), server)
    payload = event["payload"]
    assert payload["summary"].startswith("CRITICAL h100-prod training tr11-176B")
    assert payload["source"] == "tr11-176B"
    assert payload["timestamp"] == "2026-09-30T03:12:05+02:00"
    assert payload["custom_details"]["last lines"] == "rank 0: NCCL WARN\nrank 0: Aborted"
    assert event["links"] == [{"href": "https://wiki.example.org/oncall", "text": "Runbook"}]


def test_a_test_leaves_no_incident_open() -> None:
    """It is resolved at once."""
    with Web(TOOK) as server:
        send(pagerduty(server.url), notification(reason="test", alert="test-1"))
    events = [json.loads(body) for body in server.bodies]
    assert [e["event_action"] for e in events] == ["trigger", "resolve"]
    assert {e["dedup_key"] for e in events} == {"test-1"}


def test_limits_hold() -> None:
    """1,024 characters of summary, 255 of key; a time that is none is left out."""
    with Web(TOOK) as server:
        event = sent(pagerduty(server.url), server, hostile("x" * 5000))
    assert len(event["payload"]["summary"]) <= 1024
    assert len(event["dedup_key"]) <= 255
    assert "timestamp" not in event["payload"]


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"routing_key": Secret("")}, "routing_key"),
        ({"routing_key": Secret("a b")}, "routing_key"),
        ({"routing_key": Secret("x"), "url": "events.pagerduty.com"}, "url"),
        ({"routing_key": Secret("x"), "timeout": Duration(0)}, "timeout"),
    ],
)
def test_wrong_settings_are_refused(fields: dict[str, Any], key: str) -> None:
    """Each names its key."""
    with pytest.raises(Invalid) as caught:
        Pagerduty(**fields)
    assert caught.value.path == (key,)


def test_what_sentinel_did_is_no_incident() -> None:
    """It would open one that nothing ever ends, or open a closed one again."""
    with Web(TOOK) as server:
        receipt = send(pagerduty(server.url), notification(reason="action", status=OK))
        assert server.bodies == []
    assert "nothing to send" in receipt.text
