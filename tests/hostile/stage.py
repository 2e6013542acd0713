"""A real cluster with two ordinary users, and a sentinel that root runs for both of them."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.lab.accounts import User
from tests.lab.cluster import Lab
from tests.lab.service import Service
from tests.lab.tied import tied
from tests.lab.waiting import wait_until
from tests.service.test_links import free_port

SECRET = "s3cret-of-somebody-else"
TOKEN = "the-token-that-only-the-proxy-has"
LINK_SECRET = "the-secret-that-signs-the-links-0123"
CPUS = 600
"""Of each node: 222 jobs of one user run at the same time."""

CONFIG = """\
cluster: lab
state: {folder}/state
evidence: {folder}/evidence
checks:
  logs: {{kind: log, match: '(mal|ali).*', users: '*', progress: auto, stale_after: 15s, startup: 5s,
    every: 2s, timeout: 20s, ask_nodes: false, looks: 'off'}}
  paths: {{kind: log, match: 'path.*', users: '*', path: "{homes}/%x/out.log", progress: growth, stale_after: 60s,
    every: 2s, ask_nodes: false}}
  jobs: {{kind: job, match: '.*', users: '*', every: 3s, timeout: 20s}}
  saves: {{kind: checkpoint, job_match: 'mal.*', users: '*', path: "{homes}/%x/ckpt", every: 3s}}
  disk: {{kind: fs, paths: [{homes}], every: 5s}}
  quotas: {{kind: quota, paths: [{homes}], command: [cat, {folder}/quotas.json], every: 5s}}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
web:
  listen: 127.0.0.1:{port}
  url: http://127.0.0.1:{port}
  secret: {{file: {folder}/secret}}
  token: {{file: {folder}/token}}
  user_header: X-Remote-User
  administrators: [root]
