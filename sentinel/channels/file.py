"""A file that grows by one JSON object a line."""

from collections.abc import Sequence
from typing import ClassVar

from sentinel import proc
from sentinel.channels.record import record
from sentinel.channels.redact import quoted
from sentinel.channels.settings import check_timeout
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import FilePath
from sentinel.core.text import visible
from sentinel.core.values import Duration
from sentinel.plugin import Channel
from sentinel.proc.appending import NEVER, append_line


class File(Channel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One JSON object a line appended to a file; opened anew each time, so it may be rotated.

    Each line is one write. A file system that hangs costs `timeout` once, not the service.
    """

    groups: ClassVar[bool] = False

    path: FilePath
    timeout: Duration = Duration(10)

    def __post_init__(self) -> None:
        if not self.path or "\0" in self.path:
            raise Invalid("name a file, e.g. /var/log/sentinel/alerts.jsonl", "path")
        check_timeout(self.timeout)

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Append a line for each."""
        import asyncio

        for notification in notifications:
            await asyncio.to_thread(self._append, record(notification))
        return Receipt(f"appended to {visible(self.path)}")

    def _append(self, line: bytes) -> None:
        try:
            done = append_line(self.path, line, limit=self.timeout)
        except proc.TimedOut as error:
            raise self._error(str(error), reason="timeout") from None
        except (proc.NotFound, proc.TooMuch) as error:
            raise self._error(str(error)) from None
        if done.code:
            said = quoted(done.err) or f"the writing process ended with {done.code}"
            raise self._error(said, permanent=done.code == NEVER)

    def _error(self, why: str, *, permanent: bool = False, reason: str = "server") -> ChannelError:
        return ChannelError(f"{visible(self.path)}: {why}", permanent=permanent, reason=reason)
