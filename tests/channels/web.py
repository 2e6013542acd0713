"""An HTTP server on the loopback that answers as a service does, and the contract over it."""

import asyncio
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiohttp import web

from sentinel.core.errors import ChannelError
from sentinel.core.model import Notification
from sentinel.core.values import Duration
from sentinel.plugin import Channel
from tests.channels.contract import ChannelContract, Mood, Side, assert_inert
from tests.channels.samples import notification
from tests.lab.loops import LoopThread, close_server

Handler = Callable[[web.Request], Any]


class Web:
    """An HTTP server in a thread; `requests` are headers and bodies as they came."""

    def __init__(self, answer: Handler, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[tuple[Any, bytes]] = []
        self._answer, self._tls = answer, tls

    def __enter__(self) -> "Web":
        self._thread = LoopThread().__enter__()
        self._thread.run(self._open())
        return self

    def __exit__(self, *error: Any) -> None:
        self._thread.run(close_server(self._server))
        self._thread.run(self._runner.cleanup())
        self._thread.__exit__(*error)

    @property
    def bodies(self) -> list[bytes]:
        return [body for _, body in self.requests]

    async def _open(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        assert self._runner.server is not None
        self._server = await self._thread.loop.create_server(
            self._runner.server, "127.0.0.1", 0, ssl=self._tls
        )
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http{'s' if self._tls else ''}://localhost:{self.port}"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.headers.copy(), await request.read()))
        answer: web.StreamResponse = await self._answer(request)
        return answer


def answers(status: int, text: str = "", **headers: str) -> Handler:
    """A handler that says this to everybody."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, text=text, headers=headers)

    return answer


async def hangs(request: web.Request) -> web.Response:
    await asyncio.sleep(60)
    return web.Response()


def strings(value: Any) -> Iterator[str]:
    """Every string in a JSON document."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from (key, *strings(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


def answers_json(status: int, body: Any, **headers: str) -> Handler:
    """A handler that says this document to everybody."""

    async def answer(request: web.Request) -> web.Response:
        return web.json_response(body, status=status, headers=headers)

    return answer


def failure(channel: Channel, *notifications: Notification) -> ChannelError:
    """How sending fails; an ordinary alert where none is given."""
    with pytest.raises(ChannelError) as caught:
        asyncio.run(channel.send(notifications or [notification()]))
    return caught.value


def sent(channel: Channel, server: Web, *notifications: Notification) -> Any:
    """The document that the server got for them."""
    asyncio.run(channel.send(notifications or [notification()]))
    return json.loads(server.bodies[-1])


class ServiceContract(ChannelContract):
    """The contract over a service that takes JSON: its own answers for each mood.

    Requests without a body only ask, and are no messages.
    """

    MOODS: ClassVar[dict[str, Handler]]

    def channel(self, url: str, timeout: Duration) -> Channel:
        """The channel, with SECRET wherever it takes one."""
        raise NotImplementedError

    @contextmanager
    def side(self, tmp_path: Path, mood: Mood) -> Iterator[Side]:
        timeout = Duration(0.5 if mood == "hangs" else 20)
        with Web({**self.MOODS, "hangs": hangs}[mood]) as server:
            channel = self.channel(server.url, timeout)
            yield Side(channel, lambda: [body for body in server.bodies if body])

    def inert(self, message: bytes, text: str) -> None:
        """No string holds what a terminal or an eye would obey."""
        assert_inert("\n".join(strings(json.loads(message))).replace("\n", ""))
