"""A wall clock that a test sets, for one process and its children: a library loaded before libc."""

import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")


def why_no_clock() -> str | None:
    """None where it can be compiled, else one line that says what is missing."""
    return None if shutil.which("cc") else "a false clock needs Debian's gcc libc6-dev"


class FalseClock:
    """Time runs on as it does; `set` moves the wall clock, and no other, by so many seconds."""

    def __init__(self, folder: Path) -> None:
        self._file, self._library = folder / "offset", folder / "clock.so"
        build = ["cc", "-O1", "-shared", "-fPIC", "-o", str(self._library), str(SOURCE)]
        subprocess.run(build, check=True)
        self.set(0)

    def set(self, seconds: int) -> None:
        """Against the true time, not against the last setting."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.rename(self._file)

    @property
    def env(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "FALSE_CLOCK": str(self._file)}
