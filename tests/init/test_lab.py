"""`sentinel init` on a real cluster, by an ordinary user with a fresh account."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.accounts import User
from tests.lab.client import Done
from tests.lab.cluster import Lab
from tests.lab.cron import NONE
from tests.lab.smtp import SmtpServer
from tests.lab.waiting import wait_until
from tests.stacks.training import as_user

Call = Callable[..., Done]
NAME = "llm 10b; $(touch owned)"
SCRIPT = """\
#!/bin/sh
mkdir -p {work}/ckpt/step_100 && echo x >{work}/ckpt/step_100/model.pt
touch -d '1 hour ago' {work}/ckpt/step_100/model.pt {work}/ckpt/step_100
for i in 98 99 100; do
    echo " [2026-11-22 10:0$((i % 10)):00] iteration      $i/  500000 | consumed samples: ${{i}}00 | elapsed time per iteration (ms): 900.1 | learning rate: 1.0E-04 | global batch size: 256 | lm loss: 2.1E+00 | loss scale: 1.0 | grad norm: 0.5 |"
done
echo "saving checkpoint to {work}/ckpt/step_100"
exec sleep 600
"""


@pytest.fixture
def user(fresh: Lab) -> User:
    return fresh.user("newcomer")


@pytest.fixture
def call(fresh: Lab, user: User) -> Call:
    """`sentinel WORDS…` as that user types it."""

    def do(*words: str) -> Done:
        argv = [*NONE, *as_user(user, [sys.executable, "-m", "sentinel", *words])]
        return fresh.run(argv, limit=120, env={"HOME": str(user.home), "USER": user.name})

    return do


def tree(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*"))


def test_init_watches_what_runs_and_undo_leaves_nothing(
    fresh: Lab, user: User, call: Call, smtp: SmtpServer
) -> None:
    """A dry run does nothing; --yes ends with the mail that will come, and the proof; the mail
    about the death comes with the next passes; undone, the home is as it was."""
    work = fresh.work / "run"
    work.mkdir(mode=0o777, exist_ok=True)
    work.chmod(0o777)
    output = f"{work}/%j.out"
    job = fresh.sbatch(SCRIPT.format(work=work), name=NAME, user=user, output=output)
    log = work / f"{job}.out"
    wait_until(lambda: log.exists() and "saving" in log.read_text(), "the training")
    before, mail = tree(user.home), ("--mail", "newcomer@example.org")
    there = (*mail, "--smtp", f"localhost:{smtp.port}")
    shown = call("init", "--dry-run", *there)
    assert (shown.returncode, tree(user.home), smtp.mails) == (0, before, []), shown
    assert "3 small jobs" in shown.stdout
    done = call("init", "--yes", *there)
    assert done.returncode == 0, done
    assert f"training {NAME}: job {job}" in done.stdout
    assert f"checkpoints {work}/ckpt" in done.stdout
    assert f"This is the message that you will get when {NAME} dies:" in done.stdout
    assert f"subject: DIED {NAME}" in done.stdout  # as the true one: with its guidance
    assert "If nobody acts: The training stands still" in done.stdout
    assert "rehearsal" not in done.stdout, "no command names an alert that is not there"
    assert f"job {job} FAILED with exit code 1" in done.stdout
    assert "lm loss: 2.1E+00" in done.stdout
    assert "its progress: " in done.stdout
    assert "when it has finished: not known; exit code 0 with a clean output" in done.stdout
    assert "no number was recognised" not in done.stdout
    proof = done.stdout.partition("What is watched:")[2]
    assert "chain, one pass every 10m" in proof or "a chain of small Slurm jobs" in proof
    assert "how a job ended, once Slurm has forgotten it" in proof
    assert "llm-10b-touch-owned (job), every 10m; now ok" in proof
    assert not list(fresh.work.rglob("owned"))
    assert [m.recipients for m in smtp.mails] == [["newcomer@example.org"]]
    file = user.home / ".config/sentinel/sentinel.yaml"
    assert "undrain: true" not in file.read_text()
    assert "sentinel cron install --mode chain --every 4m" in proof
    assert call("cron", "install", "--mode", "chain", "--every", "4m").returncode == 0
    again = call("config", "check", "--proof").stdout
    assert "sentinel itself" in again.partition("What is not watched:")[2]
    assert "once Slurm has forgotten it" not in again, "it advises what is done already"
    assert call("init", "--yes").returncode == 73
    fresh.scancel(*fresh.ask(["squeue", "-h", "-n", NAME, "-o", "%A"]).split(), signal="KILL")
    undone = call("init", "--undo", "--yes", "--purge")
    assert undone.returncode == 0, undone
    assert tree(user.home) == before
    assert not fresh.ask(["squeue", "-h", "-u", user.name, "-t", "PD", "-o", "%A"]).split()
