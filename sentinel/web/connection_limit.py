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

from sentinel.web.clients import client_of

MAX_CONNECTIONS = 200
"""Connections at once; one browser has two or three."""

MAX_PEER_CONNECTIONS = 100
"""Connections of one client. All people behind a proxy are one client, and up to 64 open pages
(events.MAX_OPEN_PAGES) hold one connection each."""

RESERVED_CONNECTIONS = 16
"""Further connections for the time when all connections, or all of one client, are being answered.
Only `/healthz` is answered on them. A user of this host is the same client as a probe on it."""

MAX_WAITING = 1024
"""Connections that wait to be accepted: listen(2). What comes while the queue is full is tried again by its
client after a second, so a burst of others would make a probe late."""

READ_BYTES = 2**13
"""Bytes that are read of a connection before others have their turn. Even in chunks of a byte each they
take a millisecond; of asyncio's 256 KiB a hundred connections held up all checks for 20 seconds."""

_receiving: set[asyncio.BaseTransport] = set()


@contextmanager
def mark_receiving(transport: asyncio.BaseTransport | None) -> Iterator[None]:
    """While the rest of a request is awaited, its connection counts as idle, like one without a
    request."""
    if transport is None:
        yield
        return
    _receiving.add(transport)
    try:
        yield
    finally:
        _receiving.discard(transport)


class LimitedSite(web.TCPSite):
    """A TCP site with a limit of connections. A new connection is admitted as long as an older one
    is idle, which is then closed; a browser may ask again. If none is idle, the new connection is
    refused."""

    def __init__(self, runner: web.BaseRunner, host: str, port: int) -> None:
        super().__init__(runner, host, port)
        self._peers: dict[asyncio.BaseTransport, str] = {}
        self._serving: set[asyncio.BaseTransport] = set()
        self._reserve: set[asyncio.BaseTransport] = set()
        self._shut = False

    async def start(self) -> None:
        """Begin to listen, as TCPSite does. Raises OSError."""
        server = self._runner.server
        assert server is not None  # the runner is set up already
        self._runner._reg_site(self)
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _ConnectionGuard(self, server), self._host, self._port, backlog=self._backlog
        )
        # asyncio accepts as many at once as its own `backlog` says: 1,024 would be all descriptors
        for wire in self._server.sockets:
            with wire.dup() as queue:
                queue.listen(MAX_WAITING)

    async def stop(self) -> None:
        """Stop listening, as TCPSite does.

        Connections that were accepted a moment ago are admitted and then closed: closing the server
        before that would leave them open for ever
        (https://github.com/python/cpython/issues/109564)."""
        self._shut = True
        loop, server = asyncio.get_running_loop(), self._server
        for wire in server.sockets if isinstance(server, asyncio.Server) else ():
            loop.remove_reader(wire)
        await asyncio.sleep(0)
        await super().stop()

    @contextmanager
    def mark_serving(self, transport: asyncio.BaseTransport | None) -> Iterator[bool]:
        """While a request of this connection is answered, the connection is not closed. Yields
        whether the connection is one of the reserve."""
        if transport is None:
            yield False
            return
        self._serving.add(transport)
        try:
            yield transport in self._reserve
        finally:
            self._serving.discard(transport)

    def admit_connection(self, transport: asyncio.Transport) -> bool:
        """Whether the connection is admitted. If there are too many, the longest idle one of the
        client with the most connections is closed."""
        if self._shut:
            return False
        self._peers = {t: peer for t, peer in self._peers.items() if not t.is_closing()}
        self._reserve &= self._peers.keys()
        peer = client_of(str((transport.get_extra_info("peername") or ("",))[0]))
        counts = Counter(self._peers.values())
        crowd: list[asyncio.BaseTransport] = []
        if counts[peer] >= MAX_PEER_CONNECTIONS:
            crowd = [t for t, other in self._peers.items() if other == peer]
        elif len(self._peers) >= MAX_CONNECTIONS:
            crowd = sorted(self._peers, key=lambda t: -counts[self._peers[t]])
        if crowd and not self._close_idle_connection(crowd):
            if len(self._reserve) >= RESERVED_CONNECTIONS:
                return False
            self._reserve.add(transport)
        self._peers[transport] = peer
        return True

    def _close_idle_connection(self, oldest_first: Iterable[asyncio.BaseTransport]) -> bool:
        """Close the first idle connection. Returns False if all of them are being answered."""
        for transport in oldest_first:
            if transport not in self._serving or transport in _receiving:
                assert isinstance(transport, asyncio.Transport)
                del self._peers[transport]
                transport.abort()
                return True
        return False


class _ConnectionGuard(asyncio.Protocol):
    """Decides about a new connection: gives it to the server, or closes it."""

    def __init__(self, door: LimitedSite, server: web.Server) -> None:
        self._door, self._server = door, server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if not self._door.admit_connection(transport):
            transport.abort()
            return
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]  # what recv() is asked for
        handler = self._server()
        transport.set_protocol(handler)
        handler.connection_made(transport)
