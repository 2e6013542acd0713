"""How many may come in: connections that are held open must not take what the watching needs, nor
keep others out.

A process has 1,024 file descriptors by default, and every check's child takes some.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from aiohttp import web

MAX_CONNECTIONS = 200
"""Connections at once; a browser has two or three."""

MAX_PEER_CONNECTIONS = 100
"""Of one address: a proxy in front has all, and up to 64 open pages (events.MAX_OPEN_PAGES) hold one each."""

RESERVED_CONNECTIONS = 16
"""Beyond MOST, where every other connection is at work: only `/healthz` is answered there."""


class LimitedSite(web.TCPSite):
    """A site that always lets the newest in, as long as an older one only waits: who connects and
    asks nothing, a browser that may ask again. It turns away whoever would be one too many."""

    def __init__(self, runner: web.BaseRunner, host: str, port: int) -> None:
        super().__init__(runner, host, port)
        self._peers: dict[asyncio.BaseTransport, str] = {}
        self._serving: set[asyncio.BaseTransport] = set()
        self._reserve: set[asyncio.BaseTransport] = set()
        self._shut = False

    async def start(self) -> None:
        """As TCPSite; raises OSError."""
        server = self._runner.server
        assert server is not None  # the runner was set up
        self._runner._reg_site(self)
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _ConnectionGuard(self, server), self._host, self._port, backlog=self._backlog
        )

    async def stop(self) -> None:
        """As TCPSite, and nobody comes in any more. What was accepted a moment ago is let in to be
        turned away: closing before that leaves it open for ever
        (https://github.com/python/cpython/issues/109564)."""
        self._shut = True
        loop, server = asyncio.get_running_loop(), self._server
        for wire in server.sockets if isinstance(server, asyncio.Server) else ():
            loop.remove_reader(wire)
        await asyncio.sleep(0)
        await super().stop()

    @contextmanager
    def mark_serving(self, transport: asyncio.BaseTransport | None) -> Iterator[bool]:
        """While a request of this connection is answered it is not let go of; whether it is one of
        the reserve."""
        if transport is None:
            yield False
            return
        self._serving.add(transport)
        try:
            yield transport in self._reserve
        finally:
            self._serving.discard(transport)

    def admit_connection(self, transport: asyncio.Transport) -> bool:
        """Whether it may come in; who waited longest makes room, of the address that has most."""
        if self._shut:
            return False
        self._peers = {t: peer for t, peer in self._peers.items() if not t.is_closing()}
        self._reserve &= self._peers.keys()
        peer = str((transport.get_extra_info("peername") or ("",))[0])
        counts = Counter(self._peers.values())
        if counts[peer] >= MAX_PEER_CONNECTIONS:
            if not self._close_idle_connection(
                t for t, other in self._peers.items() if other == peer
            ):
                return False
        elif len(self._peers) >= MAX_CONNECTIONS:
            crowded = sorted(self._peers, key=lambda t: -counts[self._peers[t]])
            if not self._close_idle_connection(crowded):
                if len(self._peers) >= MAX_CONNECTIONS + RESERVED_CONNECTIONS:
                    return False
                self._reserve.add(transport)
        self._peers[transport] = peer
        return True

    def _close_idle_connection(self, oldest_first: Iterable[asyncio.BaseTransport]) -> bool:
        """End the first that only waits; False where all are being answered."""
        for transport in oldest_first:
            if transport not in self._serving:
                assert isinstance(transport, asyncio.Transport)
                del self._peers[transport]
                transport.abort()
                return True
        return False


class _ConnectionGuard(asyncio.Protocol):
    """Decides when a connection is there, and lets the server have it or ends it."""

    def __init__(self, door: LimitedSite, server: web.Server) -> None:
        self._door, self._server = door, server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if not self._door.admit_connection(transport):
            transport.abort()
            return
        handler = self._server()
        transport.set_protocol(handler)
        handler.connection_made(transport)
