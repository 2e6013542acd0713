"""One question, asked once at a time, and ever less often while it fails."""

import linecache
import sys
import threading
from collections.abc import Callable

import pytest

from sentinel.core.errors import CannotTell
from sentinel.slurm.answer import LONGEST_PAUSE, CachedAnswer
from sentinel.testing import ManualClock
from tests.lab.waiting import wait_until


class Question:
    """Counts how often it is asked; fails while told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.broken = False

    def __call__(self) -> int:
        self.asked += 1
        if self.broken:
            raise CannotTell(f"failure {self.asked}")
        return self.asked


def answer(ask: Callable[[], int], clock: ManualClock, patience: float = 5.0) -> CachedAnswer[int]:
    return CachedAnswer(ask, clock, max_age=30.0, patience=patience)


@pytest.mark.parametrize(("age", "asked"), [(0, 1), (29.9, 1), (30, 2), (3600, 2)])
def test_an_answer_is_kept_until_it_is_too_old(age: float, asked: int) -> None:
    """All checks of a pass share it; the next pass has its own."""
    clock, question = ManualClock(), Question()
    kept = answer(question, clock)
    kept.get_answer()
    clock.advance(age)
    assert (kept.get_answer(), question.asked) == (asked, asked)


def test_a_wall_clock_that_jumps_back_does_not_keep_an_old_answer() -> None:
    """Age is counted on the boot's own clock."""
    clock, question = ManualClock(), Question()
    kept = answer(question, clock)
    kept.get_answer()
    clock.advance(31)
    clock.jump(-3600)
    assert kept.get_answer() == 2


def test_a_failure_is_kept_and_never_an_older_answer_shown() -> None:
    """While the pause lasts, the same words are said again without asking."""
    clock, question = ManualClock(), Question()
    kept = answer(question, clock)
    kept.get_answer()
    clock.advance(30)
    question.broken = True
    for _ in range(3):
        with pytest.raises(CannotTell, match="failure 2"):
            kept.get_answer()
    assert question.asked == 2


def test_the_pause_doubles_up_to_five_minutes_and_ends_with_success() -> None:
    """5 s, 10 s, 20 s, … 300 s; load never rises because slurmctld is ill."""
    clock, question = ManualClock(), Question()
    kept = answer(question, clock)
    question.broken = True
    pauses = []
    for _ in range(9):
        with pytest.raises(CannotTell):
            kept.get_answer()
        pauses.append(kept.pause.pause_s)
        clock.advance(kept.pause.pause_s - 0.1)
        before = question.asked
        with pytest.raises(CannotTell):
            kept.get_answer()
        assert question.asked == before
        clock.advance(0.1)
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    question.broken = False
    assert kept.get_answer() == 10
    assert kept.pause.pause_s == 0


def test_the_pause_stays_bounded_for_ever() -> None:
    """A Slurm that is down for a year is still asked every five minutes."""
    clock, question = ManualClock(), Question()
    kept = answer(question, clock)
    question.broken = True
    for _ in range(2000):
        clock.advance(LONGEST_PAUSE)
        with pytest.raises(CannotTell):
            kept.get_answer()
    assert (question.asked, kept.pause.pause_s) == (2000, LONGEST_PAUSE)


class Slow(Question):
    """Answers when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = threading.Event(), threading.Event()

    def __call__(self) -> int:
        self.entered.set()
        self.go.wait(20)
        return super().__call__()


class Asker(threading.Thread):
    """A check that asks in a thread of its own; `told` is the answer or the failure."""

    def __init__(self, kept: CachedAnswer[int]) -> None:
        super().__init__()
        self.told = ""
        self._kept = kept
        self.start()

    def run(self) -> None:
        try:
            self.told = str(self._kept.get_answer())
        except CannotTell as error:
            self.told = str(error)

    @property
    def waits(self) -> bool:
        """Whether it has come to the lock that another thread holds."""
        frame = sys._current_frames().get(self.ident or 0)
        return frame is not None and "acquire" in linecache.getline(
            frame.f_code.co_filename, frame.f_lineno
        )


@pytest.mark.parametrize(("broken", "told"), [(False, "1"), (True, "failure 1")])
def test_threads_that_wait_for_an_answer_share_it(broken: bool, told: str) -> None:
    """A hundred checks are one request, also when it takes longer than an answer is kept."""
    clock, question = ManualClock(), Slow()
    question.broken = broken
    kept = CachedAnswer(question, clock, max_age=0.0, patience=20.0)
    askers = [Asker(kept)]
    assert question.entered.wait(20)
    askers += [Asker(kept) for _ in range(10)]
    wait_until(lambda: all(a.waits for a in askers[1:]), "all askers wait", 20.0)
    question.go.set()
    for asker in askers:
        asker.join(20)
    assert ({a.told for a in askers}, question.asked) == ({told}, 1)


def test_who_wants_the_last_answer_sees_it_while_another_thread_asks() -> None:
    """5,000 jobs of one user, looked at each second: the queue was nearly always being asked, and no
    script was read for minutes."""
    clock, question = ManualClock(), Slow()
    kept = CachedAnswer(question, clock, max_age=0.0, patience=20.0)
    assert kept.await_last_answer() is None
    first, seen = Asker(kept), list[int | None]()
    assert question.entered.wait(20)
    second = threading.Thread(target=lambda: seen.append(kept.await_last_answer()))
    second.start()
    question.go.set()
    for one in (first, second):
        one.join(20)
    assert (seen, kept.await_last_answer(), question.asked) == ([1], 1, 1)


def test_nobody_waits_for_ever_for_another_thread() -> None:
    """A thread whose question hangs does not take the others with it."""
    clock, question = ManualClock(), Slow()
    kept = answer(question, clock, patience=0.05)
    first = threading.Thread(target=kept.get_answer)
    first.start()
    assert question.entered.wait(20)
    with pytest.raises(CannotTell, match="has not answered yet"):
        kept.get_answer()
    assert kept.await_last_answer() is None
    question.go.set()
    first.join(20)
    assert kept.get_answer() == 1


def test_a_defect_in_the_question_is_no_answer_and_locks_nothing() -> None:
    """An error that is not CannotTell comes through each time."""
    clock = ManualClock()

    def broken() -> int:
        raise ZeroDivisionError

    kept = answer(broken, clock)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            kept.get_answer()
