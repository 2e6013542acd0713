"""Telegram's Bot API: https://core.telegram.org/bots/api#making-requests"""

import asyncio
from collections.abc import Callable
from email import message_from_bytes
from email.policy import HTTP
from typing import Any, ClassVar

import pytest
from aiohttp import web

from sentinel.channels.discord import Discord
from sentinel.channels.ntfy import Ntfy
from sentinel.channels.telegram import Telegram
from sentinel.channels.template import ChatTemplates
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from tests.channels.contract import SECRET, send
from tests.channels.samples import hostile, notification
from tests.channels.web import ServiceContract, Web, answers_json, failure, sent

TOKEN = f"123456:{SECRET}"


def said_no(status: int, description: str, **more: Any) -> dict[str, Any]:
    return {"ok": False, "error_code": status, "description": description, **more}


TAKES = answers_json(200, {"ok": True, "result": {"message_id": 7, "text": SECRET}})


def telegram(server: Web, **changes: Any) -> Telegram:
    return Telegram(**{"token": Secret(TOKEN), "chat": -100123, "api": server.url, **changes})


class TestContract(ServiceContract):
    """The token is part of the path, and errors repeat it here as no real server should."""

    MOODS: ClassVar[Any] = {
        "takes": TAKES,
        "refuses": answers_json(400, said_no(400, f"Bad Request: chat not found {TOKEN}")),
        "later": answers_json(
            429, said_no(429, "Too Many Requests: retry after 5", parameters={"retry_after": 5})
        ),
    }

    def channel(self, url: str, timeout: Duration) -> Telegram:
        return Telegram(token=Secret(TOKEN), chat="@ops", api=url, timeout=timeout)


ERRORS = [
    (400, "Bad Request: chat not found", True, "refused", None),
    (401, "Unauthorized", True, "auth", None),
    (403, "Forbidden: bot was blocked by the user", True, "auth", None),
    (404, "Not Found", True, "refused", None),
    (429, "Too Many Requests: retry after 5", False, "rate", 5.0),
    (500, "Internal Server Error", False, "server", None),
]


@pytest.mark.parametrize(("status", "text", "permanent", "reason", "wait"), ERRORS)
def test_what_an_error_means(
    status: int, text: str, permanent: bool, reason: str, wait: float | None
) -> None:
    """By its status, and the wait by the body; the words are passed on."""
    more = {"parameters": {"retry_after": wait}} if wait else {}
    with Web(answers_json(status, said_no(status, text, **more))) as server:
        error = failure(telegram(server))
    assert (error.permanent, error.reason, error.retry_after) == (permanent, reason, wait)
    assert text.split(":")[0] in str(error)


def test_html_is_escaped() -> None:
    """Only our own tags are tags, and a name in an alert calls nobody."""
    with Web(TAKES) as server:
        body = sent(
            telegram(server), server, notification(summary="<b>&</b> @alice", details="<i>")
        )
    assert body["parse_mode"] == "HTML"
    assert "&lt;b&gt;&amp;&lt;/b&gt; ＠alice" in body["text"]
    assert "<pre>| &lt;i&gt;</pre>" in body["text"]


def test_an_answer_is_one_word() -> None:
    """Its address is long, and a key."""
    with Web(TAKES) as server:
        links = {"Acknowledge": "https://s.example.org/a/t/?a=1&b=2"}
        body = sent(telegram(server), server, notification(links=links))
    link = '<a href="https://s.example.org/a/t/?a=1&amp;b=2">Acknowledge</a>'
    assert link in body["text"].split("\n")


def test_a_value_stays_within_an_attribute_of_a_template() -> None:
    """A quotation mark in a name would end it and lead elsewhere."""
    templates = ChatTemplates(text='<a href="https://x/{{ subject }}">x</a>')
    with Web(TAKES) as server:
        alert = notification(subject='"onto')
        body = sent(telegram(server, templates=templates), server, alert)
    assert '<a href="https://x/&quot;onto">x</a>' in body["text"]


def test_a_message_is_bounded() -> None:
    """4,096 characters, however much has to be escaped."""
    with Web(TAKES) as server:
        body = sent(telegram(server), server, hostile("<&>" * 5000))
    assert 1000 < len(body["text"]) <= 4096


