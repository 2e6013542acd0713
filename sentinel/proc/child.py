"""A running command and its pipes."""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO

from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text, size_text
from sentinel.proc.errors import CommandNotFound, TooMuchOutput
from sentinel.proc.own_package import require_own_helper
from sentinel.proc.stuck import StuckProcess, abandon_child

KILL_GRACE_S = 1.0  # seconds to wait for a killed process group before it is abandoned
_POLITE = 0.3  # seconds between SIGTERM and SIGKILL, so that srun and ssh can notify the other side
_CHUNK_BYTES = 1 << 16
_ENV = "/usr/bin/env"
_DEFAULTS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ChildProcess:
    """A running command with the pipes to its standard input, output and error."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        stdin: bytes,
        cwd: str | None,
        max_output: int,
        hear: Callable[[bytes], None] | None = None,
    ) -> None:
        self.name = visible(shortened(argv[0], 200))
        # BytesIO.getvalue() does not copy its buffer, so an answer of 200 MB is in memory only
        # once.
        self._out, self._err = BytesIO(), BytesIO()
        self._max_output, self._hear = max_output, hear
        self._stdin = memoryview(stdin)
        self._reaped = False
        self._reading: dict[int, BytesIO] = {}
        self._writing = -1
        self.pid = self._start_child(argv, env, cwd)

    def _start_child(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> int:
        theirs: list[int] = []
        try:
            for stream in (self._out, self._err):
                ours, their = _make_pipe()
                self._reading[ours] = stream
                theirs.append(their)
            their, self._writing = _make_pipe()
            theirs.append(their)
            return _spawn_process(_prepare_argv(argv, cwd), env, *theirs)
        except ValueError as error:
            self.close_pipes()
            raise CommandNotFound(f"cannot start {self.name}: {visible(str(error))}") from error
        except OSError as error:  # too many files or processes
            self.close_pipes()
            why = os.strerror(error.errno or errno.EIO)
            raise CannotAsk(f"cannot start {self.name}: {why}") from error
        finally:
            for fd in theirs:
                os.close(fd)

    @property
    def is_running(self) -> bool:
        """Whether the command has not ended yet."""
        return not self._has_ended()

    def exchange_until(self, deadline: float) -> None:
        """Write the input and read the output, until all pipes are closed or the deadline has
        passed."""
        poll = select.poll()
        for fd in self._reading:
            poll.register(fd, select.POLLIN)
        if self._stdin:
            os.set_blocking(self._writing, False)
            poll.register(self._writing, select.POLLOUT)
        else:
            self._stop_writing(poll)
        while self._reading and (left := deadline - time.monotonic()) > 0:
            for fd, _ in poll.poll(left * 1000 + 1):
                self._write_input(poll) if fd == self._writing else self._read_output(poll, fd)

    def _write_input(self, poll: select.poll) -> None:
        try:
            self._stdin = self._stdin[os.write(self._writing, self._stdin[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._stdin = self._stdin[:0]
        if not self._stdin:
            self._stop_writing(poll)

    def _stop_writing(self, poll: select.poll) -> None:
        with suppress(KeyError):
            poll.unregister(self._writing)
        os.close(self._writing)
        self._writing = -1

    def _read_output(self, poll: select.poll, fd: int) -> None:
        data = os.read(fd, _CHUNK_BYTES)
        if not data:
            poll.unregister(fd)
            os.close(fd)
            del self._reading[fd]
        elif self._out.tell() + self._err.tell() + len(data) > self._max_output:
            size = size_text(self._max_output)
            raise TooMuchOutput(f"{self.name} printed more than {size}; it was ended")
        else:
            self._reading[fd].write(data)
            if self._hear is not None and self._reading[fd] is self._err:
                self._hear(data)

    @property
    def stdout_bytes(self) -> bytes:
        """The output so far; the same object until there is more."""
        return self._out.getvalue()

    @property
    def stderr_bytes(self) -> bytes:
        """The standard error so far; the same object until there is more."""
        return self._err.getvalue()

    def wait_for_end(self, deadline: float) -> int | None:
        """The wait status, once the command is gone and its output is read; None at the
        deadline."""
        pause = 0.0005
        while not self._reading:
            pid, status = _reap_child(self.pid)
            if pid:
                self._reaped = True
                return status
            if time.monotonic() >= deadline:
                return None
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
        return None

    def give_up(self, limit: float) -> tuple[str, StuckProcess | None]:
        """End the command after its limit. Returns the reason in words, and the process if not even
        SIGKILL ended it."""
        within, left_behind = duration_text(limit), self._has_ended()
        stuck = self.kill_group(limit)
        if not left_behind:
            return f"{self.name} did not finish within {within}; it was ended", stuck
        fate = "was ended too" if self._hung_up() else "runs on, in a session of its own"
        why = f"a process it left behind kept its output open for {within}; it {fate}"
        return f"{self.name} ended, but {why}", stuck

    def _hung_up(self) -> bool:
        """Whether no process holds the output any more; a killed process needs a moment to release
        it."""
        for fd in self._reading:
            poll = select.poll()
            poll.register(fd, 0)  # poll(2) reports a hang-up without being asked
            if not poll.poll(_POLITE * 1000):
                return False
        return True

    def kill_group(self, limit: float) -> StuckProcess | None:
        """Kill the whole process group. Returns the child, abandoned, if not even SIGKILL ended it
        within KILL_GRACE_S."""
        if self._reaped:
            return None
        grace = min(KILL_GRACE_S, max(0.1, limit))
        self._signal_group(signal.SIGTERM, grace * _POLITE)
        self._signal_group(signal.SIGKILL, grace * (1 - _POLITE))
        if self._has_ended():
            with suppress(CannotTell):
                _reap_child(self.pid)
            return None
        return abandon_child(self.pid)

    def _signal_group(self, number: int, patience: float) -> None:
        # The leader is reaped only after its group was killed, because its pid is the id of the
        # group.
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        deadline = time.monotonic() + patience
        while not self._has_ended() and time.monotonic() < deadline:
            time.sleep(0.005)

    def _has_ended(self) -> bool:
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def close_pipes(self) -> None:
        """Close this process's ends of the pipes, even if others still hold the other ends."""
        for fd in (*self._reading, self._writing):
            if fd >= 0:
                os.close(fd)
        self._reading, self._writing = {}, -1


