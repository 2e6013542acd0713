"""`sentinel report --from … --sacct` beside a real slurmdbd: what accounting says of real jobs is what
the ledger has of them."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sentinel import cli
from sentinel.report.gpu_time import CLASSES
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.nightly]

TRAINER = """\
export TZ=UTC
say() { echo "[$(date '+%Y-%m-%d %H:%M:%S')] $*"; }
echo "using world size: 4, data-parallel size: 4"
say "initializing torch distributed ..."
sleep 3
n=FIRST
while [ $n -lt LAST ]; do
    n=$((n + 1)); sleep 1
    say " iteration $n/ 1000000 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.3E+00 |"
    [ $n != SAVED ] || say "  successfully saved checkpoint from iteration $n to /ckpt"
done
"""
"""The lines of Megatron-LM's training_log() and save_checkpoint()."""


def make_script(first: int, last: int, saved: int, end: str) -> str:
    """A training from one step to another, and how it ends."""
    text = TRAINER.replace("FIRST", str(first)).replace("LAST", str(last))
    return text.replace("SAVED", str(saved)) + end


def book(lab: Lab, jobs: list[str]) -> dict[str, list[str]]:
    """State, start, end, seconds, submission and GPUs of each, by sacct, as soon as all have ended."""

    def ask() -> dict[str, list[str]]:
        fields = "JobID,State,Start,End,ElapsedRaw,Submit,AllocTRES"
        argv = ["env", "SLURM_TIME_FORMAT=%s", "sacct", "-X", "-n", "-P", "-o", fields]
        rows = [line.split("|") for line in lab.ask([*argv, "-j", ",".join(jobs)]).splitlines()]
        return {row[0]: row[1:] for row in rows if row[3].isdigit()}

    return wait_until(lambda: len(found := ask()) == len(jobs) and found, "ended by sacct", 60.0)


def report(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> dict[str, Any]:
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(lab.work)
    capsys.readouterr()
    assert cli.main(["report", "--json", "--sacct", "--from", *words]) == 0
    (told,) = json.loads(capsys.readouterr().out)["runs"]
    hours = told["gpu_hours"]
    assert sum(hours[name] for name in CLASSES) == pytest.approx(hours["held"], abs=1e-4)
    assert isinstance(told, dict)
    return told


def test_the_ledger_has_what_sacct_says(
    fresh_accounting: Lab,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One that a fault ends, one that redoes its steps and is cancelled, one whose log is lost, and one
    that accounting never had. The logs say UTC, whatever zone the host has."""
    lab, out = fresh_accounting, fresh_accounting.work / "llm-%j.out"
    asked: dict[str, Any] = {"gres": "gpu:2", "nodes": 2, "name": "llm", "output": out}
    crash = "say 'RuntimeError: CUDA error: uncorrectable ECC error encountered'; exit 1"
    first = lab.sbatch(make_script(0, 12, 8, crash), **asked)
    lab.wait_state(first, "FAILED", 60.0)
    second = lab.sbatch(make_script(8, 10_000, 16, ""), **asked)
    path = lab.work / f"llm-{second}.out"
    wait_until(lambda: path.exists() and "iteration 20/" in path.read_text(), "step 20", 60.0)
    lab.scancel(second)
    third = lab.sbatch("sleep 3", **asked)
    lab.wait_state(third, "COMPLETED", 60.0)
    last = lab.sbatch(make_script(16, 20, 18, ""), **asked)
    lab.wait_state(last, "COMPLETED", 60.0)
    truth = book(lab, [first, second, third, last])
    (lab.work / f"llm-{third}.out").unlink()
    told = report(lab, monkeypatch, capsys, f"{lab.work}/llm-*.out")

    assert {row[5].count("gres/gpu=4") for row in truth.values()} == {1}, truth
    hours = {name: amount * 3600 / 4 for name, amount in told["gpu_hours"].items()}
    assert hours["held"] == pytest.approx(sum(int(row[3]) for row in truth.values()), abs=0.1)
    assert hours["unknown"] == pytest.approx(int(truth[third][3]), abs=1.1)
    assert hours["redone"] == pytest.approx(4 + 4, abs=3), "steps 9 to 12, and 17 to 20"
    assert hours["useful"] == pytest.approx(18, abs=4), "one second a step, and its line"
    queued = sum(int(row[1]) - int(row[4]) for row in truth.values())
    assert told["calendar_hours"]["queued"] * 3600 == pytest.approx(queued, abs=0.1)
    ends = [(one["cause"], one["at"]) for one in told["interruptions"]]
    assert [cause for cause, _ in ends] == ["gpu", "person"], ends
    assert told["interruptions"][0]["nodes"].startswith("node-[0-1]")
    assert any("whose log was not given" in doubt for doubt in told["doubts"])

    forgotten = lab.work / "llm-99999.out"
    forgotten.write_text((lab.work / f"llm-{last}.out").read_text())
    os.utime(forgotten, (time.time(), time.time()))
    again = report(lab, monkeypatch, capsys, f"{lab.work}/llm-*.out")
    assert any("accounting does not know a job" in doubt for doubt in again["doubts"])
