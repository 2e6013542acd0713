"""The scripts of slurm/, submitted as their first lines say."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cron.faults import World
from tests.lab.cluster import Lab
from tests.lab.systemd import ROOT
from tests.lab.waiting import wait_until


def names(lab: Lab, state: str) -> list[str]:
    return sorted(lab.ask(["squeue", "-h", "-t", state, "-o", "%j"]).split())


@pytest.mark.parametrize("word", ["hourly", "daily"])
def test_the_layout_that_people_know_needs_nothing_but_slurm(
    fresh: Lab, tmp_path: Path, word: str
) -> None:
    """Scripts are submitted, programs run, and one successor waits, whatever is done twice."""
    folder = tmp_path / f"cron.{word}"
    folder.mkdir()
    (folder / "one.slurm").write_text("#!/bin/sh\necho one\n")
    (folder / "it's two").write_text("#!/bin/sh\necho two\n")
    (folder / "it's two").chmod(0o755)
    (folder / "README").write_text("no script")
    script = str(ROOT / f"slurm/cron-{word}.slurm")
    env = {"CRON_BASE": str(tmp_path)}
    assert fresh.run(["sbatch", script], env=env).returncode == 0
    log = tmp_path / "log"
    wait_until(lambda: log.exists() and len(list(log.iterdir())) == 2, "two runs", 30)
    wait_until(lambda: not names(fresh, "R") and len(names(fresh, "PD")) == 1, "their end", 30)
    logs = {p.name.rpartition("-")[0]: p.read_text() for p in (tmp_path / "log").iterdir()}
    assert logs == {"one": "one\n", "it's two": "two\n"}
    waiting = fresh.ask(["squeue", "-h", "-o", "%A"]).split()
    assert fresh.run(["sbatch", script], env=env).returncode == 0
    started = fresh.ask(["squeue", "-h", "-o", "%A"]).split()
    assert set(waiting) <= set(started)


def test_the_tick_script_begins_a_chain_once(fresh: Lab, tmp_path: Path) -> None:
    """Submitted twice there is still one chain."""
    world = World(fresh, tmp_path, every=600, seed=1)
    sentinel = world.home / "bin/sentinel"
    sentinel.write_text(f'#!/bin/sh\nexec {sys.executable} -m sentinel "$@"\n')
    sentinel.chmod(0o755)
    env = {**world.env, "SENTINEL_CONFIG": str(world.home / "sentinel.yaml")}
    for _ in range(2):
        script = str(ROOT / "slurm/sentinel-tick.slurm")
        assert fresh.run(["sbatch", script], env=env).returncode == 0
        wait_until(
            lambda: len(names(fresh, "PD")) == 3 and not names(fresh, "R"), "three links", 30
        )
    assert world.sentinel("cron", "remove").returncode == 0


@pytest.mark.parametrize("path", sorted((ROOT / "slurm").glob("*.slurm")), ids=lambda p: p.name)
def test_scripts_are_shell(path: Path) -> None:
    """bash reads them to their end."""
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
