"""`sentinel check KIND` on a terminal: each kind's own table, at 80 and 160 columns, and none in a pipe."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.alerting.observations import RunOutcome
from sentinel.checks.du.check import DuCheck
from sentinel.checks.fs.check import FsCheck
from sentinel.checks.gpu.check import GpuCheck
from sentinel.checks.job.check import JobCheck
from sentinel.checks.quota.check import QuotaCheck
from sentinel.cli import outcome_tables
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.guidance import Guidance, look
from sentinel.core.model import Coverage, Finding, Report, Status
from tests.service.screen import Screen

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
NOW = Instant(wall=1_790_000_000 * SECOND)
HOUR_S = 3600
Samples = Callable[[str, str, float], Sequence[tuple[Instant, float]]]


def show(columns: int, home: Path, *words: object, code: int = 0) -> list[str]:
    """The lines that `sentinel check WORDS...` leaves on a terminal without a state."""
    env = {**os.environ, "HOME": str(home), "LANG": "C.UTF-8"}
    with Screen(["check", *words], env, str(home), columns) as screen:
        assert screen.wait() == code, screen.text
    lines = ESCAPES.sub("", screen.text).rstrip("\n").split("\n")
    return [line.rstrip() for line in lines if not line.startswith("… ")]


def draw(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    plugin: object,
    findings: tuple[Finding, ...],
    history: Samples = lambda *_: (),
    columns: int = 80,
) -> list[str]:
    """The lines of a table of these findings."""
    monkeypatch.setenv("COLUMNS", str(columns))
    report = Report(findings=findings, coverage=Coverage(of="things", meant=len(findings)))
    itself = Finding(subject="", status=Status.OK, summary="saw all")
    outcome = RunOutcome(check="x", kind="x", itself=itself, report=report, seconds=0.1)
    outcome_tables.print_check_table(outcome, plugin, history, NOW)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_the_commands_that_guidance_names_stand_below_it_and_are_not_wrapped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever pastes a line gets all of it; what is well has none."""
    command = f"du -xah -d 1 /{'x' * 90} | sort -h | tail | cat -v"
    known = Guidance(impact="It fills.", todo="`du` below shows what is largest.")
    found = Finding(
        subject="/x",
        status=Status.CRITICAL,
        summary="full",
        commands=(look(command),),
        guidance=known,
    )
    lines = draw(capsys, monkeypatch, FsCheck(), (found,))
    assert lines[-2:] == ["`du` below shows what is largest.", f"$ {command}"]
    well = replace(found, status=Status.OK)
    assert command not in "\n".join(draw(capsys, monkeypatch, FsCheck(), (well,)))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """30 MB in one directory, 10 in another."""
    for name, size in (("large", 30_000_000), ("small", 10_000_000)):
        (tmp_path / "tree" / name).mkdir(parents=True)
        (tmp_path / "tree" / name / "file").write_bytes(b"x" * size)
    return tmp_path / "tree"


@pytest.mark.parametrize("columns", [80, 160])
def test_du_tells_its_total_and_draws_the_largest(columns: int, tree: Path, tmp_path: Path) -> None:
    """Bytes and files first; then a row a directory, with its share of the whole as a bar."""
    lines = show(columns, tmp_path, "du", "--path", tree)
    assert max(map(len, lines)) <= columns
    assert re.search(r"size +files +status", lines[0])
    text = "\n".join(lines)
    assert "largest directories and owners" in text
    rows = [line for line in lines if re.search(r"MB +█+░* +\d+% +\d", line)]
    assert re.search(r"30 MB +█+░+ +7[45]% +2 ", rows[0]), rows
    assert "–" not in text, "no column of dashes"


@pytest.mark.parametrize("columns", [80, 160])
def test_checkpoint_lists_the_steps(columns: int, tmp_path: Path) -> None:
    """The highest first, each with its size, its age, and why it is not complete."""
    for step, age in ((100, 7200), (200, 3600), (300, 0)):
        one = tmp_path / "run" / f"global_step{step}"
        one.mkdir(parents=True)
        (one / "model.bin").write_bytes(b"x" * 1_000_000)
        then = one.stat().st_mtime - age
        os.utime(one / "model.bin", (then, then))
        os.utime(one, (then, then))
    lines = show(columns, tmp_path, "checkpoint", "--path", tmp_path / "run")
    assert max(map(len, lines)) <= columns
    rows = [line for line in lines if re.match(r" *[123]00 ", line)]
    assert [row.split()[0] for row in rows] == ["300", "200", "100"]
    assert "no: it changed" in rows[0]
    assert re.search(r"200 +1 MB +1h.* global_step200 +yes", rows[1]), rows[1]


