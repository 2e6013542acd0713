"""The replay of real logs, on logs of its two forms."""

from pathlib import Path

from benchmarks.real.hangs import training
from benchmarks.real.logs import lines, runs


def mllog(at: float, samples: int) -> str:
    """A line as mlperf_logging writes it."""
    return (
        f':::MLLOG {{"namespace": "", "time_ms": {at * 1000:.0f}, "event_type": "INTERVAL_START", '
        f'"key": "block_start", "value": null, "metadata": {{"samples_count": {samples}}}}}\n'
    )


def written(place: Path, name: str, began: float, minutes: int) -> None:
    """A run that counts once a minute."""
    path = place / "lab" / "results" / "8xgpu" / "llm" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(mllog(began + 60 * n, n) + "INFO: well\n" for n in range(minutes)))


def test_runs_are_told_apart_and_a_copy_is_none(tmp_path: Path) -> None:
    """In order of time; what a power meter repeats is no run, and neither is a moment."""
    written(tmp_path, "result_0.txt", 9000, 30)
    written(tmp_path, "result_1.txt", 1000, 20)
    written(tmp_path, "result_2.txt", 1000, 20)
    written(tmp_path, "result_3.txt", 500, 1)
    written(tmp_path, "power/node_0.txt", 700, 20)
    found = runs([tmp_path])
    assert [(run.kind, run.owner, run.seconds) for run in found] == [
        ("llm", "lab", 19 * 60),
        ("llm", "lab", 29 * 60),
    ]
    assert len({run.training for run in found}) == 1
    first = lines(found[0])[:4]
    assert [at for at, _ in first] == [0, 0, 60, 60]
    assert first[1][1] == b"INFO: well\n"


def test_a_log_and_its_times_are_a_run(tmp_path: Path) -> None:
    """A directory of them is one training."""
    (tmp_path / "one.log").write_text("step 1\nstep 2\nstep 3\n")
    (tmp_path / "one.log.times").write_text("100\n160\n220.5\n")
    (tmp_path / "two.log").write_text("no times\n")
    (run,) = runs([tmp_path])
    assert (run.seconds, run.training) == (120.5, str(tmp_path))
    assert lines(run) == [(0, b"step 1\n"), (60, b"step 2\n"), (120.5, b"step 3\n")]


def test_hangs_of_later_runs_are_told_sooner(tmp_path: Path) -> None:
    """Four runs of an hour that are well, each with hangs in other worlds."""
    for number in range(4):
        written(tmp_path, f"result_{number}.txt", 1000.0 + 9000 * number, 60)
    found = training(runs([tmp_path]), seed=1, hangs=4)
    assert (found.runs, found.healthy, found.false) == (4, 4 * 59 * 60, {})
    assert len(found.hangs) == 16
    assert all(None not in hang.told.values() for hang in found.hangs)
    auto, fixed = ([hang.told[rule] or 0 for hang in found.hangs] for rule in ("auto", "20m"))
    assert auto[:4] == fixed[:4]
    assert all(a <= f for a, f in zip(auto, fixed, strict=True))
    assert sum(auto[4:]) < 0.7 * sum(fixed[4:])
