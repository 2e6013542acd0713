"""Rules of what a log means from one look to the next, without any file."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.log.files import Look
from sentinel.checks.log.judge import Rules, Seen, Sight, judge, number_in, remembered
from sentinel.core.clock import SECOND, shifted
from sentinel.core.errors import CannotTell
from sentinel.core.model import Status
from sentinel.testing import START
from tests.checks.log.jobs import job

GROWTH = Rules(stale_after=1200, startup=600, by_number=False)
NUMBER = Rules(stale_after=1200, startup=600, by_number=True)
HOUR_OLD = job(started=START.wall // SECOND - 3600)
YOUNG = job(started=START.wall // SECOND - 599)


def sight(minutes: float = 0, *, size: int = 10, inode: str = "1:2", **more: Any) -> Sight:
    look = Look(size=size, inode=inode, mtime=0)
    return Sight(**{"path": "/l", "at": shifted(START, minutes * 60), "look": look, **more})


def story(rules: Rules, *sights: Sight) -> list[tuple[Status, str]]:
    """The answers to one look after the other, each with the memory of those before."""
    seen: Seen | None = None
    answers = []
    for one in sights:
        seen = remembered(one, seen, rules)
        verdict = judge(one, seen, rules)
        answers.append((verdict.status, verdict.summary))
    return answers


def test_a_log_that_does_not_grow_is_stale_from_the_limit_on() -> None:
    """Counted from the look that saw it move last."""
    assert story(GROWTH, sight(0), sight(19.9), sight(20), sight(21, size=11)) == [
        (Status.OK, "grows (/l)"),
        (Status.OK, "has not grown for 19m 54s"),
        (Status.CRITICAL, "has not grown for 20m (stale after 20m)"),
        (Status.OK, "grows (/l)"),
    ]


@pytest.mark.parametrize(
    "moved",
    [
        pytest.param({"size": 11}, id="longer"),
        pytest.param({"size": 9}, id="cut, as copytruncate does"),
        pytest.param({"inode": "1:3"}, id="replaced by one of the same size"),
    ],
)
def test_every_change_of_size_or_file_is_movement(moved: dict[str, Any]) -> None:
    """A rotated log has been written to."""
    assert story(GROWTH, sight(0), sight(30, **moved))[-1][0] is Status.OK


def test_with_a_number_growth_alone_does_not_count() -> None:
    """A pulse, or a line `still waiting`, in a log keeps no hung training alive."""
    looks = [sight(n * 10, size=n, number=7.0) for n in range(3)]
    assert story(NUMBER, *looks)[-1] == (
        Status.CRITICAL,
        "progress at 7 for 20m (stale after 20m)",
    )


@pytest.mark.parametrize("number", [8.0, 3.0])
def test_a_number_that_changes_has_moved(number: float) -> None:
    """A lower one too: the training went back to a checkpoint."""
    assert story(NUMBER, sight(0, number=7.0), sight(30, number=number))[-1] == (
        Status.OK,
        f"progress at {number:g} for 0s",
    )


def test_a_number_that_scrolled_out_of_the_tail_has_not_moved() -> None:
    """A chatty log says nothing new about progress."""
    assert story(NUMBER, sight(0, number=7.0), sight(20, number=None))[-1][0] is Status.CRITICAL


def test_a_log_without_any_number_is_stale_in_time() -> None:
    """A wrong pattern must not stay silent for ever."""
    assert story(NUMBER, sight(0), sight(20)) == [
        (Status.OK, "no line matches `progress`, for 0s now"),
        (Status.CRITICAL, "no line matches `progress`, for 20m now (stale after 20m)"),
    ]


def test_the_wall_clock_decides_nothing_between_looks() -> None:
    """An hour's jump is no hour of silence."""
    jumped = replace(shifted(START, 60), wall=START.wall + 3600 * SECOND)
    assert story(GROWTH, sight(0), replace(sight(0), at=jumped))[-1] == (
        Status.OK,
        "has not grown for 1m",
    )