"""


class Outcome(Struct, frozen=True):
    """What an attack came to: how often it was tried, and what it achieved; nothing where all held."""

    tries: int
    harm: Sequence[str] = ()


class WideLab(Lab):
    """Nodes with room for hundreds of jobs."""

    def _node_lines(self) -> list[str]:
        return [
            line.replace("CPUs=4", f"CPUs={CPUS}").replace("RealMemory=1000", "RealMemory=100000")
            for line in super()._node_lines()
        ]


class Stage:
    """Up inside `with stage(folder)`. `alice` is the victim, `mallory` the attacker."""

    def __init__(self, folder: Path, lab: Lab, against: str = "") -> None:
        self.folder, self.lab, self.port = folder, lab, free_port()
        self.env = {"HOME": str(folder), **({"PYTHONPATH": against} if against else {})}
        self.alice, self.mallory = lab.user("alice"), lab.user("mallory")
        for place in (folder, lab.folder, lab.folder / "home"):
            place.chmod(0o755)
        for user in (self.alice, self.mallory):
            user.home.chmod(0o755)
        self.secrets = [
            self._write_secret(None, folder / "root.log"),
            self._write_secret(self.alice, self.alice.home / "private.log"),
        ]
        self.private_folder = self.alice.home / "private"
        self.private_folder.mkdir(0o700)
        (self.private_folder / f"{SECRET}-1").write_text(SECRET)
        os.chown(self.private_folder, self.alice.uid, self.alice.gid)
        for name, text in (("token", TOKEN), ("secret", LINK_SECRET)):
            (folder / name).write_text(text)
            (folder / name).chmod(0o600)
        quotas = [
            {"name": f"user:{user.name}", "used_bytes": 99, "limit_bytes": 100}
            for user in (self.alice, self.mallory)
        ]
        (folder / "quotas.json").write_text(json.dumps(quotas))
        config = CONFIG.format(folder=folder, homes=lab.folder / "home", port=self.port)
        (folder / "sentinel.yaml").write_text(config)
        (folder / "sentinel.yaml").chmod(0o600)
        self.service: Service | None = None

    def _write_secret(self, owner: User | None, path: Path) -> Path:
        path.write_text(f"{SECRET}\n" * 3)
        path.chmod(0o600)
        if owner:
            os.chown(path, owner.uid, owner.gid)
        return path

    def run_service(self) -> None:
        """Start sentinel, or start it anew, and wait until its page answers."""
        env = {**self.lab.env, **self.env, "SENTINEL_TEST_PASSWORD": SECRET}
        self.service = Service(self.folder, ["run", "-c", "sentinel.yaml"], env)
        self.service.wait_for(lambda: self.get("/healthz")[0] == 200, "the page", 60)

    def get(self, path: str, user: str = "", limit: float = 5.0, **headers: str) -> tuple[int, str]:
        """Status and text of a page, as `user` sees it through the proxy; 0 where nobody answers."""
        proof = {"Authorization": f"Bearer {TOKEN}", "X-Remote-User": user} if user else {}
        return self.ask("GET", path, {**proof, **headers}, limit=limit)

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: str = "", limit: float = 5.0
    ) -> tuple[int, str]:
        """One request, with a connection of its own."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=limit)
        try:
            line.request(method, path, body or None, dict(headers))
            answer = line.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            line.close()

    @property
    def book(self) -> list[dict[str, Any]]:
        """What the channel was told so far."""
        path = self.folder / "book.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def tells_of(self, words: str, limit: float) -> float | None:
        """Seconds until a message has these words; None where none has in `limit` seconds."""
        began = time.monotonic()
        try:
            wait_until(lambda: any(words in json.dumps(line) for line in self.book), words, limit)
        except (AssertionError, TimeoutError):
            return None
        return time.monotonic() - began

    def passes(self, check: str) -> int:
        """How often that check has ended well or ill: its runs, as the metrics count them."""
        _, text = self.get("/metrics")
        start, name = "sentinel_check_last_run_timestamp_seconds{", f'check="{check}"'
        lines = [one for one in text.splitlines() if one.startswith(start) and name in one]
        found = [line.rpartition(" ")[2] for line in lines]
        return int(float(found[0]) * 1000) if found else 0

    def await_passes(self, check: str, count: int = 2, limit: float = 60.0) -> bool:
        """Whether so many passes of the check came to their end within `limit` seconds."""
        last = self.passes(check)
        deadline = time.monotonic() + limit
        while count and time.monotonic() < deadline:
            if (now := self.passes(check)) != last:
                last, count = now, count - 1
            time.sleep(0.2)
        return not count

    def leaks(self) -> list[str]:
        """Where a secret stands that mallory could read, or that people are told."""
        found = []
        for path in (*self.folder.glob("book.jsonl*"), self.folder / "stderr", *self.evidence()):
            if SECRET in path.read_text(errors="replace"):
                found.append(f"{path.name} holds a secret")
        state = b"".join(path.read_bytes() for path in (self.folder / "state").glob("*.db*"))
        if SECRET.encode() in state:
            found.append("the state holds a secret")
        return found

    def evidence(self) -> list[Path]:
        """What was kept of hangs."""
        return [p for p in (self.folder / "evidence").rglob("*") if p.is_file()]

    def start_as(self, user: User, argv: Sequence[str]) -> subprocess.Popen[str]:
        """A process of that user, which ends with this one."""
        return subprocess.Popen(
            tied(list(argv)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            cwd=user.home, user=user.uid, group=user.gid, extra_groups=[], start_new_session=True,
        )  # fmt: skip

    def command(self, *words: str) -> list[str]:
        """`sentinel WORDS`, as root types it."""
        return [sys.executable, "-m", "sentinel", *words, "-c", str(self.folder / "sentinel.yaml")]

    def python_as(self, user: User, program: str, *words: object) -> subprocess.Popen[str]:
        """A Python program of that user."""
        return self.start_as(user, ["/usr/bin/python3", "-I", "-c", program, *map(str, words)])


@contextmanager
def stage(folder: Path, against: str = "") -> Iterator[Stage]:
    """The cluster and sentinel, until the block ends. `against`: the sentinel that is found in these
    folders, in place of this one."""
    with WideLab(nodes=2) as lab:
        made = Stage(folder, lab, against)
        made.run_service()
        try:
            yield made
        finally:
            if made.service:
                made.service.close()


Attack = Callable[[Stage], Outcome]
