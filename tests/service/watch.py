"""One sentinel as its user has it: a configuration file, a service, commands beside it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.lab import ledger
from tests.lab.service import Service
from tests.lab.waiting import wait_until

Line = dict[str, Any]
Start = Callable[..., Service]
Done = subprocess.CompletedProcess[str]

HEAD = """\
cluster: lab
state: {state}
"""

LAMP = """\
lamp: {{kind: exec, every: 1s, command: [/bin/sh, -c, "read code < {folder}/lamp; exit $code"]}}
"""
"""A check that says what the test tells it by `Watch.lamp`."""


class Watch:
    """Configured by `configure`, started by `run`; `say` is a command typed beside it.

    `folder` stands for {folder} in configurations and `state` is the state's; `book` is what
    a `file` channel wrote to {folder}/book.jsonl.
    """

    def __init__(self, folder: Path, start: Start, env: Mapping[str, str] | None) -> None:
        self.folder, self.config = folder, folder / "sentinel.yaml"
        self.state = folder / "state"
        self._start = start
        home = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "home-state")}
        self.env = {**(os.environ if env is None else env), **home}

    def configure(self, text: str, **values: object) -> None:
        """Write the file: cluster and state, then the text with {values} filled in."""
        body = HEAD + dedent(text).replace("LAMP\n", LAMP)
        self.config.write_text(body.format(folder=self.folder, state=self.state, **values))

    def lamp(self, code: int) -> None:
        """What the check of a line LAMP says from its next run on: 0 ok, 2 critical."""
        new = self.folder / "lamp.new"
        new.write_text(f"{code}\n")
        new.rename(self.folder / "lamp")

    def run(self, *options: str) -> Service:
        """Start the service; does not wait."""
        return self.start("run", *options)

    def start(self, *words: object) -> Service:
        """Start `sentinel WORDS... -c CONFIG`; does not wait."""
        return self.start_bare(*words, "-c", self.config)

    def start_bare(self, *words: object) -> Service:
        """Start `sentinel WORDS...`, without a configuration."""
        return self._start(*words, env=self.env)

    def say(self, *words: object, limit: float = 60.0, **changes: str) -> Done:
        """`sentinel WORDS... -c CONFIG`, to its end; `changes` go into the environment."""
        return self.say_bare(*words, "-c", self.config, limit=limit, **changes)

    def say_bare(self, *words: object, limit: float = 60.0, **changes: str) -> Done:
        """`sentinel WORDS...`, without a configuration."""
        return subprocess.run(
            [sys.executable, "-m", "sentinel", *(str(word) for word in words)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=limit,
            env={**self.env, **changes},
            cwd=self.folder,
            check=False,
        )

    def status(self) -> Line:
        """`sentinel status --json`."""
        done = self.say("status", "--json")
        assert done.returncode == 0, done.stderr
        facts: Line = json.loads(done.stdout)
        return facts

    @property
    def book(self) -> list[Line]:
        """Every whole line of the `file` channel so far."""
        path = self.folder / "book.jsonl"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n"]

    def told(self, **wanted: str) -> list[Line]:
        """The lines of the book with these fields."""
        return [line for line in self.book if all(line[k] == v for k, v in wanted.items())]

    def wait_told(
        self, service: Service, count: int = 1, limit: float = 30.0, **wanted: str
    ) -> list[Line]:
        """Until the book holds so many lines with these fields."""
        what = f"{count} lines with {wanted}"
        service.wait_for(lambda: len(self.told(**wanted)) >= count, what, limit)
        return self.told(**wanted)


def age(pid: int) -> float:
    """Seconds since the process was started; 0 where it is gone."""
    began = ledger.started(pid)
    up = float(Path("/proc/uptime").read_text().split()[0])
    return up - began / os.sysconf("SC_CLK_TCK") if began else 0.0


def processes(mark: str) -> dict[int, str]:
    """Every process whose environment holds the mark: its number and command line.

    A child is known by what it inherited, also when its parent is gone.
    """
    return {pid: line for pid, line in _commands() if mark in _environment(pid)}


def wait_gone(mark: str, limit: float = 15.0) -> None:
    """Until no process with the mark is left."""
    wait_until(lambda: not processes(mark), lambda: f"the end of {processes(mark)}", limit)


def _commands() -> Iterator[tuple[int, str]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                raw = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if raw:
                yield int(folder.name), raw.replace(b"\0", b" ").decode(errors="replace").strip()


def _environment(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return ""
