"""Discord's webhook, as https://discord.com/developers/docs/resources/webhook answers."""

from typing import Any, ClassVar

import pytest
from aiohttp import web

from sentinel.channels.discord import Discord
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from tests.channels.contract import SECRET, send
from tests.channels.samples import hostile, notification
from tests.channels.web import ServiceContract, Web, answers, answers_json, failure, sent


def discord(server: Web, **changes: Any) -> Discord:
    return Discord(url=Secret(f"{server.url}/api/webhooks/1234/{SECRET}"), **changes)


class TestContract(ServiceContract):
    """204 without a body; errors as JSON with Discord's own codes."""

    MOODS: ClassVar[Any] = {
        "takes": answers(204),
        "refuses": answers_json(404, {"message": f"Unknown Webhook {SECRET}", "code": 10015}),
        "later": answers_json(
            429, {"message": "You are being rate limited.", "retry_after": 1.5, "global": False}
        ),
    }

    def channel(self, url: str, timeout: Duration) -> Discord:
        return Discord(url=Secret(f"{url}/api/webhooks/1234/{SECRET}"), timeout=timeout)


@pytest.mark.parametrize("query", ["", "?thread_id=42"])
def test_it_is_taken_only_when_it_is_kept(query: str) -> None:
    """Discord's default is to answer before, and an error afterwards is nobody's."""
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(dict(request.query))
        return web.json_response({"id": "1"})

    with Web(answer) as server:
        send(Discord(url=Secret(f"{server.url}/api/webhooks/1234/{SECRET}{query}")), notification())
    assert asked == [{"wait": "true", **({"thread_id": "42"} if query else {})}]


def test_nobody_is_mentioned() -> None:
    """Whatever an alert holds, the message allows no mention; `<@…>` is plain text."""
    with Web(answers(204)) as server:
        body = sent(discord(server), server, notification(summary="<@99> @everyone <#7>"))
    assert body["allowed_mentions"] == {"parse": []}
    assert "\\<@99\\> @everyone \\<\\#7\\>" in body["embeds"][0]["description"]


def test_an_answer_is_one_word() -> None:
    """Its address is long, and a key."""
    with Web(answers(204)) as server:
        links = {"Acknowledge": "https://s.example.org/a/t_1/"}
        body = sent(discord(server), server, notification(links=links))
    text = body["embeds"][0]["description"]
    assert "[Acknowledge](https://s.example.org/a/t_1/)" in text.split("\n")


def test_limits_hold() -> None:
    """256 characters of title, 4,096 of description, whatever needs escaping."""
    with Web(answers(204)) as server:
        body = sent(discord(server), server, hostile("*_~" * 5000))
    (embed,) = body["embeds"]
    assert len(embed["title"]) <= 256
    assert 1000 < len(embed["description"]) <= 4096


@pytest.mark.parametrize(
    ("severity", "colour"), [(Status.CRITICAL, 0xB42318), (Status.WARNING, 0xB25E02)]
)
def test_the_colour_tells_how_bad(severity: Status, colour: int) -> None:
    """Red for critical, orange for a warning."""
    with Web(answers(204)) as server:
        body = sent(discord(server), server, notification(severity=severity, status=severity))
    assert body["embeds"][0]["color"] == colour


RETRIES: list[tuple[dict[str, Any], dict[str, str], float | None]] = [
    ({"retry_after": 0.5}, {}, 0.5),
    ({"retry_after": 0.5}, {"Retry-After": "3"}, 3.0),
    ({"retry_after": 10**9}, {}, 86400.0),
    ({"retry_after": -1}, {}, 0.0),
    ({"retry_after": "soon"}, {}, None),
    ({"retry_after": True}, {}, None),
    ({}, {}, None),
]


@pytest.mark.parametrize(("body", "headers", "wait"), RETRIES)
def test_how_long_to_wait(
    body: dict[str, Any], headers: dict[str, str], wait: float | None
) -> None:
    """By the header, else by the body."""
    with Web(answers_json(429, body, **headers)) as server:
        error = failure(discord(server))
    assert (error.reason, error.permanent, error.retry_after) == ("rate", False, wait)


def test_an_address_is_needed() -> None:
    """The error names the key."""
    with pytest.raises(Invalid) as caught:
        Discord(url=Secret("discord.com/api/webhooks/1/x"))
    assert caught.value.path == ("url",)


def test_the_receipt_names_the_host_only() -> None:
    """The address is a secret below it."""
    with Web(answers(204)) as server:
        receipt = send(discord(server), notification())
    assert receipt.text == f"http://localhost:{server.port} answered 204"
