"""Webhooks to a real HTTP server on the loopback."""

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from socket import gaierror
from typing import Any

import psutil
import pytest
import trustme
from aiohttp import web

from sentinel.channels.http_request import find_proxy, retry_after_s
from sentinel.channels.redact import connection_failure
from sentinel.channels.webhook import Webhook
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.settings import FilePath, Secret
from sentinel.core.values import Duration
from tests.channels.contract import SECRET, ChannelContract, Mood, Side, assert_inert, send
from tests.channels.samples import hostile, notification
from tests.channels.web import Web, answers, hangs, strings
from tests.lab.loops import close_server

NOW = datetime(2026, 9, 30, 3, 12, 5, tzinfo=timezone.utc)


def hook(web: Web, **changes: Any) -> Webhook:
    return Webhook(**{"url": Secret(f"{web.url}/services/{SECRET}?token={SECRET}"), **changes})


class TestContract(ChannelContract):
    """The address and a header are secret, and the server repeats them."""

    @contextmanager
    def side(self, tmp_path: Path, mood: Mood) -> Iterator[Side]:
        echo = f"no such hook: /services/{SECRET} {SECRET}"
        handler = {
            "takes": answers(200, echo),
            "refuses": answers(404, echo),
            "later": answers(503, echo),
            "hangs": hangs,
        }[mood]
        timeout = Duration(0.5 if mood == "hangs" else 20)
        headers = {"Authorization": Secret(f"Bearer {SECRET}")}
        with Web(handler) as web:
            yield Side(hook(web, headers=headers, timeout=timeout), lambda: web.bodies)

    def inert(self, message: bytes, text: str) -> None:
        """One JSON object, and nothing in its strings that a viewer would obey."""
        assert b"\n" not in message
        shown = json.loads(message)
        assert_inert("\n".join(strings(shown)))


def test_the_object_is_the_documented_one() -> None:
    """Its first fields in their order, then what more there is; the key as Idempotency-Key."""
    with Web(answers(200)) as web:
        send(hook(web), notification())
    headers, body = web.requests[0]
    assert list(json.loads(body))[:11] == [
        "at",
        "cluster",
        "check",
        "kind",
        "subject",
        "severity",
        "status",
        "reason",
        "summary",
        "since",
        "key",
    ]
    assert headers["Content-Type"] == "application/json"
    assert headers["Idempotency-Key"] == "01J9-1"


def test_headers_and_method_are_the_users() -> None:
    """Also where they replace one of ours."""
    with Web(answers(204)) as web:
        headers = {"content-type": Secret("application/cloudevents+json"), "X-Team": Secret("ops")}
        send(hook(web, headers=headers, method="PUT"), notification())
    got, _ = web.requests[0]
    assert got.getall("Content-Type") == ["application/cloudevents+json"]
    assert got["X-Team"] == "ops"


def test_a_hostile_key_adds_no_header() -> None:
    """Line breaks become visible."""
    with Web(answers(200)) as web:
        send(hook(web), hostile("a\r\nX-Evil: yes"))
    assert "X-Evil" not in web.requests[0][0]


STATUSES = [
    (200, None, ""),
    (202, None, ""),
    (204, None, ""),
    (300, True, "refused"),
    (400, True, "refused"),
    (401, True, "auth"),
    (403, True, "auth"),
    (404, True, "refused"),
    (407, False, "auth"),
    (408, False, "timeout"),
    (410, True, "refused"),
    (425, False, "server"),
    (429, False, "rate"),
    (451, True, "refused"),
    (499, False, "server"),
    (500, False, "server"),
    (503, False, "server"),
]


