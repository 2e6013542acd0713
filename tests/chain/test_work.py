"""What a link does when it is called, and `sentinel cron run`."""

import subprocess
import sys
from pathlib import Path

import pytest

from sentinel.chain import work
from sentinel.chain.folder import ChainFolder
from sentinel.chain.model import Chain
from sentinel.wiring import app


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("sbatch", "goes_on"), [("echo 5", True), ("exit 1", False)])
def test_a_relay_submits_what_is_due_beside_its_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sbatch: str, goes_on: bool
) -> None:
    """Whether its successor was taken or not; the passes are the service's."""
    config = tmp_path / "sentinel.yaml"
    config.write_text(
        f"state: {tmp_path}/state\nchecks: {{scripts: {{kind: cron, base: {tmp_path}}}}}\n"
        f"channels: {{book: {{kind: file, path: {tmp_path}/book}}}}\n"
    )
    program(tmp_path / "sbatch", f"touch {tmp_path}/taken; {sbatch}")
    called = program(tmp_path / "sentinel", f'echo "$*" >>{tmp_path}/calls')
    chain = Chain(
        name="s", every=600, command=(str(called),), mode="relay", strands=1, time_limit=86400,
        config=str(config), revision="r",
    )  # fmt: skip
    row = f"s/%A/5/; s/%j/{chain.strand_names[0]}/; s/%T/PENDING/; s/%e/N\\/A/; s/%k/sentinel 1 r/; s/%r/x/"
    form = "for word; do form=$word; done"
    program(
        tmp_path / "squeue",
        f"[ -e {tmp_path}/taken ] || exit 0; {form}; echo \"$form\" | sed '{row}'",
    )
    place = ChainFolder(str(tmp_path / "chain"))
    place.install_files(chain, "")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("sentinel.chain.work.SUCCESSOR_PATIENCE_S", (0.0,))
    assert work.run_link(place.folder, app.load_settings) is goes_on
    assert (tmp_path / "calls").read_text() == f"cron run -c {config}\n"


def test_one_base_that_is_away_stops_no_other(tmp_path: Path) -> None:
    """Its error is told at the end, with its exit code."""
    (tmp_path / "good/cron.hourly").mkdir(parents=True)
    argv = [sys.executable, "-m", "sentinel", "cron", "run"]
    bases = ["--base", f"{tmp_path}/away", "--base", f"{tmp_path}/good", "--base", f"{tmp_path}/no"]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [*argv, *bases], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("No such file or directory")) == (66, 2)
    assert (tmp_path / "good/.sentinel/cron.json").exists()
