"""An event loop in a thread of its own, and servers that leave no connection behind when they end."""

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class LoopThread:
    """The loop runs inside `with`."""

    def __enter__(self) -> "LoopThread":
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="loop", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.run(_end_tasks())
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, Answer], limit: float = 30.0) -> Answer:
        """What the coroutine returns; TimeoutError after the limit."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(limit)


async def close_server(server: asyncio.Server) -> None:
    """Close the port, and cut every connection of this loop.

    `Server.close` leaves the accepted connections open. It loses one that has no protocol yet, and the
    collector finds that socket in a later test (https://github.com/python/cpython/issues/109564). So
    the server first takes in what it has accepted.
    """
    loop = asyncio.get_running_loop()
    for listener in server.sockets:
        loop.remove_reader(listener)
    await asyncio.sleep(0)  # each accepted connection gets its transport
    server.close()
    for transport in list(loop._transports.values()):  # type: ignore[attr-defined]
        transport.abort()
    await asyncio.sleep(0)  # each transport closes its socket


async def _end_tasks() -> None:
    """Connections that were cut in the middle of an answer leave tasks behind."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
