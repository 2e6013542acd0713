"""Why and when a guard says stop, by a clock that moves when told."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from sentinel import training
from sentinel.training import Guard, Reason


class Clock:
    """The wall clock is 1,000 seconds ahead of the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "time", lambda: self.now + 1000)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    for name in ("SLURM_JOB_ID", "SLURM_JOB_END_TIME"):
        monkeypatch.delenv(name, raising=False)
    return Clock(monkeypatch)


@pytest.mark.parametrize(("margin", "begins"), [(None, 90.0), (30.0, 30.0), (0.0, 0.0)])
def test_the_margin_begins_at_its_very_second(
    clock: Clock, margin: float | None, begins: float
) -> None:
    """90 s before the end, or as it was said; the end is one of the wall clock."""
    with Guard(ends=2200.0, margin=margin, memory=None, signals=(), every=0) as guard:
        assert (guard.margin, guard.left) == (begins, 200.0)
        clock.now = 1200 - begins - 0.5
        assert not guard.should_stop()
        clock.now = 1200 - begins
        assert guard.should_stop()
    with Guard(memory=None, signals=()) as endless:
        assert endless.left == float("inf")
        assert not endless.should_stop()


def test_by_default_it_looks_every_five_seconds(clock: Clock, tmp_path: Path) -> None:
    """At the kill switch, at the save switch, and for the heartbeat, each by itself."""
    stop, save, beat = (tmp_path / name for name in ("STOP", "SAVE", "beat"))
    paths = {"kill_switch": str(stop), "save_switch": str(save), "heartbeat": str(beat)}
    with Guard(**paths, memory=None, signals=(), rank=0) as guard:  # type: ignore[arg-type]
        guard.beat(1)
        assert not guard.should_save()
        assert not guard.should_stop()
        stop.touch()
        save.touch()
        for seconds, due in ((4.9, False), (5.0, True)):
            clock.now = 1000 + seconds
            guard.beat(2)
            assert beat.read_text().startswith(f"step {2 if due else 1} at ")
            assert guard.should_save() is due
            assert guard.should_stop() is due
    assert training.SLURM_LIMIT == 10


REASONS: dict[str, Callable[[Guard, Path], None]] = {
    "the kill switch is there": lambda _, folder: (folder / "STOP").touch(),
    "a signal came": lambda guard, _: guard._heard(10, None),
    "the allocation is about to end": lambda guard, _: setattr(guard, "_deadline", 0.0),
    "memory is running out": lambda guard, _: setattr(guard, "_memory", 0.5),
    "GPU memory is running out": lambda guard, _: setattr(guard, "_gpu_free", lambda: 0),
}


@pytest.mark.parametrize("first", range(len(REASONS)))
def test_of_several_reasons_the_one_that_people_gave_comes_first(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """Then the end of the allocation, then what runs out."""
    monkeypatch.setattr(training, "memory_used", lambda: 0.5)
    kill = str(tmp_path / "STOP")
    with Guard(kill_switch=kill, memory=None, signals=(), every=0, rank=0) as guard:
        for name in list(REASONS)[first:]:
            REASONS[name](guard, tmp_path)
        assert guard.should_stop()
        expected = list(REASONS)[first]
        assert guard.reason.startswith(expected)
        assert guard.reason.endswith(kill) is (first == 0)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (Reason.NONE, ""),
        (Reason.GPU, "GPU memory is running out"),
        (Reason.SIGNAL, "a signal came"),
        (Reason.SWITCH, "the kill switch is there"),
        (6, "another rank stops"),
        (7, "another rank stops"),
    ],
)
def test_the_reason_of_another_rank_is_told_in_its_words(
    clock: Clock, number: int, words: str
) -> None:
    """A number that is not known here is of a newer sentinel; which signal it was only it knows."""
    with Guard(memory=None, signals=(), rank=1, agree=lambda _: number) as guard:
        assert guard.should_stop() is bool(number)
        assert guard.reason == words


def test_memory_that_is_nearly_used_is_no_reason(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides of what was asked for; what cannot be read stops nothing."""
    for used, stops in ((0.49, False), (0.5, True)):
        monkeypatch.setattr(training, "memory_used", partial(float, used))
        with Guard(memory=0.5, signals=(), every=0) as guard:
            assert guard.should_stop() is stops
    for free, stops in ((10, False), (9, True)):
        with Guard(memory=None, signals=(), gpu_free=partial(int, free), gpu_floor=10) as guard:
            assert guard.should_stop() is stops

    def broken() -> float:
        raise OSError("no /proc")

    monkeypatch.setattr(training, "memory_used", broken)
    with Guard(memory=0.0001, signals=(), gpu_free=lambda: int(broken())) as guard:
        assert not guard.should_stop()
        assert set(guard.troubles) == {"memory", "gpu_free"}
