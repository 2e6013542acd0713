"""A child that answers one request after the other, each within a limit."""

import os
import select
import time
from collections.abc import Sequence
from contextlib import suppress

from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.proc import running
from sentinel.proc.child import ChildProcess
from sentinel.proc.errors import TimedOut, TooMuchOutput

LENGTH_BYTES = 8
"""Bytes of the length with which each request and answer begins, most significant byte first."""
_PIPE_CHUNK_BYTES = 1 << 16
_ERR_BYTES = 4096
_END_S = 1.0


class Conversation:
    """One child, started at once. After an error, and after `close_conversation`, the child is
    gone. Raises what starting a command raises."""

    def __init__(self, argv: Sequence[str], max_output: int) -> None:
        self._max_output = max_output
        with running.start_command():
            self._child = ChildProcess(argv, os.environ, b"", None, max_output)
            running.add_group(self._child.pid, self._child.name)
        self._to, self._from, self._err = self._child.open_pipes()
        os.set_blocking(self._to, False)
        self._said = b""
        self._broken = False

    def ask_child(self, request: bytes, limit: float) -> bytes:
        """Send a request and return the answer.

        Raises TimedOut after `limit` seconds, TooMuchOutput for an answer of more than `max_output`
        bytes, and CannotTell if the child ends meanwhile. The child is ended in each case."""
        try:
            return self._exchange_bytes(request, time.monotonic() + limit)
        except TimeoutError:
            why, stuck = self._child.give_up(limit)
            raise TimedOut(why, stuck) from None
        except EOFError:
            said = visible(os.fsdecode(self._said).strip().rpartition("\n")[2])
            name = self._child.name
            raise CannotTell(f"{name} ended: {shortened(said, 200) or 'it said nothing'}") from None
        finally:
            if self._broken:
                self.close_conversation()

    @property
    def is_alive(self) -> bool:
        """Whether the child still waits for a request."""
        return self._child.is_running

    def close_conversation(self) -> None:
        """End the child, whatever it is doing."""
        with suppress(CannotTell):
            self._child.kill_group(_END_S)
        running.discard_group(self._child.pid)
        self._child.close_pipes()

    def _exchange_bytes(self, request: bytes, deadline: float) -> bytes:
        self._broken = True
        left = memoryview(len(request).to_bytes(LENGTH_BYTES, "big") + request)
        answer, poll = bytearray(), select.poll()
        for fd in (self._from, self._err):
            poll.register(fd, select.POLLIN)
        poll.register(self._to, select.POLLOUT)
        while True:
            if (seconds := deadline - time.monotonic()) <= 0:
                raise TimeoutError
            for fd, _ in poll.poll(seconds * 1000 + 1):
                if fd == self._to:
                    left = self._write_some(left)
                    if not left:
                        poll.unregister(fd)
                elif fd == self._err:
                    self._read_err(poll)
                else:
                    answer += _read_some(fd)
            if (found := self._complete_answer(answer)) is not None:
                self._broken = False
                return found

    def _complete_answer(self, answer: bytearray) -> bytes | None:
        if len(answer) < LENGTH_BYTES:
            return None
        size = int.from_bytes(answer[:LENGTH_BYTES], "big")
        if size > self._max_output:
            raise TooMuchOutput(f"{self._child.name} answered with more than was asked for")
        return bytes(answer[LENGTH_BYTES:]) if len(answer) >= LENGTH_BYTES + size else None

    def _write_some(self, left: memoryview) -> memoryview:
        try:
            return left[os.write(self._to, left[:_PIPE_CHUNK_BYTES]) :]
        except BlockingIOError:
            return left
        except BrokenPipeError:
            raise EOFError from None

    def _read_err(self, poll: select.poll) -> None:
        said = os.read(self._err, _PIPE_CHUNK_BYTES)
        if not said:
            poll.unregister(self._err)
        self._said = (self._said + said)[-_ERR_BYTES:]


def _read_some(fd: int) -> bytes:
    data = os.read(fd, _PIPE_CHUNK_BYTES)
    if not data:
        raise EOFError
    return data
