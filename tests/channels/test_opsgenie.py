"""Opsgenie's alert API, which takes requests with 202 and works on them later."""

import json
from typing import Any, ClassVar

import pytest
from aiohttp import web

from sentinel.channels.opsgenie import Opsgenie
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from tests.channels.contract import SECRET, send
from tests.channels.samples import hostile, notification
from tests.channels.web import ServiceContract, Web, answers_json, sent

TOOK = {"result": "Request will be processed", "took": 0.1, "requestId": "43a29c5c"}


def opsgenie(url: str, **changes: Any) -> Opsgenie:
    return Opsgenie(api_key=Secret(SECRET), api=url, **changes)


class TestContract(ServiceContract):
    """https://docs.opsgenie.com/docs/response"""

    MOODS: ClassVar[Any] = {
        "takes": answers_json(202, TOOK),
        "refuses": answers_json(422, {"message": f"Key format is not valid! {SECRET}"}),
        "later": answers_json(429, {"message": "You are making too many requests!"}),
    }

    def channel(self, url: str, timeout: Duration) -> Opsgenie:
        return opsgenie(url, timeout=timeout)


class Api:
    """Remembers method and path of each request."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def __call__(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == f"GenieKey {SECRET}"
        self.calls.append(f"{request.method} {request.path_qs}")
        return web.json_response(TOOK, status=202)


BY_ALIAS = "?identifierType=alias"
CALLS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["POST /v2/alerts"]),
    ({"reason": "repeat"}, ["POST /v2/alerts"]),
    ({"reason": "worse"}, ["POST /v2/alerts", f"PUT /v2/alerts/01J9/priority{BY_ALIAS}"]),
    ({"reason": "ack"}, [f"POST /v2/alerts/01J9/acknowledge{BY_ALIAS}"]),
    ({"reason": "resolved", "status": Status.OK}, [f"POST /v2/alerts/01J9/close{BY_ALIAS}"]),
    ({"reason": "gone", "status": Status.OK}, [f"POST /v2/alerts/01J9/close{BY_ALIAS}"]),
    ({"reason": "digest"}, []),
    ({"reason": "action"}, [f"POST /v2/alerts/01J9/notes{BY_ALIAS}"]),
    ({"reason": "test"}, ["POST /v2/alerts", f"POST /v2/alerts/01J9/close{BY_ALIAS}"]),
]


@pytest.mark.parametrize(("changes", "calls"), CALLS)
def test_what_a_message_does(changes: dict[str, Any], calls: list[str]) -> None:
    """The alert's id is the alias by which it is found again."""
    api = Api()
    with Web(api) as server:
        send(opsgenie(server.url), notification(**changes))
    assert api.calls == calls


def test_an_alias_is_one_part_of_the_path() -> None:
    """Whatever stands in it."""
    api = Api()
    with Web(api) as server:
        send(opsgenie(server.url), notification(alert="a/../b?c#d", reason="resolved"))
    assert api.calls[0].count("/") == 4
    assert api.calls[0].count("?") == 1


PRIORITIES = [
    ({}, "P1"),
    ({"severity": Status.WARNING, "status": Status.WARNING}, "P3"),
    ({"status": Status.UNKNOWN}, "P2"),
]


@pytest.mark.parametrize(("changes", "priority"), PRIORITIES)
def test_the_priority_tells_how_bad(changes: dict[str, Any], priority: str) -> None:
    """P1 is the highest."""
    with Web(answers_json(202, TOOK)) as server:
        body = sent(opsgenie(server.url), server, notification(**changes))
    assert body["priority"] == priority
    assert body["alias"] == "01J9"


def test_alerts_of_one_incident_are_objects_of_their_own_that_say_so() -> None:
    """However many facts there are beside it."""
    with Web(answers_json(202, TOOK)) as server:
        labels = {f"label{n}": "x" for n in range(30)}
        n = notification(incident="01J0", labels=labels)
        body = sent(opsgenie(server.url), server, n)
    assert body["alias"] == "01J9"
    assert body["details"]["incident"] == "01J0"


def test_teams_and_tags() -> None:
    """Those configured, and words for its filters."""
    with Web(answers_json(202, TOOK)) as server:
        body = sent(opsgenie(server.url, teams=["hpc"], tags=["gpu"]), server)
    assert body["responders"] == [{"name": "hpc", "type": "team"}]
    assert body["tags"] == ["gpu", "h100-prod", "training", "job", "critical"]


def test_limits_hold() -> None:
    """As the API documents them."""
    with Web(answers_json(202, TOOK)) as server:
        body = sent(opsgenie(server.url), server, hostile("x" * 20_000))
    assert len(body["message"]) <= 130
    assert len(body["alias"]) <= 512
    assert len(body["description"]) <= 15_000
    assert len(body["entity"]) <= 512
    assert all(len(tag) <= 50 for tag in body["tags"])
    assert sum(map(len, [*body["details"], *body["details"].values()])) <= 8000


def test_a_worse_alert_is_created_before_its_priority_is_set() -> None:
    """It may have been closed there by hand."""
    with Web(answers_json(202, TOOK)) as server:
        send(opsgenie(server.url), notification(reason="worse"))
    assert [sorted(json.loads(b))[0] for b in server.bodies] == ["alias", "priority"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"api_key": Secret("")}, ("api_key",)),
        ({"api_key": Secret("x"), "api": "api.opsgenie.com"}, ("api",)),
        ({"api_key": Secret("x"), "tags": ["a", "b" * 51]}, ("tags", 1)),
        ({"api_key": Secret("x"), "timeout": Duration(0)}, ("timeout",)),
    ],
)
def test_wrong_settings_are_refused(fields: dict[str, Any], path: tuple[Any, ...]) -> None:
    """Each names its key."""
    with pytest.raises(Invalid) as caught:
        Opsgenie(**fields)
    assert caught.value.path == path
