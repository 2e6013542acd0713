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

REPEAT_S = 3600.0
"""Seconds between two attempts to use a version that was refused, and between two lines of the log
about it."""


class PackageVerdict(Struct, frozen=True):
    """The verdict about the installed files.

    `restart`: a new version is installed and was proven. `trouble`: why this process keeps its
    version although another is installed. It is empty if nothing has changed, or if the
    installation may still be running. `news`: it has to be reported now.
    """

    restart: bool = False
    trouble: str = ""
    news: bool = False


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
        self._judged_at: float | None = None
        self._trouble = ""

    def look(self) -> PackageVerdict:
        """Check once. This includes the proof, which may take time."""
        now, files = self._monotonic(), self._read()
        if files == self._begun:
            self._last, self._trouble, self._judged_at = files, "", None
            return PackageVerdict()
        if files != self._last:
            self._last, self._still_since, self._judged_at = files, now, None
        if now - self._still_since < QUIET_S:
            return PackageVerdict(trouble=self._trouble)
        if self._judged_at is not None and now - self._judged_at < REPEAT_S:
            return PackageVerdict(trouble=self._trouble)
        self._judged_at = now
        self._trouble = "its package is gone" if files is None else self._prove()
        return PackageVerdict(not self._trouble, self._trouble, bool(self._trouble))
