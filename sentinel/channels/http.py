"""One HTTP request that tells a message, in sentinel's errors; no secret in any of them."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from msgspec import Struct

from sentinel.channels.redact import connection_failure, quote_redacted
from sentinel.channels.tls import client_context, tls_trouble, tls_words
from sentinel.core.errors import ChannelError
from sentinel.core.text import visible
from sentinel.core.values import duration_text

if TYPE_CHECKING:  # half of the start of a command that lists the kinds
    import ssl

    import aiohttp

_BODY = 4096
_PATIENCE = 1.0  # seconds for the rest of an answer whose status is known
_LONGEST_WAIT = 86400.0
_ROUNDS = 20  # of the event loop, for a connection that was shut down to be closed; it takes three
_UNPACKED = {"Accept-Encoding": "identity"}  # a few packed bytes may be gigabytes
_TELLING = 6  # parts of an address shorter than this are no secrets
_PROXIES = ("http", "https")
_TEMPORARY = (407, 408, 425, 429)
_REASONS = {401: "auth", 403: "auth", 407: "auth", 408: "timeout", 429: "rate"}


class HttpRequest(Struct, frozen=True, kw_only=True):
    """What is sent where. Address, header values and `hidden` (parts of the body) are secrets;
    `timeout` bounds it all, and `most` bytes of the answer are read."""

    url: str
    method: str
    headers: Mapping[str, str]
    body: bytes
    timeout: float
    ca_file: str = ""
    hidden: tuple[str, ...] = ()
    most: int = _BODY

    @property
    def secret_parts(self) -> set[str]:
        """The address below its host, and the header values, with all their parts."""
        parts = urlsplit(self.url)
        query = [value for _, value in parse_qsl(parts.query)]
        pieces = [*parts.path.split("/"), *query, parts.username or "", parts.password or ""]
        words = [word for value in self.headers.values() for word in (value, *value.split())]
        raw = {p for p in (*pieces, *words) if len(p) >= _TELLING}
        return (
            raw
            | {unquote(p) for p in raw}
            | {
                self.url,
                f"{parts.path}?{parts.query}",
                *self.hidden,
            }
        )


class HttpAnswer(Struct, frozen=True):
    """A response: status, its inert beginning, where it points and when to come again."""

    status: int
    said: str
    location: str = ""
    retry_after: float | None = None
    body: bytes = b""

    @property
    def json_fields(self) -> dict[str, Any]:
        """The JSON object that the body is; empty where it is none. Not inert."""
        try:
            found = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


async def submit_request(request: HttpRequest) -> str:
    """Send it and return what the other side said; ChannelError unless the status is 2xx."""
    answer = await exchange_http(request)
    if 200 <= answer.status < 300:
        return f"{url_origin(request.url)} answered {answer.status} {answer.said}".rstrip()
    raise refused_status(request, answer)


async def exchange_http(request: HttpRequest) -> HttpAnswer:
    """Send it and return the answer, whatever its status; ChannelError when there is none."""
    import asyncio

    import aiohttp

    try:
        return await _exchange_once(request)
    except (aiohttp.ClientError, OSError, ValueError, asyncio.TimeoutError) as error:
        raise _transport_error(request, error) from None


def url_origin(url: str) -> str:
    """Scheme, host and port: all of an address that may be shown."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return visible(f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}")


