"""The run's own mounts and /etc, and the check at its end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import claim, machine, paths
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


OPENED = """
import subprocess, sys
from pathlib import Path
from tests.lab import machine
checkout = Path(sys.argv[1])
machine.own_mounts()
machine.let_others_in(checkout)
other = ["setpriv", "--reuid=2", "--regid=2", "--clear-groups"]
subprocess.run([*other, "cat", checkout / "README.md"], check=True, cwd="/")
for new in (checkout / "in", checkout.with_name("beside")):
    new.touch()
"""


@pytest.mark.root
def test_a_checkout_that_others_cannot_reach_is_open_to_them_in_the_run_alone(
    tmp_path: Path,
) -> None:
    """Whoever ran the tests in /root had 20 fail. What is written into the checkout stays."""
    tmp_path.chmod(0o755)
    checkout = tmp_path / "root" / "private" / "checkout"
    checkout.mkdir(parents=True)
    (checkout / "README.md").write_text("Read me.")
    for shut in checkout.parents[:2]:
        shut.chmod(0o700)
    done = subprocess.run(
        [sys.executable, "-c", OPENED, str(checkout)],
        capture_output=True, text=True, cwd=paths.ROOT, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("Read me.", "")
    assert {path.name for path in checkout.iterdir()} == {"README.md", "in"}
    assert [path.name for path in checkout.parent.iterdir()] == ["checkout"]
    assert [shut.stat().st_mode & 0o777 for shut in checkout.parents[:2]] == [0o700, 0o700]


READ = """
import subprocess, sys
from tests.lab import machine
machine.own_mounts()
other = ["setpriv", "--reuid=2", "--regid=2", "--clear-groups"]
subprocess.run([*other, "cat", sys.prefix + "/pyvenv.cfg"], check=True, cwd="/")
"""


@pytest.mark.root
def test_a_python_that_others_cannot_reach_is_open_to_them_in_the_run(tmp_path: Path) -> None:
    """Whose Python was pyenv's in /root, and the checkout elsewhere, had 20 tests fail."""
    tmp_path.chmod(0o755)
    (tmp_path / "root").mkdir(mode=0o700)
    python = tmp_path / "root/python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", python], check=True)
    done = subprocess.run(
        [python / "bin/python", "-c", READ],
        capture_output=True, text=True, cwd=paths.ROOT, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ((python / "pyvenv.cfg").read_text(), "")


@pytest.mark.root
def test_what_a_run_left_behind_is_named(tmp_path: Path) -> None:
    """A process by its environment; what is compared by its name and its folder."""
    before = machine.facts()
    with subprocess.Popen(["sleep", "60"], env={**os.environ, machine.RUN: "some-run"}) as left:
        begun(left)
        (tmp_path / "mount").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", tmp_path / "mount"], check=True)
        mine, _ = machine.changes(before, "some-run", tmp_path, patience=0)
        subprocess.run(["umount", tmp_path / "mount"], check=True)
        left.kill()
    assert any(line == f"process: {left.pid} sleep 60 " for line in mine)
    assert any(line.startswith("mount: new: ") and str(tmp_path / "mount") in line for line in mine)
    assert len(mine) == 2


@pytest.mark.root
def test_what_changes_on_the_machine_meanwhile_is_not_the_runs(tmp_path: Path) -> None:
    """Two network namespaces that somebody else made failed a run of 13,459 passed tests."""
    now = machine.facts()
    somebodys = "somebodys-namespace"
    before = {
        **now,
        "sysctl": now["sysctl"] - {*list(now["sysctl"])[:1]},
        "network namespace": now["network namespace"] | {somebodys},
        "file of /etc": frozenset[str](),
    }
    mine, others = machine.changes(before, "some-run", tmp_path, patience=0)
    assert mine == []
    assert f"network namespace: gone: {somebodys}" in others
    assert any(line.startswith("sysctl: new: ") for line in others)
    assert any(line.startswith("file of /etc: new: ") for line in others)


@pytest.mark.root
@pytest.mark.parametrize(("holder", "is_mine"), [("some-run", True), ("another-run", False)])
def test_a_lab_is_of_the_run_that_claimed_it_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holder: str, is_mine: bool
) -> None:
    index, lock = claim.claim()  # so that no lab of others gets this number meanwhile
    monkeypatch.setenv(machine.RUN, holder)
    monkeypatch.setattr(claim, "BASE", tmp_path)
    os.close(claim.claim(index)[1])
    now = machine.facts()
    left = f"{paths.prefix(index)}n0"
    before = {**now, "network namespace": now["network namespace"] - {left}}
    subprocess.run(["ip", "netns", "add", left], check=True)
    mine, others = machine.changes(before, "some-run", tmp_path, patience=0)
    subprocess.run(["ip", "netns", "del", left], check=True)
    os.close(lock)
    line = f"network namespace: new: {left}"
    assert (line in mine, line in others) == (is_mine, not is_mine)
