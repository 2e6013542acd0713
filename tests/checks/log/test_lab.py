"""A job of four real nodes hangs: the log says so, and the nodes say what else is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sentinel.checks.log import Log
from sentinel.checks.log.resume_commands import list_resume_commands
from sentinel.clock import SystemClock
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Job
from sentinel.core.model import Finding, Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.stacks.closer import look_closer
from sentinel.testing import START, context
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until
from tests.nodes.nodes import Nodes
from tests.stacks.training import Training


class Hang:
    """A training that has written its last line, watched over twenty minutes."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        log = folder / "log"
        log.write_text("step 1\nstep 2\n")
        self.check = Log(job="llm", path=FilePath(log), stale_after=Duration(1200))
        self.slurm = SlurmSnapshot(
            SlurmClient(environ=lab.env), SystemClock(), users=None, max_age=0.0
        )
        self.remote = Nodes(lab, folder).reach(timeout=8, connect=2)
        self.memory: dict[str, object] = {}

    def look(self, minutes: float) -> Finding:
        ctx = context(
            self.slurm,  # type: ignore[arg-type]
            now=shift_instant(START, minutes * 60),
            memory=self.memory,
            remote=self.remote,
            limit=60.0,
        )
        report = self.check.run(ctx)
        self.memory = dict(report.memory or {})
        return report.findings[0]


@pytest.mark.long
def test_the_nodes_confirm_a_hang_and_name_what_is_odd(
    fresh: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that stand still; then a node whose rank has died; then one that is gone."""
    monkeypatch.setenv("SLURM_CONF", fresh.env["SLURM_CONF"])
    training = Training(fresh, each=1, odd=3)
    hang = Hang(fresh, tmp_path)
    assert hang.look(0).status is Status.OK
    found = hang.look(1e6)
    assert found.status is Status.CRITICAL
    assert "the processor time of its tasks stands still" in found.summary
    assert "no process" not in found.summary
    training.on(2, f"kill -9 {training.pid(2)}")
    assert "no process of the job is left on node-2" in hang.look(1e6 + 1).summary
    fresh.cut_node(1)
    found = hang.look(1e6 + 2)
    assert found.status is Status.CRITICAL
    assert "node-1 does not answer" in found.summary


@pytest.mark.long
def test_what_is_told_of_a_log_that_was_thrown_away_ends_with_its_job(
    lab: Lab, tmp_path: Path
) -> None:
    """Nobody has to silence it, and the log of another job is watched on."""
    thrown = lab.sbatch("sleep 600", output="/dev/null", name="thrown")
    kept = lab.sbatch("while sleep 1; do date; done", output=str(tmp_path / "kept"), name="kept")
    for job in (thrown, kept):
        lab.wait_state(job, "RUNNING")
    config, book = tmp_path / "sentinel.yaml", tmp_path / "book"
    config.write_text(
        f"state: {tmp_path}/state\nchannels: {{book: {{kind: file, path: {book}}}}}\n"
        "checks: {logs: {kind: log, match: thrown|kept, users: ['*'], blind_after: 1}}\n"
    )

    def look() -> list[tuple[str, str]]:
        argv = [sys.executable, "-m", "sentinel", "tick", "--all", "-c", str(config)]
        subprocess.run(argv, env={**os.environ, **lab.env}, check=True, timeout=120)
        told = (json.loads(line) for line in book.read_text().splitlines())
        return [(one["reason"], one["summary"].partition(": ")[2]) for one in told]

    (begin,) = look()
    assert begin == ("firing", "/dev/null is a character device, not a log; name a regular file")
    assert look() == [begin]
    lab.scancel(thrown)
    lab.wait_state(thrown, "CANCELLED")
    assert look() == [begin, ("resolved", "saw 1 of 1 logs")]
    lab.scancel(kept)


@pytest.mark.long
def test_a_closer_look_leaves_no_row_in_accounting(
    fresh_accounting: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pair of looks is two connections to each of the four nodes; `sentinel stacks`, whose look is a
    step, shows that a row would have been seen."""
    lab = fresh_accounting
    monkeypatch.setenv("SLURM_CONF", lab.env["SLURM_CONF"])
    training = Training(lab, each=1, odd=3)
    slurm = SlurmSnapshot(SlurmClient(environ=lab.env), SystemClock(), users=None, max_age=0.0)
    (running,) = slurm.jobs()

    def rows() -> list[str]:
        return lab.ask(["sacct", "-nPD", "-j", training.job, "--format=JobID"]).splitlines()

    wait_until(lambda: len(rows()) == 3, "job, batch script and step in accounting", 30.0)
    before = rows()
    nodes = Nodes(lab, tmp_path)
    names = [n.name for n in lab.nodes]
    logins = [nodes.logins(name) for name in names]
    log = str(tmp_path / "log")
    look_closer(
        nodes.reach(), running, names, log=log, quiet=60.0, before={}, limit=60.0, pause=2.0
    )
    assert [nodes.logins(n) - m for n, m in zip(names, logins, strict=True)] == [2] * len(names)
    training.stacks("--no-save")
    wait_until(lambda: len(rows()) > len(before), "the step of `sentinel stacks`", 30.0)
    assert [row for row in rows() if row not in before] == [f"{training.job}.1"]


def test_the_lines_that_are_told_do_what_they_say(fresh: Lab, tmp_path: Path) -> None:
    """Pasted one after the other: the second training begins when the first has ended, elsewhere; then
    the next one that waits is kept away too, and the node is drained with its reason."""
    slurm = SlurmSnapshot(SlurmClient(environ=fresh.env), SystemClock(), users=None, max_age=0.0)
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/sh\nexec sleep 300\n")
    submit = ["sbatch", "--parsable", "--job-name=llm", f"--chdir={tmp_path}", str(script)]
    first = fresh.ask(submit).strip()

    def one(number: str) -> Job:
        return next(j for j in slurm.jobs() if j.id == number)

    wait_until(lambda: one(first).state == "RUNNING", "the training", 30.0)
    node = one(first).nodes
    how = slurm.submission(first)
    commands = list_resume_commands(one(first), node, how, (), "Xid 79: it's lost")
    again, end, drain = (command.render() for command in commands)
    second = fresh.run(["sh", "-c", again]).stdout.split()[-1]
    assert (one(second).state, one(second).exclude) == ("PENDING", node)
    fresh.run(["sh", "-c", end])
    wait_until(lambda: one(second).state == "RUNNING", "the one after it", 30.0)
    fresh.run(["sh", "-c", drain])
    (told,) = [n for n in slurm.nodes() if n.name == node]
    assert "DRAIN" in told.flags
    assert told.reason == f"job {first} hung: Xid 79: it's lost"
    third = fresh.ask([*submit[:2], f"--dependency=afterany:{second}", *submit[2:]]).strip()
    elsewhere = one(second).nodes
    commands = list_resume_commands(one(second), elsewhere, None, [one(third)])
    keep, end = (command.render() for command in commands)
    fresh.run(["sh", "-c", keep])
    assert one(third).exclude == elsewhere
    assert end.endswith(f" ] && scancel {second}")
