"""The harness finds what is planted, and what its oracle says is so."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import paths
from tests.lab.waiting import begun
from tests.torture.oracle import processes
from tests.torture.planted import PLANTED, planted


@pytest.mark.parametrize("name", PLANTED)
def test_every_bug_can_be_planted(name: str, tmp_path: Path) -> None:
    """In a copy that can be compiled; the package itself stays as it is."""
    folder = planted(name, tmp_path)
    for file, before, _ in PLANTED[name]:
        compile((folder / "sentinel" / file).read_text(), file, "exec")
        assert before in (paths.ROOT / "sentinel" / file).read_text()


def test_processes_are_counted_by_all_their_arguments() -> None:
    """Not by a part of them."""
    with subprocess.Popen(["sleep", "86399.5"]) as one:
        try:
            begun(one)
            assert (processes("sleep 86399.5"), processes("sleep 86399")) == (1, 0)
        finally:
            one.kill()


@pytest.mark.nightly
@pytest.mark.lab
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str) -> None:
    """Within minutes, with a seed that is printed."""
    argv = [sys.executable, "-m", "tests.torture", "--minutes", "5", "--seed", "5", "--plant", name]
    done = subprocess.run(argv, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    assert "HARM" in done.stdout
    assert f"replay: python -m tests.torture --seed 5 --minutes 5 --plant {name}" in done.stdout
