"""What a job's owner asked for at submission changes what this owner is told, and nothing else."""

import os
from pathlib import Path
from typing import Any

import pytest

from sentinel.checks.log import reader
from sentinel.checks.log.reader import WISH_BUDGET_S, LogReader
from sentinel.checks.log.wish_number import find_wish_number
from sentinel.checks.log.wish_watch import PAUSE_S, PAUSED_WORDS
from sentinel.core.clock import SECOND
from sentinel.core.cluster import JobEnd
from sentinel.core.letters import Letter
from sentinel.core.model import Report, Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.testing import START
from tests.checks.log.test_check import ITERATION, Watch, mine

LONG_S = 900.0
ENDLESS = r"(x+x+)+y (\d+)"


@pytest.fixture(autouse=True)
def _slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only CPU seconds count here: a busy machine decides nothing."""
    monkeypatch.setattr(reader, "WISH_LIMIT_S", LONG_S)


class WishedLog:
    """A log check of one job whose owner has this wish, beside the same check without it."""

    def __init__(self, folder: Path, wish: str, **settings: Any) -> None:
        self.log = folder / "log"
        self.log.write_text("iteration 1\n")
        ends = {"7": JobEnd(job_id="7", state="RUNNING", stdout=str(self.log))}
        own = {"job": "train", "progress": ITERATION, "ends": ends, **settings}
        self.watch = Watch(mine(name="train", wish=f"sentinel: {wish}"), **own)
        self.plain = Watch(mine(name="train"), **own)

    def look(self, minutes: float, line: str = "") -> Report:
        with self.log.open("a") as file:
            file.write(f"{line}\n" if line else "")
        found = self.watch.report(minutes, limit=LONG_S)
        plain = self.plain.report(minutes, limit=LONG_S)
        for ours, theirs in zip(found.findings, plain.findings, strict=True):
            assert (ours.status, ours.summary, ours.values) == (
                theirs.status, theirs.summary, theirs.values,
            )  # fmt: skip
            assert not theirs.owner_muted
        assert (found.samples, plain.letters) == (plain.samples, ())
        assert found.coverage == plain.coverage
        return found


def summaries(report: Report) -> list[str]:
    return [letter.summary for letter in report.letters]


def only(report: Report) -> Letter:
    (letter,) = report.letters
    return letter


def test_a_shorter_limit_of_the_owner_tells_only_the_owner(tmp_path: Path) -> None:
    """The check's own limit is 10 minutes, the owner's 5: the verdict is that of the check."""
    one = WishedLog(tmp_path, "stale=5m")
    assert one.look(1, "iteration 2").letters == ()
    assert one.look(4).letters == ()
    told = only(one.look(2))
    assert told.summary.endswith("no progress for 6m, still at progress 2 (limit 5m)")
    assert (told.user, told.severity, told.over) == (one.watch.jobs[0].user, "critical", False)
    later = one.look(5)
    assert later.findings[0].status is Status.CRITICAL
    assert later.findings[0].owner_muted, "the owner has a letter about it"
    assert only(later).id == told.id
    end = only(one.look(1, "iteration 3"))
    assert (end.id, end.over, end.severity) == (told.id, True, "ok")
    assert one.look(1).letters == ()


def test_a_longer_limit_of_the_owner_keeps_only_the_owner_from_being_told(tmp_path: Path) -> None:
    """The operator hears of it after 10 minutes, the owner after 20."""
    one = WishedLog(tmp_path, "stale=20m")
    one.look(1, "iteration 2")
    found = one.look(15)
    assert found.findings[0].status is Status.CRITICAL
    assert found.findings[0].owner_muted
    assert found.letters == ()
    assert "limit 20m" in only(one.look(6)).summary


def test_a_number_of_the_owner_is_followed(tmp_path: Path) -> None:
    """It stands still while the check's own number goes on."""
    one = WishedLog(tmp_path, r'stale=5m progress="tokens (\d+)"')
    one.look(1, "iteration 2 tokens 7")
    assert one.look(3, "iteration 3 tokens 8").letters == ()
    assert one.look(4, "iteration 4").letters == ()
    assert only(one.look(2, "iteration 5")).summary.endswith("still at 8 (limit 5m)")
    assert only(one.look(1, "iteration 6 tokens 9")).over


def test_the_age_of_a_standstill_of_the_owners_number_is_that_of_the_file(tmp_path: Path) -> None:
    """The last line came 45 s before the look that saw it."""
    one = WishedLog(tmp_path, r'stale=5m progress="tokens (\d+)"')
    one.look(0, "iteration 2 tokens 7")
    with one.log.open("a") as file:
        file.write("iteration 3 tokens 8\n")
    os.utime(one.log, (START.wall / SECOND + 15,) * 2)
    one.look(1)
    assert only(one.look(5)).summary.endswith("no progress for 5m 45s, still at 8 (limit 5m)")


