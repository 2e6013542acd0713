"""The scripts of slurm/, submitted as their first lines say."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.chain.faults import World
from tests.lab.cluster import Lab
from tests.lab.fuse import Fuse
from tests.lab.systemd import ROOT
from tests.lab.waiting import wait_until


def names(lab: Lab, state: str) -> list[str]:
    return sorted(lab.ask(["squeue", "-h", "-t", state, "-o", "%j"]).split())


class Folder:
    """`cron.hourly` or `cron.daily` with two things to run and one not, and their logs."""

    def __init__(self, lab: Lab, base: Path, word: str) -> None:
        self._lab, self._base, self._word = lab, base, word
        self._path = base / f"cron.{word}"
        self._path.mkdir(parents=True)
        self.logs = base / f"log/cron-{word}"
        self.script("one.slurm", "echo one")
        self.script("it's two", "echo two").chmod(0o755)
        (self._path / "README").write_text("no script")

    def script(self, name: str, text: str) -> Path:
        path = self._path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        return path

    def begin(self, *options: str) -> None:
        script = str(ROOT / f"slurm/cron-{self._word}.slurm")
        done = self._lab.run(["sbatch", *options, script], env={"CRON_BASE": str(self._base)})
        assert done.returncode == 0, done.stderr

    def seen(self) -> dict[str, str]:
        """What each wrote."""
        return {p.name.rpartition("-")[0]: p.read_text() for p in self.logs.glob("*.log")}

    def settled(self, logs: int) -> None:
        """Until so many have run, and one successor waits."""
        wait_until(lambda: len(list(self.logs.glob("*.log"))) == logs, "runs", 30)
        wait_until(self._resting, lambda: self._lab.ask(["squeue"]), 30)
        assert len(list(self.logs.glob("*.log"))) == logs

    def _resting(self) -> bool:
        return not names(self._lab, "R") and len(names(self._lab, "PD")) == 1


@pytest.mark.parametrize("word", ["hourly", "daily"])
def test_the_layout_that_people_know_needs_nothing_but_slurm(
    fresh: Lab, tmp_path: Path, word: str
) -> None:
    """Scripts are submitted, programs run, and one successor waits."""
    folder = Folder(fresh, tmp_path, word)
    folder.begin()
    folder.settled(2)
    assert folder.seen() == {"one": "one\n", "it's two": "two\n"}


def test_begun_again_nothing_runs_twice_and_one_successor_waits(fresh: Lab, tmp_path: Path) -> None:
    """Nor after a requeue: the node of a link may have died."""
    folder = Folder(fresh, tmp_path, "hourly")
    folder.begin()
    folder.settled(2)
    waiting = fresh.ask(["squeue", "-h", "-o", "%A"]).strip()
    folder.begin()
    fresh.ask(["scontrol", "update", f"jobid={waiting}", "starttime=now"])
    wait_until(lambda: waiting not in fresh.ask(["squeue", "-h", "-o", "%A"]).split(), "a turn", 30)
    folder.settled(2)


def test_what_is_submitted_has_its_own_limits_and_old_logs_go(fresh: Lab, tmp_path: Path) -> None:
    """SLURM_MEM_PER_NODE of the link beside --mem-per-cpu of a script would stop srun; and a folder
    of other logs may be called `log` too."""
    folder = Folder(fresh, tmp_path, "hourly")
    folder.script("step.slurm", "#SBATCH --mem-per-cpu=10M\nsrun -n1 echo step")
    folder.logs.mkdir(parents=True)
    for path in (folder.logs / "old-1.log", folder.logs.parent / "training.log"):
        path.write_text("")
        os.utime(path, (0, 0))
    folder.begin()
    folder.settled(3)
    assert folder.seen()["step"] == "step\n"
    assert (folder.logs.parent / "training.log").exists()


def test_a_site_that_demands_a_comment_gets_it_from_each_job(fresh: Lab, tmp_path: Path) -> None:
    """Successors and programs have that of the first job; a script keeps its own."""
    ask = ["squeue", "-h", "-t", "all", "-o", "%A %j:%k"]
    earlier = fresh.ask(ask).splitlines()  # slurmctld remembers what other tests ran
    folder = Folder(fresh, tmp_path, "hourly")
    folder.script("one.slurm", "#SBATCH --comment=mine\necho one")
    folder.begin("--comment=Proj A")
    folder.settled(2)
    rows = [row.partition(" ")[2] for row in fresh.ask(ask).splitlines() if row not in earlier]
    assert sorted(row for row in rows if not row.endswith(":(null)")) == [
        "cron-hourly:Proj A", "cron-hourly:Proj A", "it's two:Proj A", "one.slurm:mine",
    ]  # fmt: skip


def test_both_say_the_same() -> None:
    """All but the time."""
    hourly = (ROOT / "slurm/cron-hourly.slurm").read_text()
    changed = re.sub("hourly", "daily", hourly).replace("period=3600", "period=86400")
    for hour, day in (("an hour", "a day"), ("Hours", "Days"), (" hour", " day")):
        changed = changed.replace(hour, day)
    assert changed == (ROOT / "slurm/cron-daily.slurm").read_text()


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


@pytest.mark.parametrize("limit", ["90s", "08", "0", "-5", "1e9"])
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_an_epilog_tests_whatever_limit_it_was_given(
    tmp_path: Path, shell: str, limit: str
) -> None:
    """A shell that cannot count would never test a GPU."""
    program = tmp_path / "sentinel"
    program.write_text('#!/bin/sh\necho "$@" >"$0.args"\n')
    program.chmod(0o755)
    env = {"PATH": "/usr/bin:/bin", "SENTINEL": str(program), "SLURM_JOB_GPUS": "0"}
    epilog = str(ROOT / "slurm/sentinel-epilog-dcgm.sh")
    argv, env = [shell, epilog], {**env, "SENTINEL_DIAG_LIMIT": limit}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, "is no number of seconds" in done.stderr) == (0, True)
    args = (tmp_path / "sentinel.args").read_text()
    assert args == "diag here --gpus 0 --level 1 --limit 90\n"


@pytest.mark.parametrize("script", ["sentinel-epilog-dcgm.sh", "sentinel-prolog-gpus.sh"])
@pytest.mark.parametrize(
    ("text", "code"), [("echo Loading python/3.11; exit 1", 0), ("kill -9 $$", 0), ("exit 2", 0)]
)
def test_what_is_broken_and_talks_drains_nothing(
    tmp_path: Path, script: str, text: str, code: int
) -> None:
    """A wrapper that loads a module, say, in front of a Python that then does not start."""
    program = tmp_path / "a wrapper"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    env = {"PATH": "/usr/bin:/bin", "SENTINEL": str(program), "SLURM_JOB_GPUS": "0"}
    argv = ["sh", str(ROOT / "slurm" / script)]
    assert subprocess.run(argv, env=env, capture_output=True, check=False).returncode == code


NODE_SCRIPTS = ("sentinel-epilog-dcgm.sh", "sentinel-prolog-gpus.sh")


@pytest.mark.parametrize("where", ["file", "PATH"])
def test_a_hung_file_system_holds_no_node(tmp_path: Path, fuse: Fuse, where: str) -> None:
    """No signal reaches a child in state D, and Slurm drains a node whose prolog or epilog does not
    end: what hangs is abandoned, once, and no second one is started beside it."""
    place = Path("/run" if os.access("/run", os.W_OK) else "/tmp")
    env = {"SENTINEL_LEMONS_LIMIT": "1"}
    name = f"sentinel-prolog-{os.getpid()}"  # others run the same script just now
    script, text = tmp_path / "prolog", (ROOT / "slurm/sentinel-prolog-gpus.sh").read_text()
    script.write_text(text.replace("\nname=sentinel-prolog-gpus\n", f"\nname={name}\n"))
    if where == "PATH":  # the shell looks for it there
        env |= {"PATH": f"{fuse.point}:/usr/bin:/bin", "SENTINEL": "data"}
    else:  # it reads something there
        program = tmp_path / "sentinel"
        program.write_text(f"#!/bin/sh\nexec cat {fuse.point}/data\n")
        program.chmod(0o755)
        env |= {"PATH": "/usr/bin:/bin", "SENTINEL": str(program)}

    def run() -> subprocess.CompletedProcess[str]:
        argv = ["/bin/sh", str(script)]
        return subprocess.run(
            argv, env=env, capture_output=True, text=True, check=False, timeout=60
        )

    fuse.hold(*{"file": ["open"], "PATH": ["lookup"]}[where])
    done = run()
    (left,) = place.glob(f"{name}.*")
    assert (done.returncode, "abandoned" in done.stderr, fuse.withheld() > 0) == (0, True, True)
    held, long_ago = fuse.withheld(), time.time() - 3600
    os.utime(left, (long_ago, long_ago))
    done = run()
    assert (done.returncode, "still hangs" in done.stderr) == (0, True)
    assert (fuse.withheld(), list(place.glob(f"{name}.*"))) == (held, [left])
    fuse.release()
    free = ["flock", "-n", left / "alive", "true"]
    wait_until(lambda: not subprocess.run(free, check=False).returncode, "the abandoned end", 20)
    os.utime(left, (long_ago, long_ago))
    assert (run().returncode, left.exists()) == (0, False)


def test_both_scripts_of_nodes_wait_by_the_same_lines() -> None:
    """They are copied to nodes one by one, so each holds them; a mend of one is one of both."""
    texts = [(ROOT / "slurm" / script).read_text() for script in NODE_SCRIPTS]
    first, second = (text.split("# -----", 1)[0].split("# -- the same", 1)[1] for text in texts)
    assert first == second


@pytest.mark.parametrize("path", sorted((ROOT / "slurm").glob("*.slurm")), ids=lambda p: p.name)
def test_scripts_are_shell(path: Path) -> None:
    """bash reads them to their end."""
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
