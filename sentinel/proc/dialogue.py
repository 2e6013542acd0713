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
from sentinel.proc.child import ChildProcess
from sentinel.proc.errors import SlowStart, TimedOut, TooMuchOutput
from sentinel.proc.stuck import StuckProcess, reap_abandoned

_DIALOGUE_CHUNK_BYTES = 1 << 16
_MAX_COMPLAINT = 1 << 16


class Dialogue:
    """A child and the pipes to it. After any error the child has ended, and the next request needs
    a new one."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        reap_abandoned()
        with running.start_command():
            self._child = _PipePair(argv, env, b"", None, 0)
            running.add_group(self._child.pid, self._child.name)
        self._closed = False

    @property
    def is_open(self) -> bool:
        """Whether the child still waits for a request."""
        return not self._closed and self._child.is_running

    def await_greeting(self, limit: float) -> None:
        """Wait until the child has sent one byte, which says that it is ready; starting takes long
        on a busy machine. Raises SlowStart after `limit` seconds, and CannotTell if the child
        ends."""
        try:
            self._child.take_bytes(1, time.monotonic() + limit)
        except _DeadlinePassed:
            why = f"its reader did not start within {duration_text(limit)}"
            raise SlowStart(why, self.end_child()) from None
        except BaseException:
            self.end_child()
            raise

    def ask_request(self, request: bytes, lengths: Callable[[bytes], tuple[int, int]], head: int,
            limit: float, max_output: int) -> tuple[bytes, bytes]:  # fmt: skip
        """Send a request and return the two parts of the answer, whose lengths `lengths` reads from
        its first `head` bytes.

        Raises TimedOut after `limit` seconds, TooMuchOutput, and CannotTell if the child ends."""
        deadline = time.monotonic() + limit
        try:
            self._child.send_bytes(request, deadline)
            first, second = lengths(self._child.take_bytes(head, deadline))
            if first + second > max_output:
                raise TooMuchOutput(f"more than {size_text(max_output)} came back")
            return self._child.take_bytes(first, deadline), self._child.take_bytes(second, deadline)
        except _DeadlinePassed:
            raise TimedOut(f"no answer within {duration_text(limit)}", self.end_child()) from None
        except BaseException:
            self.end_child()
            raise

    def end_child(self) -> StuckProcess | None:
        """Kill the child. Returns the process if not even SIGKILL ended it."""
        if self._closed:
            return None
        self._closed = True
        stuck = self._child.kill_group(1.0)
        running.discard_group(self._child.pid)
        self._child.close_pipes()
        return stuck


class _DeadlinePassed(Exception):
    pass


class _PipePair(ChildProcess):
    def send_bytes(self, data: bytes, deadline: float) -> None:
        os.set_blocking(self._writing, False)
        left = memoryview(data)
        while left:
            self._wait_until_ready(self._writing, select.POLLOUT, deadline)
            try:
                left = left[os.write(self._writing, left[:_DIALOGUE_CHUNK_BYTES]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._early_end_error() from None

    def take_bytes(self, size: int, deadline: float) -> bytes:
        out, _ = self._reading
        data = BytesIO()
        while (missing := size - data.tell()) > 0:
            self._wait_until_ready(out, select.POLLIN, deadline)
            part = os.read(out, min(missing, _DIALOGUE_CHUNK_BYTES))
            if not part:
                raise self._early_end_error()
            data.write(part)
        return data.getvalue()

    def _wait_until_ready(self, fd: int, event: int, deadline: float) -> None:
        """Until the descriptor is ready; a child that complains without end must not be held up."""
        _, err = self._reading
        poll = select.poll()
        poll.register(fd, event)
        poll.register(err, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0:
            ready = dict(poll.poll(left * 1000 + 1))
            if err in ready:
                complaint = os.read(err, _DIALOGUE_CHUNK_BYTES)
                if not complaint:
                    poll.unregister(err)
                if self._err.tell() < _MAX_COMPLAINT:
                    self._err.write(complaint)
            if fd in ready:
                return
        raise _DeadlinePassed

    def _early_end_error(self) -> CannotTell:
        _, err = self._reading
        poll = select.poll()
        poll.register(err, select.POLLIN)
        while poll.poll(100) and (part := os.read(err, _DIALOGUE_CHUNK_BYTES)):
            self._err.write(part)
        last = os.fsdecode(self.stderr_bytes).strip().rpartition("\n")[2]
        return CannotTell(f"{self.name} ended: {visible(shortened(last, 200)) or 'without a word'}")