def test_a_number_that_never_comes_is_told_after_the_start(tmp_path: Path) -> None:
    """The job has run for an hour."""
    one = WishedLog(tmp_path, r'stale=5m progress="tokens (\d+)"')
    one.look(1, "iteration 2")
    assert "no line matches your pattern, for 6m now" in only(one.look(6, "iteration 3")).summary


def test_off_mutes_only_the_owner(tmp_path: Path) -> None:
    """Not the finding."""
    one = WishedLog(tmp_path, "off stale=5m")
    one.look(1, "iteration 2")
    found = one.look(15)
    assert found.findings[0].status is Status.CRITICAL
    assert found.findings[0].owner_muted
    assert found.letters == ()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("stael=5m", "stael=5m is none of"),
        ('progress="step ("', "is no regular expression"),
        ('progress="step"', "captures nothing"),
        ('progress="(tokens)"', "captured 'tokens', which is no number"),
    ],
)
def test_what_is_refused_is_told_and_the_check_goes_on(
    tmp_path: Path, words: str, why: str
) -> None:
    """The owner is told of a standstill as if there were no wish."""
    one = WishedLog(tmp_path, words)
    told = only(one.look(1, "iteration 2 tokens"))
    assert why in told.summary
    assert (told.severity, told.over) == ("warning", False)
    late = one.look(15)
    assert late.findings[0].status is Status.CRITICAL
    assert not late.findings[0].owner_muted


def test_a_pattern_without_an_end_pauses_and_is_told(tmp_path: Path) -> None:
    """The search ends within the user's time; an hour later it is tried again."""
    one = WishedLog(tmp_path, f'stale=5m progress="{ENDLESS}"')
    told = one.look(1, "iteration 2 " + "x" * 4000)
    assert f"your wish is not followed: {PAUSED_WORDS}" in summaries(told)
    assert "your wish is not followed" in summaries(one.look(1, "iteration 3"))[0]
    assert not any(
        PAUSED_WORDS in text for text in summaries(one.look(PAUSE_S / 60, "iteration 4"))
    )


def test_one_users_time_is_not_anothers() -> None:
    """All searches of one user in a run share it; the next user has all of it."""
    text = "x" * 4000
    with LogReader(in_child=True) as logs:
        first = [logs.find_wish_number("/log", text, ENDLESS, "mallory") for _ in range(9)]
        assert first[-1].paused
        assert sum(found.seconds for found in first) < 3 * WISH_BUDGET_S
        assert logs.find_wish_number("/log", "step 5\n", r"step (\d+)", "alice").value == 5
        logs.refuse_resting_log("/log")  # raises where the log itself is left alone


def test_the_last_number_counts() -> None:
    """And thousands separators are read as the check reads them."""
    text = "step 1\nstep 1,234\nstop 9\n"
    assert find_wish_number(text, r"^step ([\d,]+)$", 1).value == 1234


def test_a_log_that_cannot_be_read_is_not_watched(tmp_path: Path) -> None:
    """The author hears that; Slurm did not say where the job writes."""
    watch = Watch(mine(name="train", wish="sentinel: stale=5m"), job="train")
    told = only(watch.report(1, limit=LONG_S))
    assert told.summary.startswith("NOT watched: cannot read the log of job ")


def test_a_command_that_checks_once_sends_no_letter(tmp_path: Path) -> None:
    """It changes nothing."""
    one = WishedLog(tmp_path, "stael=5m")
    assert one.watch.report(1, one_shot=True).letters == ()


def test_a_pattern_sees_no_file_that_the_operator_has_named(tmp_path: Path) -> None:
    """It would tell the job's owner what stands there. The limit is followed."""
    words = r'stale=5m progress="(iteration)"'
    one = WishedLog(tmp_path, words, path=FilePath(tmp_path / "log"))
    told = only(one.look(1, "iteration 2"))
    assert "progress= is followed in the job's own output" in told.summary
    assert "captured" not in told.summary
    late = one.look(6)
    assert any("no progress for 6m" in text for text in summaries(late))
    (tmp_path / "log").unlink()
    (tmp_path / "log").mkdir()
    unread = one.watch.report(1, limit=LONG_S).letters
    assert not [letter for letter in unread if str(tmp_path) in letter.summary]


def test_a_pattern_that_pauses_ends_no_standstill(tmp_path: Path) -> None:
    """Nobody knows then whether the number advances."""
    one = WishedLog(tmp_path, f'progress="tokens (\\d+)|{ENDLESS}"', stale_after=Duration(300))
    one.look(1, "tokens 5")
    assert "still at 5" in only(one.look(6)).summary
    paused = one.look(1, "x" * 4000)
    assert [letter.over for letter in paused.letters] == [False]
    assert PAUSED_WORDS in only(paused).summary
