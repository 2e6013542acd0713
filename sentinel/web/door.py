"""How many may come in: connections that are held open must not take what the watching needs.

A process has 1,024 file descriptors by default, and every check's child takes some.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web

MOST = 200
"""Connections at once; a browser has two or three."""


class Door(web.TCPSite):
    """A site that turns away whoever would be one too many."""

    async def start(self) -> None:
        """As TCPSite; raises OSError."""
        server = self._runner.server
        assert server is not None  # the runner was set up
        before = asyncio.get_running_loop().create_server
        count = _Counted(server, lambda: len(server.connections))
        self._runner._reg_site(self)
        self._server = await before(
            count, self._host, self._port, backlog=self._backlog, reuse_address=True
        )


class _Counted:
    """A factory of protocols for create_server."""

    def __init__(self, usual: Callable[[], asyncio.Protocol], count: Callable[[], int]) -> None:
        self._usual, self._count = usual, count

    def __call__(self) -> asyncio.BaseProtocol:
        return self._usual() if self._count() < MOST else _Refusal()


class _Refusal(asyncio.Protocol):
    """Ends the connection before a byte is read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            transport.abort()
