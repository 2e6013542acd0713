"""A child that answers one request after another."""

import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO

from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text, size_text
from sentinel.proc import running
from sentinel.proc.child import Child
from sentinel.proc.errors import TimedOut, TooMuch
from sentinel.proc.stuck import Stuck, bury

_CHUNK = 1 << 16
_MAX_COMPLAINT = 1 << 16


class Dialogue:
    """The child, and the pipes to it. It has ended after every error: the next request needs
    another one."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        bury()
        with running.starting():
            self._child = _Talking(argv, env, b"", None, 0)
            running.add(self._child.pid, self._child.name)
        self.is_open = True

    def ask(self, request: bytes, lengths: Callable[[bytes], tuple[int, int]], head: int,
            limit: float, max_output: int) -> tuple[bytes, bytes]:  # fmt: skip
        """The two parts of an answer, whose `lengths` are in its first `head` bytes.

        Raises TimedOut after `limit` seconds, TooMuch, and CannotTell where the child ends.
        """
        deadline = time.monotonic() + limit
        try:
            self._child.send(request, deadline)
            first, second = lengths(self._child.take(head, deadline))
            if first + second > max_output:
                raise TooMuch(f"more than {size_text(max_output)} came back")
            return self._child.take(first, deadline), self._child.take(second, deadline)
        except _Late:
            raise TimedOut(f"no answer within {duration_text(limit)}", self.end()) from None
        except BaseException:
            self.end()
            raise

    def end(self) -> Stuck | None:
        """End the child, at once; what is left if not even SIGKILL ended it."""
        if not self.is_open:
            return None
        self.is_open = False
        stuck = self._child.kill(1.0)
        running.discard(self._child.pid)
        self._child.close()
        return stuck


class _Late(Exception):
    pass


class _Talking(Child):
    def send(self, data: bytes, deadline: float) -> None:
        os.set_blocking(self._writing, False)
        left = memoryview(data)
        while left:
            self._wait(self._writing, select.POLLOUT, deadline)
            try:
                left = left[os.write(self._writing, left[:_CHUNK]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._ended_early() from None

    def take(self, size: int, deadline: float) -> bytes:
        out, _ = self._reading
        data = BytesIO()
        while (missing := size - data.tell()) > 0:
            self._wait(out, select.POLLIN, deadline)
            part = os.read(out, min(missing, _CHUNK))
            if not part:
                raise self._ended_early()
            data.write(part)
        return data.getvalue()

    def _wait(self, fd: int, event: int, deadline: float) -> None:
        """Until the descriptor is ready; a child that complains without end must not be held up."""
        _, err = self._reading
        poll = select.poll()
        poll.register(fd, event)
        poll.register(err, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0:
            ready = dict(poll.poll(left * 1000 + 1))
            if err in ready:
                complaint = os.read(err, _CHUNK)
                if not complaint:
                    poll.unregister(err)
                if self._err.tell() < _MAX_COMPLAINT:
                    self._err.write(complaint)
            if fd in ready:
                return
        raise _Late

    def _ended_early(self) -> CannotTell:
        _, err = self._reading
        poll = select.poll()
        poll.register(err, select.POLLIN)
        while poll.poll(100) and (part := os.read(err, _CHUNK)):
            self._err.write(part)
        last = os.fsdecode(self.err).strip().rpartition("\n")[2]
        return CannotTell(f"{self.name} ended: {visible(shortened(last, 200)) or 'without a word'}")
