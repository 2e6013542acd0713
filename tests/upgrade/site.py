"""A set-up whose sentinel is replaced by another one while its configuration and state stay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.lab.accounts import User
from tests.lab.paths import ROOT
from tests.lab.tied import tied
from tests.lab.waiting import wait_until

BEFORE = "cc324e5"
"""The commit whose set-ups are upgraded: what came after it refuses and warns of more."""

START = """\
#!{python}
import os, runpy, sys
os.environ["PYTHONPATH"] = {code!r}  # for the children that import sentinel
sys.path.insert(0, {code!r})
runpy.run_module("sentinel", run_name="__main__")
"""
PLUGIN = """\
#!/bin/sh
[ -e "$1" ] && {{ echo "$1 is there"; exit 2; }}
echo fine
"""
PAGER = """\
#!/bin/sh
[ -e {folder}/down ] && exit 75
cat >>{folder}/log/${{0##*/}}
"""
CONFIG = """\
cluster: site
state: {state}
checks:
  a: {{kind: exec, every: 1s, command: [{folder}/bin/plugin, {folder}/flags/a]}}
  b: {{kind: exec, every: 1s, command: [{folder}/bin/plugin, {folder}/flags/b]}}
  c: {{kind: exec, every: 1s, command: [{folder}/bin/plugin, {folder}/flags/c]}}
  d: {{kind: exec, every: 1s, command: [{folder}/bin/plugin, {folder}/flags/d]}}
{checks}
channels:
  book: {{kind: file, path: {folder}/log/book}}
  pager: {{kind: exec, command: [{folder}/bin/pager]}}
{channels}
"""
ALERTS = "abcd"


def export_code(folder: Path, commit: str) -> None:
    """Lay the package as it was at that commit into the folder. Raises CalledProcessError."""
    packed = subprocess.run(
        ["git", "archive", commit, "sentinel"], cwd=ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)


class Site:
    """`folder` holds all of it. `user`: who runs sentinel, else root. `program` is what they type."""

    def __init__(self, folder: Path, before: Path, env: Mapping[str, str]) -> None:
        self.folder = folder
        self.user: User | None = None
        self._env = {**env, "HOME": str(folder), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
        self.file, self.program = folder / "sentinel.yaml", str(folder / "bin/sentinel")
        self.code = folder / "code"
        for name in ("bin", "flags", "log", "state"):
            (folder / name).mkdir()
        code = START.format(python=sys.executable, code=str(self.code))
        for name, text in (
            ("sentinel", code),
            ("plugin", PLUGIN.format()),
            ("pager", PAGER.format(folder=folder)),
        ):
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        self.code.symlink_to(before)
        self._running: subprocess.Popen[str] | None = None
        self.pokes: list[list[str]] = []

    def write(self, *, state: str = "", checks: str = "", channels: str = "") -> None:
        text = CONFIG.format(folder=self.folder, state=state or f"{self.folder}/state",
                             checks=checks, channels=channels)  # fmt: skip
        self.file.write_text(text)
        self.file.chmod(0o600)

    def give_to(self, user: User) -> None:
        """All of it belongs to this user, who runs sentinel from now on."""
        self.user = user
        subprocess.run(["chown", "-Rh", f"{user.name}:", str(self.folder)], check=True)

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`sentinel WORDS -c FILE`, by who runs it."""
        return subprocess.run(
            [self.program, *words, "-c", str(self.file)], env=self._env, cwd=self.folder, text=True,
            capture_output=True, timeout=120, check=False, **self._become(),
        )  # fmt: skip

    def upgrade(self) -> None:
        """Put the present code into the place of the earlier one."""
        self.code.unlink()
        self.code.symlink_to(ROOT)

    def start(self) -> None:
        """Begin to make passes, with a service, unless each wait makes one or a chain does."""
        if not self.pokes:
            with (self.folder / "said").open("ab") as said:
                self._running = subprocess.Popen(
                    tied([self.program, "run", "-c", str(self.file)]), env=self._env, text=True,
                    cwd=self.folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, **self._become(),
                )  # fmt: skip

    def stop(self) -> None:
        if self._running:
            self._running.terminate()
            self._running.wait(30)
            self._running = None

    def set_alert(self, name: str) -> None:
        (self.folder / "flags" / name).touch()

    def end_alert(self, name: str) -> None:
        (self.folder / "flags" / name).unlink()

    def read_messages(self, channel: str = "book") -> list[dict[str, Any]]:
        path = self.folder / "log" / channel
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def count_messages(self, channel: str = "book") -> Counter[tuple[str, str]]:
        """How often each beginning and end of the four alerts was told."""
        rows = [(str(m["check"]), str(m["reason"])) for m in self.read_messages(channel)]
        return Counter(row for row in rows if row[0] in ALERTS)

    def await_message(
        self, check: str, reason: str, channel: str = "book", limit: float = 90.0
    ) -> float:
        """Seconds until it is there."""
        began = time.monotonic()

        def told() -> bool:
            self._poke()
            return bool(self.count_messages(channel)[check, reason])

        wait_until(told, lambda: f"{check} {reason} on {channel}\n{self.describe()}", limit)
        return time.monotonic() - began

    def await_words(self, check: str, words: str) -> None:
        """Until a message about the check or channel says that, within a minute."""

        def told() -> bool:
            self._poke()
            rows = [f"{m['check']} {m['subject']} {m['summary']}" for m in self.read_messages()]
            return any(check in row and words in row for row in rows)

        wait_until(told, lambda: f"{words} of {check}\n{self.describe()}", 60.0)

    def _poke(self) -> None:
        assert not self._running or self._running.poll() is None, self.describe()
        for words in self.pokes:
            self.call(*words)

    def describe(self) -> str:
        said = self.folder / "said"
        told = {name: self.count_messages(name) for name in ("book", "pager")}
        return f"{told}\n{said.read_text()[-3000:] if said.exists() else ''}"

    def _become(self) -> dict[str, Any]:
        if self.user is None:
            return {}
        groups = os.getgrouplist(self.user.name, self.user.gid)
        return {"user": self.user.uid, "group": self.user.gid, "extra_groups": groups}


def live_before(site: Site) -> None:
    """The earlier sentinel: one alert began and ended, one is open, one waits for the pager."""
    site.start()
    site.set_alert("a")
    site.await_message("a", "firing", "pager")
    site.end_alert("a")
    site.await_message("a", "resolved", "pager")
    site.set_alert("b")
    site.await_message("b", "firing", "pager")
    (site.folder / "down").touch()
    site.set_alert("c")
    site.await_message("c", "firing")
    site.stop()
    (site.folder / "down").unlink()


def live_after(site: Site) -> None:
    """The present one goes on: what waited comes, what was open ends, what is new is told."""
    site.await_message("c", "firing", "pager")
    site.end_alert("b")
    site.end_alert("c")
    site.set_alert("d")
    site.await_message("d", "firing", "pager")
    site.await_message("b", "resolved", "pager")
    site.await_message("c", "resolved", "pager")
    site.end_alert("d")
    site.await_message("d", "resolved", "pager")
    site.await_message("d", "resolved")
    site.stop()