def _make_pipe() -> tuple[int, int]:
    """A pipe whose ends are above 2: sentinel may itself run without standard streams, and up
    to glibc 2.28 (RHEL 8) a descriptor that is duplicated onto itself is closed in the child.
    """
    low: list[int] = []
    try:
        while True:
            ends = os.pipe()
            if min(ends) > 2:
                return ends
            low += ends
    finally:
        for fd in low:
            os.close(fd)


def _prepare_argv(argv: Sequence[str], cwd: str | None) -> list[str]:
    require_own_helper(argv)
    if "=" in argv[0]:
        raise ValueError("its name holds '=', which env(1) takes for a variable")
    return ["env", *(["-C", cwd] if cwd else []), "--", *argv]


def _spawn_process(
    command: list[str], env: Mapping[str, str], out: int, err: int, stdin: int
) -> int:
    """Start `command` by env(1) in a session of its own, with default signal handlers and no
    inherited descriptor but its three standard streams. Returns the process id."""
    return os.posix_spawn(
        _ENV,
        command,
        env,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, out, 1),
            (os.POSIX_SPAWN_DUP2, err, 2),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=_DEFAULTS,
    )


def _reap_child(pid: int) -> tuple[int, int]:
    try:
        return os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        raise CannotTell(
            "the exit status of a command was lost: SIGCHLD is ignored or another "
            "part of this process waits for all children"
        ) from None
