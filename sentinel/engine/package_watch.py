"""Decides whether the package of a running service was replaced on the disk, and whether the
service has to restart.

A change counts when the files have not changed for a while and are those in the package's list.
Then the new version has to prove itself. Only after that the service ends, so that its supervisor
starts it again.
"""

from collections.abc import Callable

from msgspec import Struct

from sentinel.proc.installation import Signature

QUIET_S = 60.0
"""Seconds without a change after which an installation counts as done."""

TELL_AFTER_S = 300.0
"""Seconds after the first change in which people get no alert: they may be about to restart the
service."""

REPEAT_S = 3600.0
"""Seconds between two attempts to use a version that was refused, and between two lines of the log
about it."""


class PackageVerdict(Struct, frozen=True):
    """The verdict about the installed files.

    `restart`: a new version is installed and was proven. `trouble`: why this process keeps its
    version although another is installed. It is empty if nothing has changed, and within
    TELL_AFTER_S. `news`: the same for the log, once when it is found and then again in each
    REPEAT_S.
    """

    restart: bool = False
    trouble: str = ""
    news: str = ""


class PackageWatch:
    """Watches the installed files. It is pure except for its arguments.

    `read` returns the files now. None if there is no package (a mount that blinks, a removal).
    `prove` returns why the new version must not be used, empty if it may be.
    """

    def __init__(
        self,
        begun: Signature,
        read: Callable[[], Signature | None],
        prove: Callable[[], str],
        monotonic: Callable[[], float],
    ) -> None:
        self._begun, self._read, self._prove, self._monotonic = begun, read, prove, monotonic
        self._last: Signature | None = begun
        self._still_since = monotonic()
        self._changed_at: float | None = None
        self._judged_at: float | None = None
        self._trouble = ""

    def look(self) -> PackageVerdict:
        """Check once. This includes the proof, which may take time."""
        now, files = self._monotonic(), self._read()
        if files == self._begun:
            self._last, self._trouble = files, ""
            self._changed_at = self._judged_at = None
            return PackageVerdict()
        if self._changed_at is None:
            self._changed_at = now
        if files != self._last:
            self._last, self._still_since, self._judged_at = files, now, None
        news = ""
        if now - self._still_since >= QUIET_S and (
            self._judged_at is None or now - self._judged_at >= REPEAT_S
        ):
            self._judged_at = now
            self._trouble = news = "its package is gone" if files is None else self._prove()
            if not news:
                return PackageVerdict(restart=True)
        is_time = now - self._changed_at >= TELL_AFTER_S
        return PackageVerdict(trouble=self._trouble if is_time else "", news=news)
