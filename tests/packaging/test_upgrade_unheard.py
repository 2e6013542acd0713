"""An upgrade, or a downgrade, over a service that has sent nothing yet: what comes afterwards is told.

Each module of the wheels refuses to be loaded beside a module of the other version, so whatever the
service has not loaded at its start fails afterwards."""

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sentinel import __version__
from tests.lab.cluster import Lab
from tests.lab.smtp import SmtpServer
from tests.lab.systemd import ROOT
from tests.lab.waiting import wait_until
from tests.packaging.wheels import NEXT, Site, build_wheel
from tests.service.test_links import free_port

TOLD_WITHIN_S = 150.0
MINE = """

import sentinel as _package
if _package.__version__ != "{version}":
    raise ImportError("half of {version}")
"""
FILE = """\
cluster: lab
state: {folder}/state
web: {{listen: "127.0.0.1:{page}"}}
checks:
  trainings: {{kind: job, every: 5s, name: llm, users: ["*"]}}
  log: {{kind: log, every: 5s, job: llm}}
  nodes: {{kind: nodes, every: 5s}}
  drained: {{kind: drained, every: 5s}}
  disk: {{kind: fs, every: 5s, paths: [/tmp], warn: {{used: 100%}}, crit: {{used: 100%}}}}
channels:
  book: {{kind: file, path: {folder}/book}}
  mail: {{kind: email, to: [o@example.org], from: s@example.org, host: localhost, port: {port}, security: none}}
"""

pytestmark = [pytest.mark.nightly, pytest.mark.lab, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two versions, neither of which can be mixed with the other."""
    folder = tmp_path_factory.mktemp("wheels")
    return {v: build_wheel(folder, v, **_make_unmixable(v)) for v in (__version__, NEXT)}


def _make_unmixable(version: str) -> dict[str, str]:
    modules = (p.relative_to(ROOT / "sentinel") for p in (ROOT / "sentinel").rglob("*.py"))
    names = [str(path.with_suffix("")).replace("/", "__") for path in modules]
    own = ("__init__", "__main__")
    return {n: MINE.format(version=version) for n in names if not n.endswith(own)}


@contextmanager
def run_service(site: Site, folder: Path, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [str(site.python.parent / "sentinel"), "run", "-c", str(folder / "sentinel.yaml")],
            cwd="/", env={**env, "HOME": str(folder)}, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def list_told(folder: Path) -> list[dict[str, str]]:
    path = folder / "book"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize(("before", "after"), [(__version__, NEXT), (NEXT, __version__)])
def test_a_death_after_another_version_was_installed_is_mailed(
    fresh: Lab, smtp: SmtpServer, tmp_path: Path, wheels: dict[str, Path], before: str, after: str
) -> None:
    """Nobody starts the service again, so it goes on with what it has loaded; its page, too."""
    site, page = Site(tmp_path / "venv"), free_port()
    site.install(wheels[before])
    text = FILE.format(folder=tmp_path, port=smtp.port, page=page)
    (tmp_path / "sentinel.yaml").write_text(text)
    go = fresh.work / "go"
    fresh.sbatch(f"until [ -e {go} ]; do sleep 1; done; exit 3", name="llm")
    with run_service(site, tmp_path, fresh.env) as service:
        ask = [str(site.python.parent / "sentinel"), "status", "--json"]

        def has_looked() -> bool:
            done = subprocess.run(
                [*ask, "-c", str(tmp_path / "sentinel.yaml")], cwd="/", env={**fresh.env},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            seen = json.loads(done.stdout)["checks"] if done.returncode == 0 else []
            loaded = "all modules are loaded" in (tmp_path / "log").read_text()
            return loaded and bool(seen) and all("ran_s_ago" in check for check in seen)

        wait_until(has_looked, "a first look of every check", 120)
        assert smtp.mails == []
        site.install(wheels[after])
        go.touch()
        began = time.monotonic()

        def is_mailed() -> bool:
            assert service.poll() is None
            return any("llm" in str(mail.message["X-Sentinel-Subject"]) for mail in smtp.mails)

        wait_until(is_mailed, lambda: (tmp_path / "log").read_text()[-3000:], 2 * TOLD_WITHIN_S)
        assert time.monotonic() - began < TOLD_WITHIN_S
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/", timeout=30) as answer:
            assert "trainings" in answer.read().decode()
    assert "ImportError" not in (tmp_path / "log").read_text()


def test_a_part_that_does_not_load_is_told_by_the_others(
    tmp_path: Path, wheels: dict[str, Path]
) -> None:
    """A module that is cut and one that vanished, each at the start: within a minute, and once it is
    whole the next start ends the alert."""
    site = Site(tmp_path / "venv")
    site.install(wheels[__version__])
    text = FILE.format(folder=tmp_path, port=9, page=free_port())
    (tmp_path / "sentinel.yaml").write_text(text)
    module = site.packages / "sentinel/channels/smtp.py"
    whole = module.read_text()
    module.write_text("import (\n")

    def is_told(reason: str) -> bool:
        rows = [row for row in list_told(tmp_path) if row["subject"] == "installation"]
        return bool(rows) and rows[-1]["reason"] == reason

    env = {"PATH": os.environ["PATH"], "SLURM_CONF": "/nonexistent"}
    with run_service(site, tmp_path, env):
        wait_until(lambda: is_told("firing"), lambda: f"{list_told(tmp_path)}", 60)
    (told,) = [row for row in list_told(tmp_path) if row["subject"] == "installation"]
    assert "channel mail: sentinel.channels.smtp: " in told["summary"]
    assert "check" not in told["summary"]
    module.write_text(whole)
    with run_service(site, tmp_path, env):
        wait_until(lambda: is_told("resolved"), lambda: f"{list_told(tmp_path)}", 60)
