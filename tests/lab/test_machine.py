"""The run's own mounts and /etc, and the check at its end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import machine, paths
from tests.lab.waiting import begun

ALONE = """
import subprocess, sys
from pathlib import Path
from tests.lab import machine
before = machine.facts()
machine.own_mounts()
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", sys.argv[1]], check=True)
subprocess.run(["useradd", "slab-alone"], check=True)
assert "slab-alone" in Path("/etc/passwd").read_text()
print(sorted(before["file of /etc"] ^ machine.facts()["file of /etc"]), flush=True)
sys.stdin.read()
"""


@pytest.mark.root
def test_what_a_run_mounts_and_whom_it_adds_ends_with_it_also_when_it_is_killed(
    tmp_path: Path,
) -> None:
    """Nobody else ever sees it."""
    with subprocess.Popen(
        [sys.executable, "-c", ALONE, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=paths.ROOT,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "[]\n"
        assert str(tmp_path) in Path(f"/proc/{run.pid}/mounts").read_text()
        assert str(tmp_path) not in Path("/proc/mounts").read_text()
        assert "slab-alone" not in Path("/etc/passwd").read_text()
        run.kill()


def test_what_is_left_behind_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process by its run, everything else by comparison: sysctls, files, mounts."""
    before = machine.facts()
    none: machine.Facts = {**before, "sysctl": before["sysctl"] - {*before["sysctl"]}}
    with subprocess.Popen(["sleep", "60"], env={**os.environ, machine.RUN: "some-run"}) as left:
        begun(left)
        mine, unclear = machine.changes(none, "some-run", patience=0)
        left.kill()
    assert any(line == f"process: {left.pid} sleep 60 " for line in mine)
    assert any("sysctl: new: kernel/panic = " in line for line in mine + unclear)
    assert not [line for line in mine if line.startswith("file of /etc")]
