"""Appends alerts to a file, one JSON object per line."""

from collections.abc import Sequence
from typing import ClassVar

from sentinel import proc
from sentinel.channels.aside import run_in_thread
from sentinel.channels.record import json_record
from sentinel.channels.redact import quote_redacted
from sentinel.channels.settings import check_timeout
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import FilePath
from sentinel.core.text import visible
from sentinel.core.values import Duration
from sentinel.plugin import Channel
from sentinel.proc.appending import NEVER, append_line


class FileChannel(Channel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One JSON object a line appended to a file; opened anew each time, so it may be rotated.

    Lines that wait are one write, up to 100 of them. A file system that hangs costs `timeout` once,
    not the service.
    """

    groups: ClassVar[bool] = False
    messages_at_once: ClassVar[int] = 100
    reaches: ClassVar[bool] = False

    path: FilePath
    timeout: Duration = Duration(10)

    def __post_init__(self) -> None:
        if not self.path or "\0" in self.path:
            raise Invalid("name a file, e.g. /var/log/sentinel/alerts.jsonl", "path")
        check_timeout(self.timeout)

    def trusted_paths(self) -> list[str]:
        """The file: alerts are appended to it, and a reader takes them for sentinel's."""
        return [self.path]

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Append one line per alert, all lines in one child process."""
        lines = b"\n".join(map(json_record, notifications))
        await run_in_thread(self._append_lines, lines)
        return Receipt(f"appended to {visible(self.path)}")

    def _append_lines(self, lines: bytes) -> None:
        try:
            done = append_line(self.path, lines, limit=self.timeout)
        except proc.TimedOut as error:
            raise self._write_error(str(error), reason="timeout") from None
        except (proc.CommandNotFound, proc.TooMuchOutput) as error:
            raise self._write_error(str(error)) from None
        if done.code:
            said = quote_redacted(done.err) or f"the writing process ended with {done.code}"
            raise self._write_error(said, permanent=done.code == NEVER)

    def _write_error(
        self, why: str, *, permanent: bool = False, reason: str = "server"
    ) -> ChannelError:
        return ChannelError(f"{visible(self.path)}: {why}", permanent=permanent, reason=reason)