def test_what_nobody_has_to_get_up_for_comes_silently() -> None:
    """No phone rings at night because something is good again, or because somebody has it."""
    over = notification(reason="resolved", status=Status.OK)
    taken = notification(reason="ack")
    with Web(TAKES) as server:
        assert sent(telegram(server), server, over)["disable_notification"]
        assert sent(telegram(server), server, taken, over)["disable_notification"]
        assert not sent(telegram(server), server)["disable_notification"]
        assert not sent(telegram(server), server, notification(), over)["disable_notification"]


def test_topics_of_a_forum() -> None:
    """`thread` is one."""
    with Web(TAKES) as server:
        assert "message_thread_id" not in sent(telegram(server), server)
        assert sent(telegram(server, thread=4), server)["message_thread_id"] == 4


def test_broken_markup_of_a_template_costs_no_alert() -> None:
    """What Telegram refuses is sent again in the built-in words, and the receipt says so."""

    async def picky(request: web.Request) -> web.Response:
        text = (await request.json())["text"]
        if "<oops>" in text:
            problem = said_no(400, "Bad Request: can't parse entities: unsupported tag")
            return web.json_response(problem, status=400)
        return web.json_response({"ok": True})

    with Web(picky) as server:
        channel = telegram(server, templates=ChatTemplates(text="<oops>{{ summary }}"))
        receipt = send(channel, notification())
    assert b"4242 FAILED" in server.bodies[1]
    assert "built-in words" in receipt.text
    assert "can't parse entities" in receipt.text


BAD: list[tuple[dict[str, Any], str]] = [
    ({"token": Secret("")}, "token"),
    ({"token": Secret("a b")}, "token"),
    ({"token": Secret("a\nb")}, "token"),
    ({"chat": ""}, "chat"),
    ({"api": "api.telegram.org"}, "api"),
    ({"timeout": Duration(0)}, "timeout"),
]


@pytest.mark.parametrize(("fields", "key"), BAD)
def test_wrong_settings_are_refused(fields: dict[str, Any], key: str) -> None:
    """Each names its key."""
    with pytest.raises(Invalid) as caught:
        Telegram(**{"token": Secret(TOKEN), "chat": 1, **fields})
    assert caught.value.path == (key,)


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
UPLOADS: dict[str, tuple[Callable[[Web], Any], str, dict[str, str]]] = {
    "telegram": (
        lambda s: Telegram(token=Secret(TOKEN), chat=-42, thread=7, api=s.url),
        "photo",
        {"chat_id": "-42", "message_thread_id": "7", "disable_notification": "true"},
    ),
    "discord": (lambda s: Discord(url=Secret(f"{s.url}/api/webhooks/1/key")), "files[0]", {}),
    "ntfy": (lambda s: Ntfy(url=Secret(f"{s.url}/ml-alerts"), token=Secret("tk_1")), "", {}),
}


def told(server: Web) -> tuple[bytes, dict[str, str]]:
    """The picture that the server got last, and the fields beside it."""
    headers, body = server.requests[-1]
    head = f"Content-Type: {headers.get('Content-Type', 'image/png')}\r\n\r\n"
    form = message_from_bytes(head.encode() + body, policy=HTTP)
    parts = {p.get_param("name", header="content-disposition"): p for p in form.iter_parts()}
    fields = {k: p.get_content().strip() for k, p in parts.items() if not p.get_filename()}
    files = [p.get_payload(decode=True) for p in parts.values() if p.get_filename()]
    return (files or [body])[0], fields


@pytest.mark.parametrize("name", UPLOADS)
def test_a_picture_follows_the_message(name: str) -> None:
    """As it was drawn, to the same chat; one that is not taken is said and costs no second
    message."""
    make, field, fields = UPLOADS[name]
    some = [notification(), notification(picture=PNG)]
    with Web(answers_json(200, {"ok": True, "id": "1", "event": "message"})) as server:
        receipt = asyncio.run(make(server).send(some))
        assert len(server.requests) == 2
        assert told(server) == (PNG, fields)
        assert f'name="{field}"'.encode() in server.bodies[-1] or not field
        assert receipt.text.endswith("; with a picture")
        asyncio.run(make(server).send([notification()]))
        assert len(server.requests) == 3

    async def text_only(request: web.Request) -> web.Response:
        picture = b"PNG" in await request.read()
        return web.json_response({"ok": not picture}, status=413 if picture else 200)

    with Web(text_only) as server:
        receipt = asyncio.run(make(server).send(some))
        assert "its picture was not accepted" in receipt.text
        assert len(server.requests) == 2
