"""Rules of what an answer means, without any file system."""

import pytest

from sentinel.checks.fs.limits import CRIT, WARN
from sentinel.checks.fs.probe import Answer, probe_all
from sentinel.checks.fs.usage import Usage
from sentinel.checks.fs.verdict import Rules, Seen, Sight, finding, remembered
from sentinel.core.clock import shifted
from sentinel.core.model import Status
from sentinel.proc import Stuck
from sentinel.testing import START

RULES = Rules(warn=WARN, crit=CRIT, mounted=None, read_only=Status.CRITICAL)
WELL = Usage(size=100, used=10, free=90, inodes=0, inodes_free=0, type="xfs")


def sight(answer: Answer | None) -> Sight:
    return Sight(path="/x", answer=answer, at=shifted(START, 7200))


@pytest.mark.parametrize(
    ("answer", "status", "summary"),
    [
        (Answer(error="Permission denied"), Status.UNKNOWN, "may not be looked at: permission"),
        (
            Answer(error="Required key not available"),
            Status.UNKNOWN,
            "may not be looked at without",
        ),
        (Answer(error="Stale file handle"), Status.CRITICAL, "cannot be read: Stale file handle"),
        (Answer(error="Input/output error"), Status.CRITICAL, "cannot be read: Input/output"),
        (Answer(blind="cannot start stat"), Status.UNKNOWN, "could not be asked: cannot start"),
        (None, Status.UNKNOWN, "was not asked: too many other file systems hang"),
        (Answer(usage=WELL), Status.OK, "10% used, 90 B free"),
    ],
)
def test_an_error_of_the_file_system_is_bad_and_one_of_the_question_is_a_doubt(
    answer: Answer | None, status: Status, summary: str
) -> None:
    """Nothing that was not seen is called ok."""
    seen = finding(sight(answer), Seen(), RULES)
    assert seen.status is status
    assert seen.summary.startswith(summary)


def test_a_hang_is_counted_from_its_first_sight() -> None:
    """Also when each probe could be killed, so that none is stuck."""
    since = remembered(sight(Answer(hung=True, waited=5)), Seen(hangs_since=START))
    assert since.hangs_since == START
    assert finding(sight(Answer(hung=True)), Seen(hangs_since=START), RULES).summary == (
        "still hangs, since 2h: statfs does not answer"
    )


def test_an_answer_ends_the_hang_and_forgets_its_probe() -> None:
    """Whatever the answer is."""
    hung = Seen(mounted=True, hangs_since=START, stuck=Stuck(1, 2, "b"))
    for answer in (Answer(usage=WELL), Answer(error="Stale file handle")):
        assert remembered(sight(answer), hung) == Seen(mounted=True)


def test_a_path_that_was_not_asked_keeps_its_memory() -> None:
    """Nothing was seen, nothing changes."""
    hung = Seen(hangs_since=START, stuck=Stuck(1, 2, "b"))
    assert remembered(sight(None), hung) == hung


def test_paths_whose_turn_never_came_have_no_answer() -> None:
    """When the time is used up by others, the rest is left out rather than called well."""
    hangs = Answer(hung=True)
    assert probe_all(["a", "b"], limit=0.0, patience=1.0, ask=lambda *_: hangs) == {}
    assert set(probe_all(["a", "b"], limit=9.0, patience=1.0, ask=lambda *_: hangs)) == {"a", "b"}
