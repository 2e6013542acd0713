"""Messages and signs of life: addresses, proxies, greetings and servers as people have them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.channels import smtp
from sentinel.channels.http_request import find_proxy, find_unusable_proxy
from sentinel.channels.post import url_below
from sentinel.channels.smtp import ehlo_name
from tests.lab.smtp import SmtpServer
from tests.world.case import Case, each
from tests.world.delivery_answers import outcome

HEALTHCHECKS = "https://healthchecks.io/docs/autoprovisioning/"
CURL = "https://curl.se/docs/manpage.html (-x, --proxy; NO_PROXY)"
GOOGLE = "https://support.google.com/a/answer/2956491 (SMTP relay: EHLO)"
LOST = "An alert is never delivered, or the outside takes a blind pass for a sign of life."


@each(
    Case(
        "a-check-that-makes-itself", HEALTHCHECKS, ("https://hc/KEY/slug?create=1", "fail"),
        "https://hc/KEY/slug/fail?create=1", LOST,
    ),
    Case(
        "a-slash-before-the-query", HEALTHCHECKS, ("https://hc/KEY/slug/?create=1&x=2", "/start"),
        "https://hc/KEY/slug/start?create=1&x=2", LOST,
    ),
    Case(
        "an-address-without-a-query", "https://healthchecks.io/docs/http_api/",
        ("https://hc/UUID", "fail"), "https://hc/UUID/fail", LOST,
    ),
    Case(
        "a-query-of-both", "https://developer.pagerduty.com/api-reference/",
        ("https://api/v2?a=1", "incidents?b=2"), "https://api/v2/incidents?a=1&b=2", LOST,
    ),
)  # fmt: skip
def test_a_path_is_put_before_the_query(case: Case) -> None:
    assert url_below(*case.form) == case.right


HOOK = "https://hooks.example.org/x"


@each(
    Case("without-a-scheme", CURL, {"https_proxy": "proxy:3128"}, "http://proxy:3128", LOST),
    Case("in-capitals", CURL, {"HTTPS_PROXY": "HTTP://proxy:3128"}, "http://proxy:3128", LOST),
    Case("with-a-password", CURL, {"all_proxy": "me:pw@p:1"}, "http://me:pw@p:1", LOST),
    Case("with-blanks", CURL, {"https_proxy": " http://p:1 "}, "http://p:1", LOST),
    Case("as-it-is-written-mostly", CURL, {"https_proxy": "http://p:1"}, "http://p:1", LOST),
    Case("by-https", CURL, {"https_proxy": "https://p:1"}, "https://p:1", LOST),
    Case("empty", CURL, {"https_proxy": ""}, None, LOST),
    Case("socks", CURL, {"all_proxy": "socks5h://p:1"}, None, LOST),
    Case(
        "no-proxy-as-go-has-it", "https://pkg.go.dev/golang.org/x/net/http/httpproxy",
        {"https_proxy": "p:1", "no_proxy": "*.example.org"}, None, LOST,
    ),
    Case(
        "no-proxy-with-a-port", "https://pkg.go.dev/golang.org/x/net/http/httpproxy",
        {"https_proxy": "p:1", "no_proxy": "hooks.example.org:8443"}, "http://p:1", LOST,
    ),
    Case(
        "no-proxy-with-blanks", CURL,
        {"https_proxy": "p:1", "no_proxy": "localhost example.org"}, None, LOST,
    ),
)  # fmt: skip
def test_a_proxy_is_taken_as_curl_takes_it(case: Case) -> None:
    assert find_proxy(HOOK, case.form) == case.right


@each(
    Case("socks5h", CURL, {"all_proxy": "socks5h://me:pw@p:1"}, "socks5h://p:1", LOST),
    Case("a-word-nobody-knows", CURL, {"https_proxy": "quic://p:1"}, "quic://p:1", LOST),
    Case("a-usual-one", CURL, {"https_proxy": "p:1"}, "", LOST),
    Case("none", CURL, {}, "", LOST),
)
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(case: Case) -> None:
    assert find_unusable_proxy(HOOK, case.form) == case.right


@each(
    Case("a-full-name", GOOGLE, ("a.hpc.example.org", "example.org"), "a.hpc.example.org", LOST),
    Case("a-node", GOOGLE, ("node-7", "hpc.example.org"), "node-7.hpc.example.org", LOST),
    Case("a-container", GOOGLE, ("3f2a9c", "example.org"), "3f2a9c.example.org", LOST),
    Case("localhost", GOOGLE, ("localhost", "example.org"), "localhost.example.org", LOST),
    Case("an-underscore", GOOGLE, ("gpu_01", "example.org"), "example.org", LOST),
    Case("no-domain-anywhere", "RFC 5321 4.1.3", ("node-7", "localhost"), "[127.0.0.1]", LOST),
)
def test_a_relay_takes_the_name_in_the_greeting(case: Case) -> None:
    assert ehlo_name(*case.form) == case.right


@pytest.fixture
def deaf() -> Iterator[tuple[str, int]]:
    """An address that never answers: its queue of connections is full."""
    with socket.socket() as server:
        server.bind(("127.0.0.2", 0))
        server.listen(0)
        place = server.getsockname()
        waiting = []
        for _ in range(4):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(place)
            waiting.append(one)
        yield place
        for one in waiting:
            one.close()


def test_the_second_address_is_taken_where_the_first_is_deaf(
    deaf: tuple[str, int], tmp_path: Path
) -> None:
    """A relay with two addresses, one of them behind a firewall that drops: as curl does it.

    Source: RFC 8305; the form is what getaddrinfo(3) gives for a name with two A records.
    """
    with SmtpServer(tmp_path, host="127.0.0.1") as server:
        usable = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))
        first = (socket.AF_INET, socket.SOCK_STREAM, 6, "", deaf)

        async def connect() -> tuple[str, int]:
            found = await smtp.connect_first([first, usable])
            with found:
                address: tuple[str, int] = found.getpeername()
                return address

        assert asyncio.run(asyncio.wait_for(connect(), 10)) == ("127.0.0.1", server.port)


BODIES = "A success whose body says that it is none"


@each(
    Case("kuma-knows-no-monitor", "https://github.com/louislam/uptime-kuma (api-router.js)", '{"ok":false,"msg":"Monitor not found"}', "later", LOST),
    Case("dingtalk-misses-a-keyword", "https://open.dingtalk.com/document/orgapp/custom-robots-send-group-messages", '{"errcode":310000,"errmsg":"keywords not in content"}', "later", LOST),
    Case("wecom-took-it", "https://developer.work.weixin.qq.com/document/path/91770", '{"errcode":0,"errmsg":"ok"}', "taken", LOST),
    Case("teams-took-it", "https://github.com/sebbmeyer/php-microsoft-teams-connector/pull/14", "1", "taken", LOST),
    Case("it-took-it", "https://healthchecks.io/docs/http_api/", "OK", "taken", LOST),
    Case("a-page-of-text", BODIES, "not ok (not found) in the middle of a page", "taken", LOST),
    Case("a-list", BODIES, '[{"ok": false}]', "taken", LOST),
)  # fmt: skip
def test_a_success_whose_body_says_that_it_is_none(case: Case) -> None:
    assert outcome("webhook", 200, case.form) == case.right
