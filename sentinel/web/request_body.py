"""Reads the body of a request within limits: the server limits the bytes, this module the time.

While the body is awaited, the connection may be closed to make room for another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import msgspec
from aiohttp import web
from multidict import MultiDict, MultiMapping

from sentinel.core.struct_types import decode_json
from sentinel.web.auth import RequestRefused
from sentinel.web.connection_limit import mark_receiving

BODY_TIMEOUT_S = 10.0
"""Seconds to wait for a body."""

Read = TypeVar("Read")
Kind = TypeVar("Kind")


async def read_form(request: web.Request) -> dict[str, str]:
    """The text fields of a form; empty if the body is not a form."""
    told = await read_form_fields(request)
    return {name: value for name, value in told.items() if isinstance(value, str)}


async def read_form_fields(
    request: web.Request, most: int = 0
) -> MultiMapping[str | bytes | bytearray | web.FileField]:
    """All fields of a form; empty if the body is not a form. `most`: bytes that the body may have,
    if more than the server's limit."""
    try:
        return await _read_body_in_time(
            request, (request.clone(client_max_size=most) if most else request).post()
        )
    # the text is not valid in its charset, or the charset is unknown
    except (ValueError, LookupError):
        return MultiDict()


async def read_json_body(request: web.Request, kind: type[Kind]) -> Kind:
    """The body as an object of that kind. Raises RequestRefused.

    Only JSON is accepted: a form of another site cannot send it without the browser asking first.
    """
    if request.content_type != "application/json":
        raise RequestRefused("send JSON, with Content-Type: application/json", 415)
    raw = await _read_body_in_time(request, request.read())
    try:
        return decode_json(raw or b"{}", kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRefused(f"the body is not right: {error}", 400) from None


async def _read_body_in_time(request: web.Request, reading: Awaitable[Read]) -> Read:
    try:
        with mark_receiving(request.transport):
            return await asyncio.wait_for(reading, BODY_TIMEOUT_S)
    except asyncio.TimeoutError:
        raise web.HTTPRequestTimeout from None
    except ConnectionError:  # the client has left, or the connection was closed to make room
        raise web.HTTPBadRequest from None