@pytest.mark.parametrize("columns", [80, 160])
def test_log_draws_the_loss_and_cuts_the_last_line(columns: int, tmp_path: Path) -> None:
    """The step, the loss as a sparkline that falls, and a line that is never wrapped."""
    path = tmp_path / "train.log"
    with path.open("w") as log:
        for i in range(1, 301):
            log.write(
                f" iteration {i:8d}/ 5000 | consumed samples: {i * 512:12d} | elapsed time per "
                f"iteration (ms): 15000.0 | learning rate: 1.0E-04 | lm loss: {2 + 8 / i:.6E} | "
                "loss scale: 1.0 | grad norm: 0.9 | number of skipped iterations: 0 |\n"
            )
    lines = show(columns, tmp_path, "log", "--path", path)
    assert max(map(len, lines)) <= columns
    text = "\n".join(lines)
    assert re.search(r"training +step +a minute +loss", lines[0])
    assert re.search(r" 300 +4 +█[▁▂▃▄▅▆▇█]*▁ 2\.027", text), text
    last = [line for line in lines if line.startswith("last line: iteration      300/")]
    assert len(last) == 1
    assert len(last[0]) == columns
    assert last[0].endswith("…")


def test_quota_tells_who_has_used_how_much_of_what(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quota that could not be asked is a sentence, not a row of dashes."""
    found = (
        Finding(
            subject="/home user ann",
            status=Status.WARNING,
            summary="over the soft limit of 80 GB: writing ends on Monday",
            values={
                "used_percent": 85.0,
                "used_bytes": 85_000_000_000,
                "soft_bytes": 80_000_000_000,
                "size_bytes": 100_000_000_000,
                "grace_seconds": 3 * 86_400.0,
                "inodes_used_percent": 12.0,
            },
        ),
        Finding(subject="/work user", status=Status.UNKNOWN, summary="cannot tell: no quota"),
    )
    lines = draw(capsys, monkeypatch, QuotaCheck(paths=["/home"]), found)  # type: ignore[list-item]
    assert re.search(r"quota +used of limit +used +.*limit +files +grace", lines[0])
    row = next(line for line in lines if line.startswith("/home user ann "))
    assert re.search(r"█+░+ +85% +85 GB .*100 GB +░+ +12% +3d +warning", row), row
    assert not [line for line in lines if "–" in line]
    assert "unknown /work user: cannot tell: no quota" in lines
    assert max(map(len, lines)) <= 80


def test_gpu_has_a_row_a_slot(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst first; more than fit are counted."""
    found = tuple(
        Finding(
            subject=f"GPU-{number}",
            status=Status.CRITICAL if number == 57 else Status.OK,
            summary="Xid 79: it has fallen off the bus" if number == 57 else "45 °C",
            values={"slot": f"{number:02d}:00.0", "temperature_c": 45.0, "utilization_percent": 99},
            labels={"node": "node-1"},
        )
        for number in range(60)
    )
    lines = draw(capsys, monkeypatch, GpuCheck(), found, columns=160)
    assert re.search(r"node +slot +heat +busy +status +gpu", lines[0])
    assert re.search(r"node-1 +57:00.0 +45 °C .* 99% +critical +GPU-57", lines[1])
    assert "and 10 more, all ok" in lines
    assert "critical GPU-57: Xid 79: it has fallen off the bus" in lines


def test_a_job_shows_its_last_day(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A character an hour: it ran, it did not, and before the state began nothing is known."""
    found = (
        Finding(
            subject="llama",
            status=Status.OK,
            summary="job 4711 runs",
            values={"running": 1, "queued": 1, "nodes": 8},
        ),
    )
    samples = [
        (shift_instant(NOW, -HOUR_S * (back + 0.5)), 0.0 if back in (3, 4) else 1.0)
        for back in range(11, -1, -1)
    ]
    lines = draw(
        capsys, monkeypatch, JobCheck(name="llama"), found, lambda *_: samples, columns=120
    )
    assert "last 24 hours" in lines[0]
    assert f"{' ' * 12}{'█' * 7}··███" in lines[1]
    without = draw(capsys, monkeypatch, JobCheck(name="llama"), found, columns=120)
    assert "last 24 hours" not in without[0]


def test_change_is_told_since_the_last_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the state remembers of the same tree."""
    values = {"used_bytes": 5_000_000_000, "entries": 1200}
    found = (Finding(subject="/data tree", status=Status.OK, summary="5 GB", values=values),)
    before = [(shift_instant(NOW, -6 * HOUR_S), 3_800_000_000.0)]
    plugin = DuCheck(paths=["/data"])  # type: ignore[list-item]
    lines = draw(capsys, monkeypatch, plugin, found, lambda *_: before)
    assert re.search(r"/data tree +5 GB +1,200 +\+1.2 GB in 6h +ok", lines[1]), lines


def test_what_a_pipe_gets_has_no_table(tree: Path, tmp_path: Path) -> None:
    """One line a finding, with its details; rich is not even loaded."""
    program = (
        "import sys; from sentinel.cli import main; "
        f"code = main(['check', 'du', '--path', {str(tree)!r}]); "
        "sys.exit('rich' in sys.modules or code)"
    )
    env = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"OK {tree} tree: ")
    assert "█" not in done.stdout
