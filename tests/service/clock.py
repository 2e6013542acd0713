"""A wall clock that a test sets, for one process and its children: libfaketime."""

from pathlib import Path

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
"""Debian's package libfaketime; None where it is not installed."""


class FalseClock:
    """Time runs on as it does; `set` moves the wall clock, and no other, by so many seconds."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "offset"
        self.set(0)

    def set(self, seconds: int) -> None:
        """Against the true time, not against the last setting."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.rename(self._file)

    @property
    def env(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
