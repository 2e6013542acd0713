"""What a request brings along, read within a limit: of bytes by the server, of time here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import msgspec
from aiohttp import web
from multidict import MultiDict, MultiMapping

from sentinel.web.auth import RequestRefused

BODY_TIMEOUT_S = 10.0
"""Seconds for a body."""

Read = TypeVar("Read")
Kind = TypeVar("Kind")


async def read_form(request: web.Request) -> dict[str, str]:
    """The fields that are texts; none where the body is no form."""
    told = await read_form_fields(request)
    return {name: value for name, value in told.items() if isinstance(value, str)}


async def read_form_fields(
    request: web.Request, most: int = 0
) -> MultiMapping[str | bytes | bytearray | web.FileField]:
    """All fields; none where the body is no form. `most`: bytes that it may have, where these are more
    than the server's limit."""
    try:
        return await _read_body_in_time(
            (request.clone(client_max_size=most) if most else request).post()
        )
    except (ValueError, LookupError):  # not in its charset, or in none that exists
        return MultiDict()


async def read_json_body(request: web.Request, kind: type[Kind]) -> Kind:
    """Only JSON: a form of another site cannot send it unasked. Raises RequestRefused."""
    if request.content_type != "application/json":
        raise RequestRefused("send JSON, with Content-Type: application/json", 415)
    raw = await _read_body_in_time(request.read())
    try:
        return msgspec.json.decode(raw or b"{}", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRefused(f"the body is not right: {error}", 400) from None


async def _read_body_in_time(reading: Awaitable[Read]) -> Read:
    try:
        return await asyncio.wait_for(reading, BODY_TIMEOUT_S)
    except asyncio.TimeoutError:
        raise web.HTTPRequestTimeout from None
