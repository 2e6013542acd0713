"""Makes one HTTP exchange with aiohttp. It is imported only when something is sent, because aiohttp
takes half of the start-up time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from sentinel.channels.http_request import (
    HttpAnswer,
    HttpRequest,
    find_proxy,
    find_unusable_proxy,
    retry_after_s,
    url_origin,
)
from sentinel.channels.redact import connection_failure, quote_redacted
from sentinel.channels.tls import client_context, tls_trouble, tls_words
from sentinel.core.errors import ChannelError
from sentinel.core.values import duration_text

# rounds of the event loop until a connection that was shut down is closed; three are needed
_ROUNDS = 20
# no compression: a few compressed bytes may expand to gigabytes
_UNPACKED = {"Accept-Encoding": "identity"}


async def exchange_once(request: HttpRequest) -> HttpAnswer:
    """Send the request and return the answer, whatever its status. Raises ChannelError if there is
    none."""
    try:
        return await _send_request(request)
    except (aiohttp.ClientError, OSError, ValueError, asyncio.TimeoutError) as error:
        raise _transport_error(request, error) from None


async def _send_request(request: HttpRequest) -> HttpAnswer:
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
            response.headers.get("Content-Type", "").partition(";")[0].strip().lower(),
        )


@contextlib.asynccontextmanager
async def _closing_connector(
    context: ssl.SSLContext | bool,
) -> AsyncIterator[aiohttp.TCPConnector]:
    """A connector that closes its connections when it ends. aiohttp's own connector closes TLS in
    the background, waits for the other side, and outlives the event loop of a tick."""
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
        # not abort(): up to Python 3.12.6, asyncio then never closes the socket (CPython 109534)
        for one in opened:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for _ in range(_ROUNDS):
            if all(one.fileno() < 0 for one in opened):
                break
            await asyncio.sleep(0)


async def _read_beginning(request: HttpRequest, response: aiohttp.ClientResponse) -> bytes:
    """The first bytes of the answer. If it stops or breaks off, what was read is used."""
    body = bytearray()

    async def read() -> None:
        while chunk := await response.content.read(request.most - len(body)):
            body.extend(chunk)

    with contextlib.suppress(aiohttp.ClientError, OSError, asyncio.TimeoutError):
        await asyncio.wait_for(read(), request.patience)
    return bytes(body)


def _transport_error(request: HttpRequest, error: Any) -> ChannelError:
    """An error in sentinel's own words. aiohttp's words may contain the whole address."""
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