@pytest.mark.parametrize(
    ("rules", "look", "status"),
    [
        pytest.param(GROWTH, sight(60, job=YOUNG), Status.CRITICAL, id="the job has become old"),
        pytest.param(
            NUMBER,
            sight(9, job=replace(YOUNG, started=START.wall // SECOND)),
            Status.OK,
            id="young",
        ),
    ],
)
def test_startup_counts_from_the_start_of_the_job(
    rules: Rules, look: Sight, status: Status
) -> None:
    """Loading a large model is silent, and no hang."""
    strict = replace(rules, stale_after=60)
    assert story(strict, replace(look, at=START), look)[-1][0] is status


def test_after_the_first_number_startup_protects_no_longer() -> None:
    """What has begun to train can hang at once."""
    strict = replace(NUMBER, stale_after=60)
    young = replace(YOUNG, started=START.wall // SECOND)
    looks = [sight(0, job=young, number=1.0), sight(1, job=young, number=1.0)]
    assert story(strict, *looks)[-1][0] is Status.CRITICAL


@pytest.mark.parametrize(
    ("looks", "answer"),
    [
        pytest.param(
            [sight(look=None)],
            (Status.UNKNOWN, "/l does not exist; check the path"),
            id="without a job nobody knows what should be there",
        ),
        pytest.param(
            [sight(look=None, job=YOUNG)],
            (Status.OK, "job 7 started 9m 59s ago; no log yet at /l"),
            id="a job that has just started",
        ),
        pytest.param(
            [sight(look=None, job=HOUR_OLD)],
            (Status.CRITICAL, "job 7 started 1h ago, but there is no log at /l"),
            id="a job that should have written by now",
        ),
        pytest.param(
            [sight(), sight(19, look=None)],
            (Status.OK, "/l is gone, last seen to move 19m ago"),
            id="rotated a moment ago",
        ),
        pytest.param(
            [sight(), sight(20, look=None)],
            (Status.CRITICAL, "/l is gone, last seen to move 20m ago"),
            id="gone for long",
        ),
    ],
)
def test_a_missing_log_is_never_called_well_for_long(
    looks: list[Sight], answer: tuple[Status, str]
) -> None:
    """A watchdog that takes a missing file for health is disarmed by a wrong path."""
    assert story(GROWTH, *looks)[-1] == answer


def test_a_look_that_failed_changes_no_memory() -> None:
    """It neither proves life nor counts as silence."""
    hidden = sight(10, error="/l hangs", look=None)
    assert story(GROWTH, sight(0), hidden, sight(19), sight(20)) == [
        (Status.OK, "grows (/l)"),
        (Status.UNKNOWN, "/l hangs"),
        (Status.OK, "has not grown for 19m"),
        (Status.CRITICAL, "has not grown for 20m (stale after 20m)"),
    ]


def test_a_requeued_job_begins_anew() -> None:
    """The same job id, another run: what the old one wrote proves nothing against it."""
    again = replace(HOUR_OLD, started=START.wall // SECOND)
    answers = story(GROWTH, sight(0, job=HOUR_OLD), sight(30, job=again))
    assert answers[-1] == (Status.OK, "grows (/l)")


def test_one_look_judges_by_the_files_own_time_and_says_so() -> None:
    """Without memory there is nothing else."""
    one = replace(GROWTH, one_look=True)
    written = START.wall // SECOND - 1200
    look = Look(size=1, inode="i", mtime=written)
    words = "(one look: by its modification time)"
    assert story(one, sight(look=look)) == [
        (Status.CRITICAL, f"last written 20m ago {words} (stale after 20m)")
    ]
    fresh = Look(size=1, inode="i", mtime=written + 1)
    assert story(replace(one, by_number=True), sight(look=fresh, number=12.0)) == [
        (Status.OK, f"progress at 12, last written 19m 59s ago {words}")
    ]


def test_a_file_from_the_future_is_fresh() -> None:
    """The file server's clock may run ahead."""
    look = Look(size=1, inode="i", mtime=START.wall // SECOND + 900)
    one = replace(GROWTH, one_look=True)
    assert story(one, sight(look=look))[0][0] is Status.OK


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("iteration 1\niteration 2\n", 2, id="the last one counts"),
        pytest.param("iteration 41\niteration 4", 41, id="a line being written does not"),
        pytest.param("iteration 5/9\riteration 6/9\r", 6, id="progress bars end in a return"),
        pytest.param("iteration 7", 7, id="a single unfinished line is all there is"),
        pytest.param("iteration 1,234\n", 1234, id="thousands"),
        pytest.param("iteration 1e3\n", 1000, id="exponents"),
        pytest.param("loss 3\n", None, id="no match"),
        pytest.param("", None, id="empty"),
    ],
)
def test_the_number_is_that_of_the_last_finished_line(text: str, number: float | None) -> None:
    """What the first group captures."""
    assert number_in(text, re.compile(r"iteration ([\d,.e]+)")) == number


def test_captured_text_that_is_no_number_is_an_error() -> None:
    """The message shows it."""
    with pytest.raises(CannotTell, match="captured 'epoch', which is no number"):
        number_in("at epoch\n", re.compile(r"at (\w+)"))
