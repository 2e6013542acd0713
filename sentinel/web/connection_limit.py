"""How many may come in: connections that are held open must not take what the watching needs.

A process has 1,024 file descriptors by default, and every check's child takes some.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

MOST = 200
"""Connections at once; a browser has two or three."""


class Door(web.TCPSite):
    """A site that turns away whoever would be one too many."""

    async def start(self) -> None:
        """As TCPSite; raises OSError."""
        server = self._runner.server
        assert server is not None  # the runner was set up
        self._runner._reg_site(self)
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Knock(server), self._host, self._port, backlog=self._backlog
        )


class _Knock(asyncio.Protocol):
    """Decides when a connection is there, and lets the server have it or ends it."""

    def __init__(self, server: web.Server) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if len(self._server.connections) >= MOST:
            transport.abort()
            return
        handler = self._server()
        transport.set_protocol(handler)
        handler.connection_made(transport)
