"""PagerDuty's Events API v2: https://developer.pagerduty.com/docs/send-alert-event"""

import asyncio
import json
from typing import Any, ClassVar

import pytest
from aiohttp import web

from sentinel.channels.pagerduty import Pagerduty
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.model import Status
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from tests.channels.contract import SECRET, send
from tests.channels.samples import hostile, notification
from tests.channels.web import ServiceContract, Web, answers, answers_json, hangs, sent

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


def test_alerts_of_one_incident_are_events_of_their_own_that_say_so() -> None:
    """Each ends by itself; the service may group them by that detail."""
    with Web(TOOK) as server:
        event = sent(pagerduty(server.url), server, notification(incident="01J0"))
    assert event["dedup_key"] == "01J9"
    assert event["payload"]["custom_details"]["incident"] == "01J0"


def test_an_event_holds_what_a_person_needs() -> None:
    """In the fields of the common event format."""
    with Web(TOOK) as server:
        event = sent(pagerduty(server.url), server)
    payload = event["payload"]
    assert payload["summary"].startswith("CRITICAL h100-prod training tr11-176B")
    assert payload["source"] == "tr11-176B"
    assert payload["timestamp"] == "2026-09-30T03:12:05+02:00"
    assert payload["custom_details"]["last lines"] == "rank 0: NCCL WARN\nrank 0: Aborted"
    assert payload["custom_details"]["incident"] == "01J9"
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


TOKEN = "u+hunter2-hunter2"


class Incidents:
    """GET /incidents as the API answers: by key, and only those in the status asked for."""

    def __init__(self, **acks: str) -> None:
        self.acks = acks

    async def __call__(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Token token={TOKEN}":
            return web.json_response({"error": {"message": "Unauthorized"}}, status=401)
        assert request.path == "/incidents"
        assert request.headers["Accept"] == "application/vnd.pagerduty+json;version=2"
        assert request.query["statuses[]"] == "acknowledged"
        who = self.acks.get(request.query["incident_key"])
        return web.json_response({"incidents": [self.incident(who)] if who else [], "more": False})

    def incident(self, who: str) -> dict[str, Any]:
        return {
            "id": "PT4KHLK",
            "type": "incident",
            "status": "acknowledged",
            "incident_key": None,
            "acknowledgements": [
                {
                    "at": "2026-11-10T00:32:52Z",
                    "acknowledger": {"id": "PXPGF42", "type": "user_reference", "summary": who},
                }
            ],
        }


def pager(url: str, **changes: Any) -> Pagerduty:
    given = {"api_token": Secret(TOKEN), "api": url, "timeout": Duration(5), **changes}
    return Pagerduty(routing_key=Secret("key-key"), **given)


def heard(channel: Pagerduty, *alerts: str) -> dict[str, str]:
    return asyncio.run(channel.acknowledged(alerts))


def test_who_has_acknowledged_is_known_by_the_alert() -> None:
    """Those that nobody has are left out."""
    with Web(Incidents(a1="Earline Greenholt", a3="Ann")) as server:
        found = heard(pager(server.url), "a1", "a2", "a3")
    assert found == {"a1": "Earline Greenholt at PagerDuty", "a3": "Ann at PagerDuty"}


def test_an_incident_without_names_is_acknowledged_all_the_same() -> None:
    """By an integration, or by what a newer API calls it."""
    bare = {"incidents": [{"status": "acknowledged", "acknowledgements": []}]}
    with Web(answers_json(200, bare)) as server:
        assert heard(pager(server.url), "a1") == {"a1": "somebody at PagerDuty"}


def test_an_answer_that_does_not_filter_acknowledges_nothing() -> None:
    """Something in between, or a newer API: what nobody has must go on being repeated."""
    others = {"incidents": [{"status": "triggered", "acknowledgements": []}]}
    with Web(answers_json(200, others)) as server:
        assert heard(pager(server.url), "a1") == {}


def test_a_hostile_name_is_inert() -> None:
    """It is shown to others."""
    with Web(Incidents(a1="x\x1b[31m\n" * 100)) as server:
        (who,) = heard(pager(server.url), "a1").values()
    assert "\x1b" not in who
    assert "\n" not in who
    assert len(who) < 120


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (answers_json(401, {"error": {"message": f"Unauthorized {TOKEN}"}}), "auth"),
        (answers_json(429, {"error": {"message": "Rate Limit Exceeded"}}), "rate"),
        (answers(500, "oops"), "server"),
        (answers(200, "<html>"), "server"),
        (answers_json(200, {"incidents": [None]}), "server"),
        (answers_json(200, []), "server"),
        (hangs, "timeout"),
    ],
)
def test_what_is_no_answer_acknowledges_nothing(answer: Any, reason: str) -> None:
    """It is an error, counted by its reason, and names no secret."""
    with Web(answer) as server, pytest.raises(ChannelError) as caught:
        heard(pager(server.url, timeout=Duration(0.5 if answer is hangs else 20)), "a1")
    assert caught.value.reason == reason
    assert "hunter2" not in str(caught.value)


def test_without_a_token_nothing_is_asked() -> None:
    """Sending needs no more rights than it had."""
    channel = Pagerduty(routing_key=Secret("key-key"))
    assert not channel.listens
    assert heard(channel, "a1") == {}


@pytest.mark.parametrize(
    ("fields", "key"),
    [({"api_token": Secret("")}, "api_token"), ({"api": "api.pagerduty.com"}, "api")],
)
def test_wrong_settings_of_the_api_are_refused(fields: dict[str, Any], key: str) -> None:
    """Each names its key."""
    with pytest.raises(Invalid) as caught:
        pager("http://localhost", **fields)
    assert caught.value.path == (key,)
