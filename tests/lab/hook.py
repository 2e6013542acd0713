"""A real HTTP server in a thread, that keeps what is posted to it and can be made to fail."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple


class Post(NamedTuple):
    """One request that was answered well."""

    path: str
    headers: dict[str, str]
    body: bytes


class HookServer:
    """Listening inside `with`, on 127.0.0.1 and one port that `down` and `up` keep.

    `posts` are the requests that were taken, `asked` counts all that came.
    """

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self.asked = 0
        self._answer, self._delay = 204, 0.0
        self._headers: dict[str, str] = {}
        self._free = threading.Event()
        self._free.set()
        self._server = self._listen(0)
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"

    def refuse(self, status: int = 503, **headers: str) -> None:
        """Answer this from now on: 4xx for good, 5xx to be tried again later."""
        self._answer, self._headers = status, headers

    def accept(self) -> None:
        """Take back `refuse` and `slow`."""
        self._answer, self._headers, self._delay = 204, {}, 0.0

    def slow(self, seconds: float) -> None:
        """Wait this long before each answer."""
        self._delay = seconds

    def hold(self) -> None:
        """Answer nobody until `release`."""
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    def down(self) -> None:
        """Close the port: connecting is refused."""
        self._server.shutdown()
        self._server.server_close()

    def up(self) -> None:
        """Listen again, on the same port."""
        self._server = self._listen(self.port)
        self._serve()

    def take(self, post: Post) -> tuple[int, dict[str, str]]:
        """The answer to one request; called by the server's threads."""
        self.asked += 1
        time.sleep(self._delay)
        self._free.wait()
        if self._answer < 300:
            self.posts.append(post)
        return self._answer, self._headers

    def __enter__(self) -> "HookServer":
        self._serve()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()

    def _serve(self) -> None:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def _listen(self, port: int) -> ThreadingHTTPServer:
        hook = self

        class Handler(_Handler):
            taker = hook

        return _Server(("127.0.0.1", port), Handler)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left in the middle of an answer is what tests are about."""


class _Handler(BaseHTTPRequestHandler):
    taker: HookServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, headers = self.taker.take(Post(self.path, dict(self.headers.items()), body))
        self.send_response(status)
        for name, value in {**headers, "Content-Length": "0"}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""
