"""What logs of earlier jobs teach before a job of one's own was seen."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sentinel.checks.log.cadence import LimitBounds, TrainingBaseline, compute_quiet_limit
from sentinel.checks.log.earlier_jobs import MAX_REPLAY_STEPS, learn_from_log
from sentinel.checks.log.scan import LogPatterns
from sentinel.checks.log.troubles import TroubleFinder
from sentinel.core.settings import FilePath
from tests.checks.log.jobs import job
from tests.checks.log.test_check import Watch

BOUNDS = LimitBounds(floor=120, ceiling=3600)
STEP = re.compile(r"^\S+ \S+ step (\d+)", re.MULTILINE)
BEGIN = datetime(2026, 3, 8, 3, 12, 5)


def log(hours: float, every: int = 30, pause: int = 0) -> str:
    """A line every so many seconds, and in the middle a pause."""
    count = int(hours * 3600 / every)
    at = [n * every + (pause if n > count // 2 else 0) for n in range(count)]
    return "".join(f"{BEGIN + timedelta(seconds=s)} step {n}\n" for n, s in enumerate(at))


def taught(text: str, *, whole: bool = True) -> TrainingBaseline:
    patterns = LogPatterns({"progress": STEP}, {}, None, TroubleFinder({}, []))
    return learn_from_log(text, patterns, job(), TrainingBaseline(), whole)


def limit(learned: TrainingBaseline, run: str = "now") -> float:
    return compute_quiet_limit(learned, "progress", 5.0, 60.0, BOUNDS, run).seconds


def test_a_new_training_is_judged_by_the_log_of_another() -> None:
    """Ten minutes from the first minute on in place of twenty, or longer where that was usual."""
    assert limit(TrainingBaseline()) == 1200
    assert limit(taught(log(2))) == 600
    assert 800 < limit(taught(log(2, pause=600))) < 1200


def test_the_start_is_known_from_a_whole_log_only() -> None:
    """The end of a long one begins in the middle of its job."""
    text = f"{BEGIN - timedelta(minutes=10)} compiles\n" + log(1)
    assert 500 < sum(taught(text).starts) < 800
    assert taught(text, whole=False).starts == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "step 1\nstep 2\n",
        "2026-19-39 03:12:05 step 1\n" * 3,
        '"time_ms": 17 step 1\n' * 3,
    ],
)
def test_a_log_without_times_teaches_nothing(text: str) -> None:
    """Nor does one with times that are none."""
    assert taught(text) == TrainingBaseline()


def test_two_jobs_in_one_file_and_a_date_of_another_year_are_no_quiet() -> None:
    """Nor do they make it take long."""
    first = "1999-01-01 00:00:00 license\n" + log(1)
    second = first + log(1).replace("2026-03-08", "2026-03-11")
    assert limit(taught(second)) == 600
    assert taught(second).quiets["progress"].total < MAX_REPLAY_STEPS * 60


def test_mlperf_counts_in_milliseconds() -> None:
    """MLLOG has no other time."""
    line = '"time_ms": {} at 3 step {}\n'
    text = "".join(line.format(1_700_000_000_000 + n * 30_000, n) for n in range(240))
    patterns = LogPatterns({"progress": re.compile(r"step (\d+)")}, {}, None, TroubleFinder({}, []))
    assert (
        learn_from_log(text, patterns, job(), TrainingBaseline(), True).quiets["progress"].total
        > 7000
    )


def test_only_logs_that_are_named_teach_and_never_the_jobs_own(tmp_path: Path) -> None:
    """Of a pattern the newest that is another's; one that is not there is left out."""
    mine, other = tmp_path / "run-7.log", tmp_path / "run-6.log"
    other.write_text(log(2))
    mine.write_text(log(2))

    def known(*logs: str) -> float:
        watch = Watch(
            job(), path=FilePath(mine), job="train", users=["*"], ask_nodes=False,
            stale_after="auto", progress=STEP, learn_from=[FilePath(tmp_path / one) for one in logs],
        )  # fmt: skip
        watch.look()
        (values,) = [f.values for f in watch.report(1).findings if "limit_seconds" in f.values]
        return float(values["limit_seconds"])  # type: ignore[arg-type]

    assert known() == known("run-7.log") == known("none.log") == 1200
    assert known("run-6.log") == known("none.log", "run-*.log") == 600
