"""The demo ends by itself and keeps its promises."""

import subprocess
import sys

import pytest

from tests.lab import paths


@pytest.mark.lab
@pytest.mark.long
def test_the_demo_tells_of_both_mails() -> None:
    """Exit 0 means that both mails came, in one thread."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.lab", "demo", "--fast"],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "job 1 died, the mail came, job 2 runs" in done.stdout
    assert "the resolved mail has come too" in done.stdout.lower()