@pytest.mark.parametrize(("status", "permanent", "reason"), STATUSES)
def test_what_a_status_means(status: int, permanent: bool | None, reason: str) -> None:
    """2xx is taken; of the others, those that cannot change are permanent."""
    with Web(answers(status, "said")) as web:
        if permanent is None:
            assert str(status) in send(hook(web), notification()).text
            return
        error = failure(hook(web))
    assert (error.permanent, error.reason) == (permanent, reason)
    assert str(status) in str(error)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    """What is meant for one host goes to no other; the error says where it points."""
    with Web(answers(200)) as other:
        target = f"{other.url}/{SECRET}"
        with Web(answers(status, Location=target)) as web:
            error = failure(hook(web))
        assert other.requests == []
    assert error.permanent
    assert "redirect to localhost; set url" in str(error)
    assert SECRET not in str(error)


@pytest.mark.parametrize("status", [429, 503, 400])
def test_retry_after_is_passed_on(status: int) -> None:
    """With whatever error it comes."""
    with Web(answers(status, **{"Retry-After": "17"})) as web:
        assert failure(hook(web)).retry_after == 17


RETRY_AFTER = [
    ("0", 0),
    ("120", 120),
    ("86400", 86400),
    ("86401", 86400),
    (format_datetime(NOW + timedelta(seconds=30), usegmt=True), 30),
    (format_datetime(NOW - timedelta(seconds=30), usegmt=True), 0),
    ("", None),
    ("-5", None),
    ("soon", None),
    ("9" * 5000, None),
    ("Mon, 01 Jan 99999999999999999999 00:00:00 +0000", None),
    ("Mon, 01 Jan 2030 00:00:00 +99999999999999999999", None),
]


@pytest.mark.parametrize(("header", "seconds"), RETRY_AFTER)
def test_how_long_to_wait(header: str, seconds: float | None) -> None:
    """Seconds or a date (RFC 9110), never below zero or above a day."""
    assert retry_after_s(header, NOW) == seconds


@pytest.mark.parametrize("status", [200, 500])
def test_an_endless_answer_is_cut(status: int) -> None:
    """The status decides; the rest is read for a moment and quoted in a line."""

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        async for chunk in chunks():
            await response.write(chunk)
        return response

    with Web(endless) as server:
        if status == 200:
            assert len(send(hook(server), notification()).text) < 400
        else:
            assert len(str(failure(hook(server)))) < 400


async def chunks() -> AsyncIterator[bytes]:
    for _ in range(10_000):
        yield b"\x1b[31m<b>" * 1000


def test_answers_are_not_packed() -> None:
    """Slack and many a proxy pack what they may, and what is packed cannot be read here."""

    async def packs(request: web.Request) -> web.Response:
        response = web.Response(status=400, text="no such channel " * 20)
        response.enable_compression()
        return response

    with Web(packs) as server:
        assert "no such channel" in str(failure(hook(server)))