async def _exchange_once(request: HttpRequest) -> HttpAnswer:
    import aiohttp

    encrypted = urlsplit(request.url).scheme == "https"
    context = client_context(request.ca_file) if encrypted else True
    limit = aiohttp.ClientTimeout(total=request.timeout)
    async with (
        _closing_connector(context) as connector,
        aiohttp.ClientSession(
            connector=connector,
            timeout=limit,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as session,
        session.request(
            request.method,
            request.url,
            data=request.body,
            headers={**_UNPACKED, **request.headers},
            allow_redirects=False,
            proxy=find_proxy(request.url, os.environ),
        ) as response,
    ):
        body = await _read_beginning(request, response)
        return HttpAnswer(
            response.status,
            quote_redacted(body, request.secret_parts),
            response.headers.get("Location", ""),
            retry_after_s(response.headers.get("Retry-After", ""), datetime.now(timezone.utc)),
            body,
        )


@contextlib.asynccontextmanager
async def _closing_connector(
    context: ssl.SSLContext | bool,
) -> AsyncIterator[aiohttp.TCPConnector]:
    """Its connections end with it. aiohttp's own say goodbye by TLS in the background, which takes as
    long as the other side likes, and outlived the event loop of a tick."""
    import asyncio

    import aiohttp

    opened: list[Any] = []

    class Connector(aiohttp.TCPConnector):
        async def connect(self, *args: Any, **settings: Any) -> aiohttp.connector.Connection:
            connection = await super().connect(*args, **settings)
            if connection.transport is not None:
                opened.append(connection.transport.get_extra_info("socket"))
            return connection

    try:
        connector = Connector(ssl=context, force_close=True)
        async with connector:
            yield connector
    finally:
        for one in opened:  # not abort(): CPython 109534, up to 3.12.6 nobody has what was closed
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for _ in range(_ROUNDS):
            if all(one.fileno() < 0 for one in opened):
                break
            await asyncio.sleep(0)


async def _read_beginning(request: HttpRequest, response: aiohttp.ClientResponse) -> bytes:
    """The first bytes of the answer; that it stops or breaks off changes nothing."""
    import asyncio

    import aiohttp

    body = bytearray()

    async def read() -> None:
        while chunk := await response.content.read(request.most - len(body)):
            body.extend(chunk)

    with contextlib.suppress(aiohttp.ClientError, OSError, asyncio.TimeoutError):
        await asyncio.wait_for(read(), _PATIENCE)
    return bytes(body)


def find_proxy(url: str, env: Mapping[str, str]) -> str | None:
    """The proxy that the environment asks for, by the names and forms that curl(1) knows: without a
    scheme it is an HTTP proxy."""
    chosen = _chosen_proxy(url, env)
    return chosen if urlsplit(chosen).scheme in _PROXIES else None


def find_unusable_proxy(url: str, env: Mapping[str, str]) -> str:
    """The proxy that the environment asks for and that cannot be used, without its password; or
    empty. SOCKS needs a library of its own."""
    chosen = _chosen_proxy(url, env)
    return "" if not chosen or urlsplit(chosen).scheme in _PROXIES else url_origin(chosen)


def _chosen_proxy(url: str, env: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    names = {name.lower(): value for name, value in env.items() if name.lower().endswith("_proxy")}
    chosen = (names.get(f"{parts.scheme}_proxy") or names.get("all_proxy") or "").strip()
    rules = names.get("no_proxy", "").replace(",", " ").split()
    if not chosen or any(_covers_host(rule, parts.hostname or "", parts.port) for rule in rules):
        return ""
    scheme, found, rest = chosen.partition("://")
    return f"{scheme.lower()}://{rest}" if found else f"http://{chosen}"


def retry_after_s(header: str, now: datetime) -> float | None:
    """Seconds that a Retry-After asks to wait (RFC 9110 10.2.3), at most a day."""
    if re.fullmatch(r"\d{1,9}", header.strip()):
        return min(float(header), _LONGEST_WAIT)
    try:
        seconds = (parsedate_to_datetime(header) - now).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(max(0.0, seconds), _LONGEST_WAIT)


def _covers_host(rule: str, host: str, port: int | None) -> bool:
    """By name, with all names below it (`example.org`, `.example.org`, `*.example.org`), by network
    (10.0.0.0/8), each for one port where it names one."""
    rule = rule.strip().lower()
    if rule == "*":
        return True
    name, _, number = rule.rpartition(":")
    if name and number.isdigit() and (":" not in name or name.endswith("]")):
        return int(number) == port and _covers_host(name, host, port)
    rule = rule.removeprefix("*").lstrip(".").strip("[]")
    with contextlib.suppress(ValueError):
        return ip_address(host) in ip_network(rule, strict=False)
    return bool(rule) and (host == rule or host.endswith("." + rule))


def refused_status(request: HttpRequest, answer: HttpAnswer) -> ChannelError:
    """What a status that is not 2xx means; what cannot change by itself is permanent."""
    status, place = answer.status, url_origin(request.url)
    permanent = 300 <= status < 500 and status not in _TEMPORARY
    text = f"{place} answered {status}{f': {answer.said}' if answer.said else ''}"
    if 300 <= status < 400:
        target = _host_of(answer.location)
        text = f"{place} answered {status}, a redirect{target}; set url to the final address"
    return ChannelError(
        text,
        permanent=permanent,
        reason=_REASONS.get(status, "refused" if permanent else "server"),
        retry_after=_told_wait_s(answer),
    )


def _told_wait_s(answer: HttpAnswer) -> float | None:
    """By the header, else as Discord and Telegram write it into the body:
    https://discord.com/developers/docs/topics/rate-limits and
    https://core.telegram.org/bots/api#responseparameters."""
    if answer.retry_after is not None:
        return answer.retry_after
    found: Any = answer.json_fields
    inner = found.get("parameters")
    told = (inner if isinstance(inner, dict) else found).get("retry_after")
    if not isinstance(told, int | float) or isinstance(told, bool):
        return None
    return min(max(0.0, told), _LONGEST_WAIT)


def _host_of(location: str) -> str:
    try:
        host = urlsplit(location).hostname
    except ValueError:
        host = None
    return f" to {visible(host[:200])}" if host else ""


def _transport_error(request: HttpRequest, error: Any) -> ChannelError:
    """Words of our own: those of aiohttp may quote the whole address."""
    import asyncio

    import aiohttp

    place = url_origin(request.url)
    if unused := find_unusable_proxy(request.url, os.environ):
        place += f" (not through {unused}, which is no HTTP proxy)"
    if (tls := tls_trouble(error)) is not None:
        return ChannelError(f"{place}: {tls_words(tls)}", reason="tls")
    if isinstance(error, asyncio.TimeoutError | TimeoutError):
        limit = duration_text(request.timeout)
        return ChannelError(f"{place} did not answer within {limit}", reason="timeout")
    if isinstance(error, aiohttp.ClientConnectorError):
        via = "its proxy" if isinstance(error, aiohttp.ClientProxyConnectionError) else place
        why = connection_failure(error.os_error)
        return ChannelError(f"cannot connect to {via}: {why}", reason="network")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return ChannelError(f"{place}: the proxy answered {error.status}", reason="network")
    what = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    return ChannelError(f"{place} gave no proper answer: {what}", reason="network")
