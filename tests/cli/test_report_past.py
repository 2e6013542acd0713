"""`sentinel report --from`: past jobs from their logs, before sentinel was there."""

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from sentinel import cli
from sentinel.checks.log.past_files import MAX_END_BYTES
from sentinel.checks.log.past_runs import name_past_job
from sentinel.core.errors import CannotTell
from sentinel.report.gpu_time import CLASSES
from tests.checks.log.past_logs import EPOCH, PastJobLog, make_life
from tests.slurm.stand_ins import StandIns


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with the logs of two jobs of one training, the second of which redoes 100 steps."""
    folder = tmp_path / "logs"
    folder.mkdir()
    second = PastJobLog(3000)
    second.step = 200
    second.at += 100
    second.train(300)
    second.save(40)
    for name, log in (("llm-4711.out", make_life()), ("llm-4712.out", second)):
        (folder / name).write_text(log.text)
        os.utime(folder / name, (EPOCH + log.at, EPOCH + log.at))
    return folder


def run(*words: str) -> int:
    return cli.main(["report", *words])


def test_what_programs_read(
    logs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The parts add up to what both jobs held, and nothing is written anywhere."""
    monkeypatch.chdir(tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    assert run("--json", "--from", f"{logs}/*.out") == 0
    (told,) = json.loads(capsys.readouterr().out)["runs"]
    hours = told["gpu_hours"]
    assert told["run"] == "llm"
    assert hours["held"] == pytest.approx(16 * (1635 + 1640) / 3600)
    assert sum(hours[name] for name in CLASSES) == pytest.approx(hours["held"], abs=1e-4)
    assert hours["redone"] == pytest.approx(16 * 500 / 3600)
    assert hours["useful"] == pytest.approx(16 * 2500 / 3600)
    assert told["calendar_hours"]["not_submitted"] == pytest.approx((3000 - 1635) / 3600)
    assert run("mine", "--csv", "--from", f"{logs}/*.out") == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["run"], float(row["held"])) == ("mine", hours["held"])
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_a_period_and_the_number_of_gpus(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With `--since` only what was held then counts. Whoever asks knows the number of GPUs best."""
    assert run("--since", "1h", "--from", f"{logs}/*.out") == 0
    assert "no job of these files ran then" in capsys.readouterr().out
    assert run("--gpus", "8", "--json", "--from", f"{logs}/*4711.out") == 0
    (told,) = json.loads(capsys.readouterr().out)["runs"]
    assert told["gpu_hours"]["held"] == pytest.approx(8 * 1635 / 3600)


def test_what_is_not_known_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No number of GPUs, no checkpoints: the sentence says so, and a note says what helps."""
    log = PastJobLog()
    log.lines = log.lines[1:]
    log.train(100)
    (tmp_path / "a-1.log").write_text(log.text)
    assert run("--from", f"{tmp_path}/*.log") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("Run a held GPUs, but how many is not known. Say it by --gpus.")
    assert "say it by --gpus N" in out
    assert run("--gpus", "8", "--from", f"{tmp_path}/*.log") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "not known: nothing that --from names tells which" in out


def test_files_that_are_no_logs(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is named with its reason, and the others are read all the same."""
    (logs / "empty-1.out").touch()
    (logs / "binary-2.out").write_bytes(bytes(range(256)) * 100)
    os.mkfifo(logs / "pipe-3.out")
    (logs / "gone-4.out").symlink_to(logs / "nowhere")
    assert run("--json", "--from", f"{logs}/*.out") == 0
    told = capsys.readouterr()
    assert len(json.loads(told.out)["runs"]) == 1
    lines = told.err.splitlines()
    assert len(lines) == 4
    for name in ("empty-1", "binary-2", "pipe-3", "gone-4"):
        assert sum(name in line for line in lines) == 1


@pytest.mark.parametrize("words", [(), ("--json",), ("--csv",), ("--since", "1h")])
def test_if_no_file_can_be_read_nothing_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """It ends as a question without an answer, and prints no report without runs."""
    (tmp_path / "empty-1.out").touch()
    (tmp_path / "timeless-2.out").write_text("step 1 loss 2.0\nstep 2 loss 1.9\n")
    assert run(*words, "--from", f"{tmp_path}/*.out") == CannotTell.exit_code
    told = capsys.readouterr()
    assert told.out == ""
    assert "none of these files could be read as the log of a job" in told.err
    assert "timeless-2" in told.err


def test_a_log_of_10_gb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its beginning and end are read. What lies between is unknown, and the report says so."""
    log = make_life()
    path = tmp_path / "llm-1.out"
    with path.open("wb") as file:
        file.write(log.text.encode())
        log.lines, log.at, log.step = [], log.at + 36_000, log.step + 7000
        log.train(100)
        file.seek(10 * 10**9)
        file.write(b"\n" + log.text.encode())
    assert path.stat().st_size > 100 * MAX_END_BYTES
    assert run("--json", "--from", str(path)) == 0
    (told,) = json.loads(capsys.readouterr().out)["runs"]
    assert told["gpu_hours"]["unknown"] == pytest.approx(16 * 10, rel=0.01)
    assert any("9.93 GB in the middle" in doubt for doubt in told["doubts"])


def test_two_files_of_one_job_count_once(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its errors have a file of their own."""
    assert run("--json", "--from", f"{logs}/*4711.out") == 0
    alone = json.loads(capsys.readouterr().out)["runs"]
    first = make_life()
    first.lines = first.lines[1:3]
    (logs / "llm-4711.err").write_text(first.text)
    assert run("--json", "--from", f"{logs}/*4711.*") == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["gpu_hours"] == alone[0]["gpu_hours"]


def test_two_jobs_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They take nothing from each other, and no ETTR is given."""
    for job in "12":
        (tmp_path / f"llm-{job}.out").write_text(make_life().text)
    assert run("--json", "--from", f"{tmp_path}/llm-*.out") == 0
    (told,) = json.loads(capsys.readouterr().out)["runs"]
    assert told["ettr"] is None
    assert told["gpu_hours"]["redone"] == 0
    assert any("two of its jobs ran at once" in doubt for doubt in told["doubts"])


def write_progress(at: int, words: str, job: str = "4711") -> str:
    """A line of append_to_progress_log() of megatron/training/utils.py."""
    log = PastJobLog(at)
    return f"{log.stamp()}\tJob ID: {job}\t# GPUs: 64\t{words}\n"


PROGRESS = "".join(
    (
        write_progress(0, "Starting job"),
        write_progress(1100, "Saved checkpoint\tIteration: 200\tJob throughput: 400.0 TFLOP/s/GPU"),
        write_progress(2100, "Saved checkpoint\tIteration: 400\tJob throughput: 400.0 TFLOP/s/GPU"),
        write_progress(5000, "Starting job", "4712"),
        write_progress(
            6200, "Saving async checkpoint\tIteration: 600\tJob throughput: 400.0", "4712"
        ),
        write_progress(6250, "Saved async checkpoint\tIteration: 600", "4712"),
    )
)


def test_progress_txt_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each checkpoint says how far it was. The first steps took as long as later ones: 100 and 200 s
    of the two starts were none."""
    (tmp_path / "llm").mkdir()
    (tmp_path / "llm" / "progress.txt").write_text(PROGRESS)
    told = report_json(capsys, "--from", f"{tmp_path}/llm/progress.txt")
    hours = told["gpu_hours"]
    assert told["run"] == "llm"
    assert hours["held"] == pytest.approx(64 * (2100 + 1250) / 3600)
    assert hours["useful"] == pytest.approx(64 * 2000 / 3600, rel=0.03)
    assert hours["startup"] == pytest.approx(64 * (100 + 1200) / 3600)
    assert any("after its last checkpoint" in doubt for doubt in told["doubts"])
    (tmp_path / "llm" / "progress.txt").write_text("nothing\n" * 9)
    assert run("--from", f"{tmp_path}/llm/progress.txt") == CannotTell.exit_code
    assert "--log-progress" in capsys.readouterr().err


def test_progress_txt_beside_logs(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says which checkpoints are complete, and how many GPUs there were; the log says the rest."""
    for path in logs.glob("*.out"):
        kept = [line for line in path.read_text().splitlines() if "success" not in line]
        path.write_text("".join(f"{line}\n" for line in kept if "world size" not in line))
    (logs / "progress.txt").write_text(PROGRESS)
    told = report_json(capsys, "--from", f"{logs}/*")
    assert told["run"] == "llm"
    assert told["gpu_hours"]["held"] == pytest.approx(64 * (1635 + 1600) / 3600)
    assert told["gpu_hours"]["useful"] > 0


def test_checkpoints_that_are_still_there(
    logs: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Their folder says which steps are in the model where no log does; an empty one is told."""
    for path in logs.glob("*.out"):
        kept = [line for line in path.read_text().splitlines() if "success" not in line]
        path.write_text("".join(f"{line}\n" for line in kept))
    assert report_json(capsys, "--from", f"{logs}/*.out")["goodput"] is None
    saved = tmp_path / "checkpoints"
    (saved / "iter_0000200").mkdir(parents=True)
    (saved / "iter_0000200" / "model.pt").write_bytes(b"x" * 4096)
    for path in (saved / "iter_0000200" / "model.pt", saved / "iter_0000200"):
        os.utime(path, (EPOCH + 1130, EPOCH + 1130))
    told = report_json(capsys, "--from", f"{logs}/*.out", str(saved))
    assert told["run"] == "llm"
    assert told["gpu_hours"]["useful"] == pytest.approx(16 * 1000 / 3600, rel=0.02)
    assert told["gpu_hours"]["redone"] == pytest.approx(16 * 500 / 3600, rel=0.02)
    (tmp_path / "none").mkdir()
    assert report_json(capsys, "--from", f"{logs}/*.out", f"{tmp_path}/none")["goodput"] is None
    assert run("--from", f"{tmp_path}/none") == CannotTell.exit_code
    assert "no complete checkpoint" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--gpus", "8"], "needs --from"),
        (["--gpus", "0", "--from", "/dev/null"], "1 or more"),
        (["--sacct"], "needs --from"),
        (["--from", "/nowhere/*.out"], "no file is named /nowhere/"),
    ],
)
def test_words_that_cannot_be_meant(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused, with what is wrong."""
    assert run(*words) == 64
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "job", "name"),
    [
        ("logs/slurm-4711.out", "4711", "logs"), ("x/llm-70b-4711.out", "4711", "llm-70b"),
        ("x/4711_3.err", "4711_3", "x"), ("x/llm_4711.log", "4711", "llm"),
        ("x/train-2024-05-05.log", "train-2024-05-05.log", "train"), ("x/out.txt", "out.txt", "x"),
        ("x/llama2_70b_lora.txt", "llama2_70b_lora.txt", "llama2_70b_lora"),
        ("x/gpt3.log", "gpt3.log", "gpt3"), ("x/job4711.out", "4711", "x"),
        ("x/llm.4711.out", "4711", "llm"), ("x/out.4711", "4711", "x"), ("x/llm.log.1", "llm.log.1", "llm"),
        ("x/llama2-70b_4711_12.out", "4711_12", "llama2-70b"), ("x/slurm4711_3.out", "4711_3", "x"),
    ],
)  # fmt: skip
def test_names_of_files(path: str, job: str, name: str) -> None:
    """Those of sbatch's %j, %A_%a and %x, and others."""
    found = name_past_job(path)
    assert (found.job, found.run) == (job, name)


CONFIG = """\
AccountingStorageType   = {storage}
ClusterName             = lab
SlurmUser               = slurm(64030)
SLURM_VERSION           = 23.11.4
"""


def booked(job: str, began: int, ended: int, state: str, code: str = "0:0", **more: str) -> str:
    """A line of `sacct -p`, with marks of the stand-in. The job waited for 300 s."""
    fields = {
        "job": job, "form": job, "state": state, "exit": code, "start": str(EPOCH + began),
        "end": str(EPOCH + ended), "nodes": "gpu[01-04]", "reason": "None", "name": "llm",
        "user": "alice", "partition": "main", "submitted": str(EPOCH + began - 300), "count": "4",
        "allocated": "billing=8,cpu=8,gres/gpu=32,node=4",
    } | more  # fmt: skip
    return "@".join([*fields.values(), job, "\n"])


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIns:
    """A cluster with accounting."""
    folder = tmp_path / "bin"
    folder.mkdir()
    programs = StandIns(folder)
    programs.says("scontrol", CONFIG.format(storage="accounting_storage/slurmdbd"))
    monkeypatch.setenv("PATH", programs.env["PATH"])
    return programs


def report_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run("--json", *words) == 0
    (told,) = json.loads(capsys.readouterr().out)["runs"]
    assert isinstance(told, dict)
    hours = told["gpu_hours"]
    assert sum(hours[name] for name in CLASSES) == pytest.approx(hours["held"], abs=1e-4)
    return told


def test_accounting_says_when_where_and_how(
    logs: Path, slurm: StandIns, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prologs count as start-up, the queue is known, and so is a job without a log."""
    lines = (
        booked("4711", -60, 1700, "NODE_FAIL", "1:0"),
        booked("4712", 2900, 4700, "COMPLETED"),
        booked("4713", 5000, 5600, "FAILED", "1:0"),
        booked("9999", 6000, 6100, "FAILED", "1:0", user="bob"),
    )
    slurm.says("sacct", "".join(lines))
    told = report_json(capsys, "llm", "--sacct", "--from", f"{logs}/*.out", f"{logs}/*.out")
    assert told["gpu_hours"]["held"] == pytest.approx(32 * (1760 + 1800) / 3600)
    assert told["gpu_hours"]["startup"] == pytest.approx(32 * (155 + 200) / 3600)
    assert told["gpu_hours"]["idle"] == pytest.approx(32 * 60 / 3600)
    assert told["gpu_hours"]["unknown"] == 0
    assert told["calendar_hours"]["queued"] == pytest.approx(2 * 300 / 3600, abs=1e-5)
    assert [(one["cause"], one["nodes"]) for one in told["interruptions"]] == [
        ("node", "gpu[01-04]")
    ]


def test_a_job_between_without_a_log(
    logs: Path, slurm: StandIns, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it did is not known, and a note says so. Another user's job of that name is not counted."""
    lines = (
        booked("4711", -60, 1700, "NODE_FAIL", "1:0"),
        booked("4712", 2900, 4700, "COMPLETED"),
        booked("4713", 1800, 2400, "FAILED", "1:0"),
        booked("9999", 1800, 2400, "FAILED", "1:0", user="bob"),
    )
    slurm.says("sacct", "".join(lines))
    told = report_json(capsys, "--sacct", "--from", f"{logs}/*.out")
    assert told["gpu_hours"]["unknown"] == pytest.approx(32 * 600 / 3600)
    assert any("whose log was not given" in doubt for doubt in told["doubts"])


def test_accounting_that_forgot_a_job(
    logs: Path, slurm: StandIns, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its log says when it ran, and a note says that accounting does not. An id that another job had
    later does not make the log its own."""
    later = booked("4712", 900_000, 900_600, "COMPLETED", name="other")
    slurm.says("sacct", booked("4711", 0, 1635, "NODE_FAIL", "1:0") + later)
    told = report_json(capsys, "llm", "--sacct", "--from", f"{logs}/*.out")
    assert told["gpu_hours"]["held"] == pytest.approx((32 * 1635 + 16 * 1640) / 3600)
    assert any("accounting does not know a job" in doubt for doubt in told["doubts"])


def test_without_accounting(
    logs: Path, slurm: StandIns, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is made up: the command says why it cannot tell."""
    slurm.says("sacct", err="sacct: error: slurmdbd is down", code=1)
    assert run("--sacct", "--from", f"{logs}/*.out") == 69
    assert "slurmdbd is down" in capsys.readouterr().err
    slurm.says("scontrol", CONFIG.format(storage="(null)"))
    assert run("--sacct", "--from", f"{logs}/*.out") == 69
    assert "no accounting" in capsys.readouterr().err
    (logs / "log.txt").write_text(make_life().text)
    assert run("--sacct", "--from", f"{logs}/log.txt") == 64
    assert "has the id of a job" in capsys.readouterr().err