def test_a_body_that_never_ends_does_not_undo_a_success() -> None:
    """The server has said 200: sending it again would tell it twice."""

    async def stalls(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.sleep(60)
        return response

    with Web(stalls) as server:
        assert "200" in send(hook(server, timeout=Duration(10)), notification()).text


def certified(ca_file: Path) -> ssl.SSLContext:
    """What a server on localhost proves itself with, to those who have the file."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(ca_file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return context


def test_https_is_verified(tmp_path: Path) -> None:
    """With ca_file it goes; without, nothing is sent and the error says what to do."""
    context = certified(ca_file := tmp_path / "ca.pem")
    with Web(answers(200), context) as server:
        send(hook(server, ca_file=FilePath(ca_file)), notification())
        error = failure(hook(server))
        by_address = Secret(f"https://127.0.0.1:{server.port}/")
        wrong_name = failure(Webhook(url=by_address, ca_file=FilePath(ca_file)))
    assert len(server.requests) == 1
    assert (error.reason, error.permanent) == ("tls", False)
    assert "set ca_file" in str(error)
    assert "name that the certificate is made for" in str(wrong_name)


@pytest.mark.parametrize("headers", [b"", b"Connection: close\r\n"])
def test_a_server_that_says_no_goodbye_by_tls_keeps_no_connection(
    tmp_path: Path, headers: bytes
) -> None:
    """The connection waited for it in the background, and outlived the event loop of a tick."""
    context = certified(ca_file := tmp_path / "ca.pem")
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + headers + b"\r\n"

    def serve(listening: socket.socket, asked: threading.Event) -> None:
        connection = listening.accept()[0]
        with context.wrap_socket(connection, server_side=True) as encrypted:
            encrypted.recv(65536)
            encrypted.sendall(answer)
            asked.wait(60)

    async def left(port: int) -> list[Any]:
        url = Secret(f"https://localhost:{port}/")
        await Webhook(url=url, ca_file=FilePath(ca_file)).send([notification()])
        process: Any = psutil.Process()
        list_all = getattr(process, "net_connections", None) or process.connections  # before 6.0
        here = list_all()
        return [one for one in here if one.raddr and one.raddr.port == port]

    with socket.create_server(("127.0.0.1", 0)) as listening:
        asked = threading.Event()
        server = threading.Thread(target=serve, args=(listening, asked))
        server.start()
        found = asyncio.run(left(listening.getsockname()[1]))
        asked.set()
        server.join()
    assert found == []


def test_https_to_a_plain_server_is_a_tls_error() -> None:
    """Not a riddle about a connection that was reset."""
    with Web(answers(200)) as server:
        error = failure(Webhook(url=Secret(f"https://localhost:{server.port}/")))
    assert error.reason == "tls"


@pytest.mark.parametrize("host", ["127.0.0.1:1", "no-such-host.invalid", "[::1]:1"])
def test_nobody_there_is_a_network_error(host: str) -> None:
    """It names the host, never the address below it."""
    error = failure(Webhook(url=Secret(f"http://{host}/{SECRET}")))
    assert (error.reason, error.permanent) == ("network", False)
    assert host.split("]")[0].strip("[").split(":1")[0] in str(error)
    assert SECRET not in str(error)


@pytest.mark.parametrize(
    "said", [b"", b"not http at all\r\n\r\n", b"HTTP/1.1 200 OK\r\nBroken\r\n"]
)
def test_a_server_that_speaks_no_http_is_a_network_error(said: bytes) -> None:
    """Another try may meet a better one."""
    error = asyncio.run(against(said))
    assert (error.reason, error.permanent) == ("network", False)
    assert "127.0.0.1" in str(error)


async def against(said: bytes) -> ChannelError:
    """What a server that answers this makes of a send."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    channel = Webhook(url=Secret(f"http://{host}:{port}/"), timeout=Duration(10))
    with pytest.raises(ChannelError) as caught:
        await channel.send([notification()])
    await close_server(server)
    return caught.value


def test_why_nobody_is_there_is_said_plainly() -> None:
    """In the system's words, not in those of the event loop."""
    error = failure(Webhook(url=Secret("http://127.0.0.1:1/x")))
    assert str(error) == "cannot connect to http://127.0.0.1:1: Connection refused"


SEVERAL = "Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0), [Errno 111] …"
TROUBLES = [
    (OSError(111, "Connect call failed ('127.0.0.1', 1)"), "Connection refused"),
    (OSError(SEVERAL), "Connection refused"),
    (gaierror(-2, "Name or service not known"), "Name or service not known"),
    (ConnectionError("Unexpected EOF"), "Unexpected EOF"),
    (OSError(), "no connection"),
]


@pytest.mark.parametrize(("error", "said"), TROUBLES)
def test_what_keeps_a_connection_from_being_made(error: OSError, said: str) -> None:
    """Once, however many addresses were tried."""
    assert connection_failure(error) == said


PROXIES: list[tuple[str, dict[str, str], str | None]] = [
    ("https://hooks.example.org/x", {}, None),
    ("https://hooks.example.org/x", {"https_proxy": "http://p:3128"}, "http://p:3128"),
    ("https://hooks.example.org/x", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
    ("https://hooks.example.org/x", {"http_proxy": "http://p:3128"}, None),
    ("https://hooks.example.org/x", {"ALL_PROXY": "http://p:3128"}, "http://p:3128"),
    ("https://hooks.example.org/x", {"https_proxy": "socks5://p:1080"}, None),
    ("https://a.b.org/", {"https_proxy": "http://p", "no_proxy": "x, b.org"}, None),
    ("https://b.org/", {"https_proxy": "http://p", "no_proxy": ".b.org"}, None),
    ("https://ab.org/", {"https_proxy": "http://p", "no_proxy": "b.org"}, "http://p"),
    ("https://b.org/", {"https_proxy": "http://p", "no_proxy": "*"}, None),
    ("https://b.org/", {"https_proxy": "http://p", "no_proxy": ""}, "http://p"),
    ("http://10.1.2.3:9093/", {"http_proxy": "http://p", "no_proxy": "x,10.9.9.9/8"}, None),
    ("http://11.1.2.3:9093/", {"http_proxy": "http://p", "no_proxy": "10.0.0.0/8"}, "http://p"),
    ("http://am:9093/", {"http_proxy": "http://p", "no_proxy": "10.0.0.0/8"}, "http://p"),
    ("http://[fd00::1]:9093/", {"http_proxy": "http://p", "no_proxy": "fd00::/8"}, None),
]


@pytest.mark.parametrize(("url", "env", "chosen"), PROXIES)
def test_which_proxy_the_environment_means(
    url: str, env: dict[str, str], chosen: str | None
) -> None:
    """Login nodes often reach the web through one only."""
    assert find_proxy(url, env) == chosen


def test_a_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request goes to the proxy, which is asked for the whole address."""
    with Web(answers(200, "by proxy")) as server:
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.delenv("no_proxy", raising=False)
        receipt = send(Webhook(url=Secret("http://hooks.invalid/x")), notification())
    assert "by proxy" in receipt.text
    assert server.requests[0][0]["Host"] == "hooks.invalid"


def failure(channel: Webhook) -> ChannelError:
    with pytest.raises(ChannelError) as caught:
        send(channel, notification())
    return caught.value


GOOD = Secret("https://hooks.example.org/x")
BAD: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"url": Secret("")}, ("url",)),
    ({"url": Secret("hooks.example.org/x")}, ("url",)),
    ({"url": Secret("ftp://hooks.example.org/x")}, ("url",)),
    ({"url": Secret("https:///x")}, ("url",)),
    ({"url": Secret("https://[::1/x")}, ("url",)),
    ({"url": Secret("https://h:99999/x")}, ("url",)),
    ({"url": Secret("https://h/x\r\ny")}, ("url",)),
    ({"url": Secret("https://h/a b")}, ("url",)),
    ({"url": GOOD, "headers": {"X Y": Secret("v")}}, ("headers", "X Y")),
    ({"url": GOOD, "headers": {"": Secret("v")}}, ("headers", "")),
    ({"url": GOOD, "headers": {"X": Secret("a\r\nb")}}, ("headers", "X")),
    ({"url": GOOD, "headers": {"Host": Secret("h")}}, ("headers", "Host")),
    ({"url": GOOD, "headers": {"Idempotency-Key": Secret("h")}}, ("headers", "Idempotency-Key")),
    ({"url": GOOD, "timeout": Duration(0)}, ("timeout",)),
]


@pytest.mark.parametrize(("fields", "path"), BAD)
def test_wrong_settings_are_refused(fields: dict[str, Any], path: tuple[str, ...]) -> None:
    """Each names its key, and none shows the address."""
    with pytest.raises(Invalid) as caught:
        Webhook(**fields)
    assert caught.value.path == path
    assert "hooks" not in str(caught.value).replace("https://hooks.example.org/…", "")
