"""Small programs in the place of Slurm's commands, for what a real cluster does not do on demand.

Each is a real process, started and read like the real one; `told` says what was asked.
"""

import os
import stat
from pathlib import Path

# sacct's list of fields is its own, whatever else it is to say.
# `@` in what a stand-in prints becomes the nonce of the call: the end of the format, which squeue gets
# in a variable.
SCRIPT = """\
#!/bin/sh
echo "$0 $*" >> {log}
[ "$1" = --helpformat ] && echo NNodes AllocTRES && exit
case "$0 $1" in *"/sacct --version") echo "slurm {release}"; exit;; esac
set -- "$@" "$SQUEUE_FORMAT$SQUEUE_FORMAT2"
for word; do case $word in *%o*) mark=${{word##*%o}};; *STDOUT:*) mark=${{word##*STDOUT:}};; \
--delimiter=*) mark=${{word#--delimiter=}}.;; esac; done
sed "s|@|${{mark%.}}|g" {out}
cat {err} >&2
exit {code}
"""


class StandIns:
    """A folder that is the PATH of the client under test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "log"
        self._log.touch()
        self.env = {"PATH": f"{folder}:{os.environ['PATH']}"}

    def says(
        self, name: str, out: bytes | str = b"", *, err: str = "", code: int = 0, release: str = ""
    ) -> None:
        """From now on the command prints this and exits so; `release` is that of sacct."""
        files = {"out": self._folder / f"{name}.out", "err": self._folder / f"{name}.err"}
        files["out"].write_bytes(out.encode() if isinstance(out, str) else out)
        files["err"].write_text(err)
        self.script(name, SCRIPT.format(log=self._log, code=code, release=release, **files))

    def path(self, name: str) -> Path:
        """Where the program of that name is."""
        return self._folder / name

    def script(self, name: str, text: str) -> Path:
        """A program of that name; returns where it is."""
        path = self._folder / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        return path

    def told(self, name: str) -> list[str]:
        """The arguments of each call of that command so far."""
        start = f"{self._folder / name} "
        return [
            line.removeprefix(start)
            for line in self._log.read_text().splitlines()
            if line.startswith(start)
        ]
