"""Several users of one machine, each of whom types `sentinel`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT, ALICE, BOB = 0, 1, 2
"""Users of every Debian system, by what they are here: daemon and bin have groups of their own."""
NAMES = {ROOT: "root", ALICE: "daemon", BOB: "bin"}

_INSIDE = 'mount --bind "$1" /etc && user=$2 && shift 2 && exec setpriv --reuid="$user" --regid="$user" --clear-groups "$@"'  # fmt: skip
_NEEDED = ("passwd", "group", "nsswitch.conf", "ld.so.cache", "localtime")


class Host:
    """`etc` is its /etc, seen by nobody else; `homes` holds a directory for each user."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.folder, self.etc, self.homes = folder, folder / "etc", folder / "home"
        self.etc.mkdir()
        for name in _NEEDED:
            if (real := Path("/etc") / name).exists():
                shutil.copy(real, self.etc / name)
        for uid in (ROOT, ALICE, BOB):
            self.give(self.home(uid), uid, 0o700)

    def home(self, uid: int) -> Path:
        return self.homes / NAMES[uid]

    def give(self, path: Path, uid: int, mode: int = 0o755) -> Path:
        """Make the directory, and that user's."""
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
        os.chown(path, uid, uid)
        return path

    def write(self, path: Path, text: str, uid: int, mode: int = 0o644) -> Path:
        """A file of that user's, in directories that are as well."""
        for folder in reversed(path.parents):
            if not folder.exists():
                self.give(folder, uid)
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, uid, uid)
        return path

    def run(
        self, uid: int, *words: object, cwd: Path | None = None, **env: object
    ) -> "subprocess.CompletedProcess[str]":
        """`sentinel WORDS...` as that user types it, by default at home."""
        home = self.home(uid)
        usual = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "SENTINEL_"))}
        own = {"HOME": str(home), "COLUMNS": "1000", **{k: str(v) for k, v in env.items()}}
        said = [sys.executable, "-P", "-m", "sentinel", *map(str, words)]
        if sys.version_info < (3, 11):
            said.remove("-P")
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", _INSIDE, "sh", str(self.etc), str(uid), *said],
            cwd=cwd or home, env={**usual, **own}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
