"""The heartbeat: a GET for services like healthchecks.io, and a file for a peer to watch."""

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Iterable, Sequence

import msgspec

from sentinel import proc
from sentinel.channels.http import submit_request
from sentinel.channels.http_request import HttpRequest, url_origin
from sentinel.channels.post import url_below
from sentinel.channels.redact import quote_redacted
from sentinel.config.settings import HeartbeatSettings
from sentinel.core.errors import CannotTell, ChannelError
from sentinel.core.ports import Pulse
from sentinel.core.settings import ExpectedAnswer
from sentinel.core.text import visible

HEALTHCHECKS_TAKEN = ExpectedAnswer(body=re.compile(r"\A(?:OK|Created)\Z"))
"""https://healthchecks.io/docs/http_api/: `OK (…)` was not taken. An address with `?create=1` makes the
check at the first ping, and answers 201 with `Created` (ping_by_slug() in hc/api/views.py)."""


def make_pulse(settings: HeartbeatSettings) -> Pulse | None:
    """All configured heartbeats. None if this sentinel only watches its peer."""
    ways: list[Pulse] = [WebPulse(settings)] if settings.url else []
    ways += [FilePulse(settings.file, float(settings.timeout))] if settings.file else []
    return Pulses(ways) if ways else None


class Pulses:
    """Several heartbeats at once. If one fails, the others are still sent."""

    def __init__(self, ways: Sequence[Pulse]) -> None:
        self._ways = ways

    async def announce_start(self) -> None:
        """Announce the start on all. Raises the first error, after all were tried."""
        await _await_all(way.announce_start() for way in self._ways)

    async def send_heartbeat(self, well: bool, text: str) -> None:
        """Send the heartbeat on all. Raises the first error, after all were tried."""
        await _await_all(way.send_heartbeat(well, text) for way in self._ways)


class WebPulse:
    """Sends a GET to the address while all is well.

    With `style: healthchecks`, it calls /start when a pass begins, and /fail for problems:
    https://healthchecks.io/docs/signaling_failures/ and
    https://healthchecks.io/docs/measuring_script_run_time/. Other services take any request below
    their address for a sign of life. So without this style, nothing is sent if there is a problem.
    """

    def __init__(self, settings: HeartbeatSettings) -> None:
        self._url = settings.url.reveal() if settings.url else ""
        self._plain, self._timeout = settings.style == "plain", float(settings.timeout)
        self._forms = settings.expect or ([] if self._plain else [HEALTHCHECKS_TAKEN])

    async def announce_start(self) -> None:
        """Announce the start. Raises ChannelError if the service does not accept it."""
        if not self._plain:
            await self._send_ping(url_below(self._url, "start"), "GET", "")

    async def send_heartbeat(self, well: bool, text: str) -> None:
        """Send the heartbeat. Raises ChannelError if the service does not accept it."""
        if well:
            await self._send_ping(self._url, "GET", text)
        elif not self._plain:
            await self._send_ping(url_below(self._url, "fail"), "POST", text)

    async def _send_ping(self, url: str, method: str, text: str) -> None:
        request = HttpRequest(
            url=url,
            method=method,
            headers={"User-Agent": "sentinel"},
            body=text.encode("utf-8", "replace")[:10_000],
            timeout=self._timeout,
        )
        if doubt := (await submit_request(request, self._forms, pages=True)).doubt:
            raise ChannelError(f"{url_origin(url)}: {doubt}", reason="server")


class FilePulse:
    """Writes the file while all is well, atomically. Child processes write it, because the storage
    may hang; a hanging child is left behind."""

    def __init__(self, path: str, limit: float) -> None:
        self._path, self._limit = path, limit
        self._hanging = proc.HangingChildren()

    async def announce_start(self) -> None:
        """Does nothing, because the peer only waits for changes of the file."""

    async def send_heartbeat(self, well: bool, text: str) -> None:
        """Write the file. Raises ChannelError if it cannot be written."""
        if well:
            await asyncio.to_thread(self._write_file)

    def _write_file(self) -> None:
        draft = f"{self._path}.new-{os.uname().nodename}"
        # A new file: where others may write too, a link of theirs could lead to any other file.
        self._run_tool(["rm", "-f", "--", draft])
        self._run_tool(["dd", f"of={draft}", "conv=excl,fsync", "status=none"], self._unique_sign())
        self._run_tool(["mv", "-fT", "--", draft, self._path])

    def _unique_sign(self) -> bytes:
        """A content that never repeats, even if clocks or process ids do."""
        sign = {
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "mark": os.urandom(8).hex(),
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        return msgspec.json.encode(sign) + b"\n"

    def _run_tool(self, argv: list[str], stdin: bytes = b"") -> None:
        try:
            with self._hanging.start_alone(self._path):
                done = proc.run(argv, limit=self._limit, stdin=stdin, max_output=1 << 16)
        except proc.StillHanging as error:
            raise self._file_error(f"its file system {error}") from None
        except proc.TimedOut:
            raise self._file_error("cannot be written: its file system hangs") from None
        except CannotTell as error:
            raise self._file_error(str(error)) from None
        if done.code:
            raise self._file_error(quote_redacted(done.err) or f"{argv[0]} ended with {done.code}")

    def _file_error(self, why: str) -> ChannelError:
        return ChannelError(f"{visible(self._path)}: {why}", reason="server")


async def _await_all(works: Iterable[Awaitable[None]]) -> None:
    results = await asyncio.gather(*works, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
