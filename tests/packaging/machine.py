"""A clean Debian that boots: systemd is its first process, packages are installed into it."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.lab.tied import tied
from tests.lab.waiting import wait_until

BOOT = Path(__file__).parent / "boot.sh"
Done = subprocess.CompletedProcess[str]


class Machine:
    """Running inside `with`. What it writes is gone after that."""

    def __init__(
        self, system: Path, folder: Path, packages: Path, lent: Mapping[str, str] | None = None
    ) -> None:
        mounted = folder / "mounted"
        mounted.mkdir(parents=True)
        argv = ["unshare", "--pid", "--fork", "--kill-child", "--mount"]
        argv += ["--uts", "--ipc", "--cgroup", "--net", "sh", str(BOOT)]
        argv += [str(system), str(mounted), str(packages)]
        self._argv = argv + [word for pair in (lent or {}).items() for word in pair]
        self._log_path = folder / "log"

    def __enter__(self) -> "Machine":
        self._log = self._log_path.open("wb")
        self._process = subprocess.Popen(
            tied(self._argv), stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        try:
            wait_until(self._is_up, lambda: self._log_path.read_text()[-3000:], 60)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait(10)
        self._log.close()

    def run(self, *argv: str) -> Done:
        """A command inside."""
        init = self.find_init()
        enter = ["nsenter", "-t", str(init), "-a", "--", "/usr/bin/env", "-i"]
        enter += [
            "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL=C.UTF-8",
            "HOME=/root",
            *argv,
        ]
        return subprocess.run(
            enter, capture_output=True, text=True, timeout=300, check=False, cwd="/"
        )

    def say(self, script: str) -> str:
        """What a script of sh prints; AssertionError with its complaint where it fails."""
        done = self.run("sh", "-ec", script)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    def find_init(self) -> int:
        """The process here that is its first one."""
        pid = self._process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def _is_up(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(self._log_path.read_text()[-3000:])
        try:
            done = self.run("systemctl", "is-active", "basic.target")
        except (FileNotFoundError, IndexError, ProcessLookupError):
            return False
        return done.stdout.strip() == "active"
