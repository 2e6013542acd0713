"""Which signals reach a training under which launcher, on a real Slurm; docs/training.md's recipes."""

import sys
from pathlib import Path

import pytest

from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until

ROOT = Path(__file__).parents[2]

TRAIN = f"""\
import os, sys, time
sys.path.insert(0, {str(ROOT)!r})
from sentinel.training import Guard
guard = Guard(kill_switch=sys.argv[2], memory=None, every=0.2, margin=5.0)
name = f"{{sys.argv[1]}}.{{guard.rank}}"
open(name + ".up", "w").close()
while not guard.should_stop():
    time.sleep(0.05)
with open(name + ".tmp", "w") as file:
    file.write(guard.reason)
os.rename(name + ".tmp", name)
"""
LAUNCHER = """\
import subprocess, sys
raise SystemExit(subprocess.run([sys.executable, *sys.argv[1:]]).returncode)
"""
"""As torchrun, accelerate and mpirun without a handler of their own: they die of SIGUSR1."""

TRAPPED = """\
trap 'touch {stop}' USR1
srun -n2 --overlap {command} &
pid=$!
while kill -0 $pid 2>/dev/null; do wait $pid; code=$?; done
echo $code >{name}.code
"""


class Work:
    """Jobs of two ranks in the lab's work folder."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        (lab.work / "train.py").write_text(TRAIN)
        (lab.work / "launch.py").write_text(LAUNCHER)

    def command(self, name: str, *, launched: bool = False) -> str:
        stop = self.stop(name)
        return f"{sys.executable} {'launch.py ' if launched else ''}train.py {name} {stop}"

    def stop(self, name: str) -> Path:
        return self.lab.work / f"STOP-{name}"

    def submit(self, name: str, script: str, **options: object) -> str:
        return self.lab.sbatch(script, name=name, nodes=2, **options)

    def up(self, name: str) -> None:
        wait_until(lambda: len(list(self.lab.work.glob(f"{name}.*.up"))) == 2, f"{name} up", 20.0)

    def reasons(self, name: str, limit: float = 20.0) -> list[str]:
        files = [self.lab.work / f"{name}.{rank}" for rank in range(2)]
        wait_until(lambda: all(f.exists() for f in files), f"{name} stopped", limit)
        return [f.read_text() for f in files]


def test_a_signal_of_scancel_reaches_every_rank_under_srun(fresh: Lab) -> None:
    """`scancel --signal=USR1` and SIGTERM go to all processes of the steps; the job ends well."""
    work = Work(fresh)
    jobs = {
        name: work.submit(name, f"srun -n2 --overlap {work.command(name)}")
        for name in ("USR1", "TERM")
    }
    for name, job in jobs.items():
        work.up(name)
        fresh.scancel(job, signal=name)
    for name, job in jobs.items():
        assert work.reasons(name) == [f"a signal came: SIG{name}"] * 2
        fresh.wait_state(job, "COMPLETED")


def test_a_launcher_that_does_not_handle_it_dies_of_the_signal(fresh: Lab) -> None:
    """Why torchrun and its like need the recipe with the batch shell."""
    work = Work(fresh)
    job = work.submit("launched", f"srun -n2 --overlap {work.command('launched', launched=True)}")
    work.up("launched")
    fresh.scancel(job, signal="USR1")
    fresh.wait_state(job, "FAILED")


def test_the_batch_shell_turns_the_signal_into_the_kill_switch(fresh: Lab) -> None:
    """`B:` reaches the batch shell alone; the switch then stops ranks under any launcher."""
    work, name = Work(fresh), "trapped"
    stop = work.stop(name)
    script = TRAPPED.format(stop=stop, command=work.command(name, launched=True), name=name)
    job = work.submit(name, script)
    work.up(name)
    fresh.run(["scancel", "--batch", "--signal=USR1", job])
    assert work.reasons(name) == [f"the kill switch is there: {stop}"] * 2
    fresh.wait_state(job, "COMPLETED")
    assert (fresh.work / f"{name}.code").read_text() == "0\n"


@pytest.mark.long
def test_slurms_own_signal_before_the_end_reaches_whom_it_says(fresh: Lab) -> None:
    """--signal=USR1@N: every rank; --signal=B:USR1@N: the batch shell. Slurm looks every 30 s."""
    work = Work(fresh)
    stop = work.stop("batch")
    trapped = TRAPPED.format(stop=stop, command=work.command("batch"), name="batch")
    jobs = [
        work.submit("steps", f"srun -n2 --overlap {work.command('steps')}", time=1, signal="USR1@50"),
        work.submit("batch", trapped, time=1, signal="B:USR1@50"),
    ]  # fmt: skip
    assert work.reasons("steps", 50.0) == ["a signal came: SIGUSR1"] * 2
    assert work.reasons("batch", 20.0) == [f"the kill switch is there: {stop}"] * 2
    for job in jobs:
        fresh.wait_state(job, "COMPLETED")


def test_without_any_signal_the_guard_knows_the_end_of_the_allocation(fresh: Lab) -> None:
    """squeue tells it where the environment does not; the job is over long before its limit."""
    program = fresh.work / "end.py"
    program.write_text(
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from sentinel.training import Guard\n"
        "guard = Guard(memory=None)\n"
        "print(guard.should_stop(), guard.reason, 0 < guard.left, guard.troubles)\n"
    )
    jobs = [fresh.sbatch(f"{sys.executable} end.py", time=minutes) for minutes in (1, 60)]
    for job in jobs:
        fresh.wait_state(job, "COMPLETED")
    told = [(fresh.work / f"slurm-{job}.out").read_text().strip() for job in jobs]
    assert told == ["True the allocation is about to end True {}", "False  True {}"]
