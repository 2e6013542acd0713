"""Whose a signal is: children of multiprocessing, several guards, handlers of other libraries.

And what one slow step or save does to the margin.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel import training
from sentinel.training import Guard

MODULE_LEVEL = """
import multiprocessing as mp, os, signal, sys, time
from sentinel.training import Guard
guard = Guard(memory=None, every=0)
def worker(up):
    up.put(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
    time.sleep(60)
def rank(up):
    guard.should_stop()
    os.kill(os.getpid(), signal.SIGUSR1)
    up.put(guard.should_stop())
if __name__ == "__main__":
    ctx = mp.get_context(sys.argv[1])
    up = ctx.Queue()
    ctx.Process(target=worker, args=(up,), daemon=True).start()
    print(up.get(timeout=60))
    asking = ctx.Process(target=rank, args=(up,))
    asking.start()
    print(up.get(timeout=60))
    asking.join()
    os.kill(os.getpid(), signal.SIGTERM)
    print(guard.should_stop(), flush=True)
"""


@pytest.fixture(autouse=True)
def _signals_as_they_were(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("SLURM_JOB_ID", "SLURM_JOB_END_TIME"):
        monkeypatch.delenv(name, raising=False)
    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)}
    for number in before:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def made(**settings: object) -> Guard:
    return Guard(**{"memory": None, "every": 0.0, **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["spawn", "forkserver"])
def test_a_child_that_only_imports_a_guard_dies_of_sigterm(tmp_path: Path, how: str) -> None:
    """At exit multiprocessing terminates its daemons and waits for them. A rank that asks the
    same guard listens from then on."""
    script = tmp_path / "train.py"
    script.write_text(MODULE_LEVEL)
    done = subprocess.run(
        [sys.executable, str(script), how], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["True", "True", "True"]), done.stderr


def test_guards_may_be_closed_in_any_order() -> None:
    """The one that is left hears; after both the signal is as it was."""
    first, second = made(), made()
    first.close()
    os.kill(os.getpid(), signal.SIGUSR1)
    assert (second.should_stop(), first.should_stop()) == (True, False)
    second.close()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_guard_in_the_middle_passes_on() -> None:
    """The oldest of three hears after the second was closed."""
    guards = [made() for _ in range(3)]
    guards[1].close()
    os.kill(os.getpid(), signal.SIGTERM)
    assert [g.should_stop() for g in guards] == [True, False, True]
    guards[2].close()
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL  # the oldest still hears
    guards[0].close()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_later_handler_of_a_library_is_told_and_kept() -> None:
    """submitit, Lightning and Ray set theirs when they start."""
    guard = made()
    assert not guard.should_stop()
    assert guard.troubles == {}

    def other(*_: object) -> None:
        pass

    signal.signal(signal.SIGUSR1, other)
    assert not guard.should_stop()
    assert set(guard.troubles) == {"SIGUSR1"}
    assert "another handler has it now" in guard.troubles["SIGUSR1"]
    guard.close()
    assert signal.getsignal(signal.SIGUSR1) is other
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_second_guard_is_no_other_library() -> None:
    """It passes on what it hears."""
    first, second = made(), made()
    assert not first.should_stop()
    assert first.troubles == {}
    second.close()
    first.close()


def test_the_end_of_a_with_block_gives_the_signals_back() -> None:
    """What comes after the loop dies of SIGTERM again."""
    with made() as guard:
        assert signal.getsignal(signal.SIGTERM) == guard._heard
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    guard.close()


def test_a_signal_that_is_named_twice_is_listened_to_once() -> None:
    """Its own handler is not the one before it."""
    guard = made(signals=["SIGUSR1", "SIGUSR1"])
    os.kill(os.getpid(), signal.SIGUSR1)
    assert guard.should_stop()
    guard.close()
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


class Clock:
    """A steady clock that moves when it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def steps(self, guard: Guard, *seconds: float) -> None:
        for took in seconds:
            self.now += took
            guard.beat(0)

    def save(self, guard: Guard, took: float) -> None:
        with guard.saving():
            self.now += took


def test_one_stall_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that hung for 3 h must not cost the last 6 h of each allocation."""
    guard, clock = made(), Clock(monkeypatch)
    clock.steps(guard, 0, 60, 60, 10_800)
    assert guard.margin == 2 * 10_800
    clock.steps(guard, *[60] * 10)
    assert guard.margin == 120


def test_what_is_slow_again_is_a_habit(monkeypatch: pytest.MonkeyPatch) -> None:
    """An evaluation of half an hour counts from its second time on, however rare it is."""
    guard, clock = made(), Clock(monkeypatch)
    clock.steps(guard, 0, *[60] * 20, 1800, *[60] * 20, 1700, *[60] * 50)
    assert guard.margin == 2 * 1800


@pytest.mark.parametrize(
    ("steps", "margin"),
    [
        ([3000, *[100] * 9], 6000),  # ten must follow
        ([3000, *[100] * 10], 200),
        ([3000, *[1000] * 10], 6000),  # three times as long is not far longer
        ([3001, *[1000] * 10], 2000),
        ([100, *[3000] * 2, *[100] * 50], 6000),
        ([3000, *[100] * 6, 9000, *[100] * 9], 18_000),  # each new one is waited for anew
        ([44], 90),
        ([46], 92),
    ],
)
def test_how_long_a_slow_step_counts(
    monkeypatch: pytest.MonkeyPatch, steps: list[float], margin: float
) -> None:
    """By number and by how far it stands out; 90 s at least."""
    guard, clock = made(), Clock(monkeypatch)
    clock.steps(guard, 0, *steps)
    assert guard.margin == margin


def test_two_slow_saves_are_not_forgotten_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """After three of the usual kind it is."""
    guard, clock = made(), Clock(monkeypatch)
    for took, margin in ((3600, 3600), (200, 3600), (200, 3600), (200, 200)):
        clock.save(guard, took)
        assert guard.margin == margin


def test_one_slow_save_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only one that was seen counts."""
    guard, clock = made(), Clock(monkeypatch)
    clock.save(guard, 3600)
    assert guard.margin == 3600
    for _ in range(3):
        clock.save(guard, 200)
    assert guard.margin == 200


@pytest.mark.parametrize(("used", "stops"), [(0.0, False), (0.94, False), (0.95, True)])
def test_by_default_it_stops_where_95_percent_of_memory_is_used(
    monkeypatch: pytest.MonkeyPatch, used: float, stops: bool
) -> None:
    """And never before."""
    monkeypatch.setattr(training, "memory_used", lambda: used)
    guard = Guard(every=0)
    assert guard.should_stop() is stops
    assert guard.reason == ("memory is running out" if stops else "")
    guard.close()


def test_one_rank_looks_for_all_that_agree(tmp_path: Path) -> None:
    """A thousand would be a load on the file system; who agrees with nobody looks for himself."""
    (tmp_path / "STOP").touch()
    looks = {"kill_switch": str(tmp_path / "STOP"), "memory": None, "signals": ()}
    for rank, agree, stops in (
        (0, None, True),
        (3, None, True),
        (0, lambda number: number, True),
        (3, lambda number: number, False),
    ):
        with Guard(rank=rank, agree=agree, **looks) as guard:  # type: ignore[arg-type]
            assert guard.should_stop() is stops


def test_a_look_is_due_at_its_very_second(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not before, and not one call later."""
    clock = Clock(monkeypatch)
    with Guard(kill_switch=str(tmp_path / "STOP"), memory=None, every=5.0) as guard:
        assert not guard.should_stop()
        (tmp_path / "STOP").touch()
        for later, stops in ((4.9, False), (5.0, True)):
            clock.now = 1000.0 + later
            assert guard.should_stop() is stops
