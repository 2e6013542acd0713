"""Shell scripts that run on other people's nodes are clean by shellcheck(1), as POSIX sh or bash."""

import subprocess
from pathlib import Path

import pytest

from sentinel.proc.own_package import PROGRAM_FILES, read_program_file
from tests.lab import needs

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(
    path
    for folder in ("sentinel", "slurm", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix != ".py"
    if path.suffix == ".sh" or path.read_bytes()[:2] == b"#!"
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_script_is_clean(script: Path) -> None:
    """Nothing shellcheck knows to be a trap; exceptions are named where they stand."""
    tool = needs.find("shellcheck")
    if tool is None:
        why = "needs Debian's shellcheck"
        needs.skip(why)
    shell = [] if script.read_bytes()[:2] == b"#!" else ["--shell=sh"]
    done = subprocess.run(
        [tool, *shell, script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_probe_is_among_them() -> None:
    """A list that is empty would pass."""
    assert ROOT / "sentinel/nodes/probe.sh" in SCRIPTS


def test_a_service_loads_each_of_them_at_its_start() -> None:
    """After an upgrade the file on the disk is another version's."""
    package = ROOT / "sentinel"
    here = [str(path.relative_to(package)) for path in SCRIPTS if path.is_relative_to(package)]
    assert [name for name in here if name not in PROGRAM_FILES] == [], "add it to PROGRAM_FILES"
    assert all(map(read_program_file, PROGRAM_FILES))
