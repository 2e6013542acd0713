"""A real systemd as the init of namespaces of its own, with sentinel's units installed."""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.lab.needs import why_no_root
from tests.lab.tied import tied
from tests.lab.waiting import wait_until

ROOT = Path(__file__).parent.parent.parent
Done = subprocess.CompletedProcess[str]


def why_no_systemd() -> str | None:
    """None where it can be started, else what is missing."""
    if reason := why_no_root():
        return reason
    return None if Path("/lib/systemd/systemd").exists() else "systemd is not installed"


class Systemd:
    """Running inside `with`; `ctl` is systemctl there. `files` go to /etc of that machine."""

    def __init__(self, folder: Path, files: Mapping[str, str]) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        for name in ("sentinel.service", "sentinel-tick.service", "sentinel-tick.timer"):
            self._put(f"systemd/system/{name}", (ROOT / "systemd" / name).read_text())
        self._put("sentinel/sysusers.conf", (ROOT / "systemd/sentinel.sysusers").read_text())
        hidden = [path for path in _homes() if path.startswith(("/tmp/", "/var/tmp/"))]
        for unit in ("sentinel.service", "sentinel-tick.service") if hidden else ():
            # PrivateTmp=, behind which a checkout below /tmp would not be seen.
            places = f"[Service]\nBindReadOnlyPaths={' '.join(hidden)}\n"
            self._put(f"systemd/system/{unit}.d/places.conf", places)
        for name, text in files.items():
            self._put(name, text)
        (folder / "bin").mkdir()
        wrapper = folder / "bin/sentinel"
        wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m sentinel "$@"\n')
        if sys.version_info < (3, 11):
            wrapper.write_text(wrapper.read_text().replace(" -P", ""))
        wrapper.chmod(0o755)

    def __enter__(self) -> "Systemd":
        argv = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc"]
        argv += ["--uts", "--ipc", "--cgroup", "--net", "sh", str(ROOT / "tests/lab/init.sh")]
        argv += [str(self._folder), *_homes()]
        self._log = (self._folder / "log").open("wb")
        self._process = subprocess.Popen(
            tied(argv), stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        try:
            wait_until(self._up, lambda: (self._folder / "log").read_text()[-3000:], 30)
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
        enter = ["nsenter", "-t", str(self._init()), "-a", "--", *argv]
        return subprocess.run(
            enter, capture_output=True, text=True, timeout=60, check=False, cwd="/"
        )

    def ctl(self, *words: str) -> str:
        """What systemctl prints; AssertionError with its complaint where it fails."""
        done = self.run("systemctl", *words)
        assert done.returncode == 0, (
            done.stderr
            + self.run("systemctl", "status", "--no-pager", "-l", "sentinel.service").stdout
            + self.run("sh", "-c", "journalctl --no-pager -n 30 2>&1").stdout
        )
        return done.stdout

    def show(self, *names: str) -> dict[str, str]:
        """Properties of the service."""
        out = self.ctl("show", "sentinel.service", *(f"--property={name}" for name in names))
        return dict(line.split("=", 1) for line in out.splitlines())

    def wait_show(self, name: str, value: str, limit: float = 20.0) -> None:
        """Until this is in a property of the service."""
        wait_until(
            lambda: value in self.show(name)[name],
            lambda: f"{name}={value}: {self.show(name, 'StatusText', 'Result')}",
            limit,
        )

    def signal(self, name: str) -> None:
        """To the main process of the service."""
        pid = self.show("MainPID")["MainPID"]
        self.run("kill", f"-{name}", pid)

    def put(self, path: str, text: str) -> None:
        """A file inside, readable for all."""
        done = subprocess.run(
            ["nsenter", "-t", str(self._init()), "-a", "--", "sh", "-c", 'cat >"$1"', "sh", path],
            input=text, text=True, capture_output=True, timeout=20, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def _put(self, name: str, text: str) -> None:
        path = self._folder / "etc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _init(self) -> int:
        """The pid, out here, of the systemd in there."""
        found = Path(f"/proc/{self._unshared()}/task/{self._unshared()}/children").read_text()
        return int(found.split()[0])

    def _unshared(self) -> int:
        """setpriv becomes unshare: the process itself."""
        return self._process.pid

    def _up(self) -> bool:
        try:
            done = self.run("systemctl", "is-active", "basic.target")
        except (FileNotFoundError, IndexError, ProcessLookupError):
            return False
        if self._process.poll() is not None:
            raise RuntimeError((self._folder / "log").read_text()[-3000:])
        time.sleep(0.1)
        return done.stdout.strip() == "active"


def _homes() -> list[str]:
    """What the service's user has to read: this Python, its environment, and the sources."""
    wanted = {str(Path(sys.base_prefix).resolve()), sys.prefix, str(ROOT)}
    return sorted(path for path in wanted if not path.startswith("/usr"))
