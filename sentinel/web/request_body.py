"""What a request brings along, read within a limit: of bytes by the server, of time here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import msgspec
from aiohttp import web
from multidict import MultiDict, MultiMapping

from sentinel.web.auth import Refused

READING = 10.0
"""Seconds for a body."""

Read = TypeVar("Read")
Kind = TypeVar("Kind")


async def form(request: web.Request) -> dict[str, str]:
    """The fields that are texts; none where the body is no form."""
    told = await fields(request)
    return {name: value for name, value in told.items() if isinstance(value, str)}


async def fields(
    request: web.Request, most: int = 0
) -> MultiMapping[str | bytes | bytearray | web.FileField]:
    """All fields; none where the body is no form. `most`: bytes that it may have, where these are more
    than the server's limit."""
    try:
        return await _in_time((request.clone(client_max_size=most) if most else request).post())
    except (ValueError, LookupError):  # not in its charset, or in none that exists
        return MultiDict()


async def json(request: web.Request, kind: type[Kind]) -> Kind:
    """Only JSON: a form of another site cannot send it unasked. Raises Refused."""
    if request.content_type != "application/json":
        raise Refused("send JSON, with Content-Type: application/json", 415)
    raw = await _in_time(request.read())
    try:
        return msgspec.json.decode(raw or b"{}", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"the body is not right: {error}", 400) from None


async def _in_time(reading: Awaitable[Read]) -> Read:
    try:
        return await asyncio.wait_for(reading, READING)
    except asyncio.TimeoutError:
        raise web.HTTPRequestTimeout from None
