"""A throw-away Prometheus Alertmanager on the loopback; Debian's package, nothing of the system's."""

import json
import shutil
import socket
import subprocess
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.lab.tied import tied
from tests.lab.waiting import wait_until

NAMES = ("prometheus-alertmanager", "alertmanager")
CONFIG = """
route: {{receiver: hook, group_by: ['...'], group_wait: 0s, group_interval: 1s}}
receivers: [{{name: hook, webhook_configs: [{{url: '{hook}', send_resolved: true}}]}}]
"""


def program() -> str | None:
    """Where it is: Debian's name first, then that of upstream's release."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def why_no_alertmanager() -> str | None:
    """None where one can be started, else one line that says what is missing."""
    return None if program() else "needs Debian's prometheus-alertmanager"


class Alertmanager:
    """Running inside `with`; it tells `hook` of what it would tell people."""

    def __init__(self, hook: str) -> None:
        self._hook = hook
        self.url = f"http://127.0.0.1:{_free_port()}"

    def alerts(self) -> list[dict[str, Any]]:
        """What it holds as firing."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def __enter__(self) -> "Alertmanager":
        self._folder = Path(tempfile.mkdtemp(prefix="sentinel-alertmanager-"))
        (self._folder / "config.yml").write_text(CONFIG.format(hook=self._hook))
        argv = [
            str(program()),
            f"--config.file={self._folder}/config.yml",
            f"--storage.path={self._folder}/data",
            f"--web.listen-address={urllib.parse.urlsplit(self.url).netloc}",
            "--cluster.listen-address=",
        ]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                tied(argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/"
            )
        wait_until(self._ready, lambda: (self._folder / "log").read_text(), 30.0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait(20)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
