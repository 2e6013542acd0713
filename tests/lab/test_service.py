"""What outlives nothing: sentinel and PostgreSQL started by tests end with them."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab import ledger, paths
from tests.lab.service import Service
from tests.lab.waiting import wait_until

CONFIG = """\
state: {folder}/state
checks:
  root: {{kind: fs, paths: [/], warn: {{free: 1000PB}}}}
channels:
  screen: {{kind: console}}
"""
STARTERS = {
    "sentinel": """\
from pathlib import Path
from tests.lab.service import Service
import os, sys, time
service = Service(Path(sys.argv[1]), ["run", "-c", sys.argv[1] + "/c.yaml"], os.environ)
service.wait_for(lambda: service.err)
pid = service.pid
""",
    "postgres": """\
import time
from tests.lab.postgres import Postgres
server = Postgres()
server.__enter__()
pid = server._process.pid
""",
}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that PostgreSQL's own user can reach; pytest's are closed to it."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_service_runs_until_it_is_asked_to_stop(
    service: Callable[..., Service], tmp_path: Path
) -> None:
    """Its output is seen while it runs; SIGTERM ends it with exit 0."""
    config = tmp_path / "c.yaml"
    config.write_text(CONFIG.format(folder=tmp_path))
    running = service("run", "-c", config)
    running.wait_for(lambda: "WARNING" in running.out, "the alert on the terminal")
    assert running.terminate() == 0


def test_a_service_that_ends_early_fails_the_wait_with_its_words(
    service: Callable[..., Service], tmp_path: Path
) -> None:
    """A test does not wait for what cannot come."""
    running = service("run", "-c", tmp_path / "missing.yaml")
    with pytest.raises(AssertionError, match="sentinel ended: exit"):
        running.wait_for(lambda: False)


@pytest.mark.parametrize("what", STARTERS)
def test_it_ends_with_a_test_process_that_is_killed(what: str, open_folder: Path) -> None:
    """SIGKILL to the parent reaches the child: nothing keeps running on the machine."""
    (open_folder / "c.yaml").write_text(CONFIG.format(folder=open_folder))
    script = STARTERS[what] + "print(pid, flush=True)\ntime.sleep(60)\n"
    argv = [sys.executable, "-c", script, str(open_folder)]
    env = {**os.environ, "TMPDIR": str(open_folder)}
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, cwd=paths.ROOT, env=env
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        child = (pid, ledger.started(pid))
        assert ledger.alive(child)
        parent.kill()
    wait_until(lambda: not ledger.alive(child), f"the end of {what}", 20.0)
