"""The ledger of a past job from its log, beside the truth of the log."""

from collections.abc import Sequence
from datetime import timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.checks.log.past_log import (
    CLOCK_DOUBT,
    GAP_DOUBT,
    NO_TIMES_DOUBT,
    OUTSIDE_DOUBT,
    PastLog,
    PastRows,
)
from sentinel.core.run_ledger import LedgerRow
from sentinel.report.run_account import RunAccount, account_run
from tests.checks.log.past_logs import EPOCH, PastJobLog, make_life
from tests.report.test_properties import check_sums

FAR = 10**17


def replay(text: str, starts: Sequence[LedgerRow] = ()) -> PastRows:
    log = PastLog("llm", "4711", starts)
    log.add_text(text)
    return log.finish()


def account(*found: PastRows) -> RunAccount:
    """The account of these logs, with one GPU a job: parts are microseconds."""
    rows = [row for one in found for row in one.rows]
    return account_run("llm", [replace(r, gpus=1) if r.kind == "held" else r for r in rows], 0, FAR)


def seconds(told: RunAccount) -> dict[str, float]:
    return {name: time / 10**6 for name, time in told.parts.items() if time}


def held(began: int, ended: int, cause: str = "") -> LedgerRow:
    started = EPOCH + began
    return LedgerRow(
        run="llm", kind="held", began=started * 10**6, ended=(EPOCH + ended) * 10**6, job="4711",
        attempt=started, cause=cause,  # type: ignore[arg-type]
    )  # fmt: skip


def test_each_part_to_the_second() -> None:
    """The first step is in the model, so it is no start-up. The number of ranks is in the log."""
    found = replay(make_life().text)
    assert found.gpus == 16
    told = account(found)
    assert seconds(told) == {"startup": 95, "useful": 1000, "checkpoint": 40, "provisional": 500}
    assert told.held == 1635 * 10**6


def trainer_log(steps: int, gap: int) -> str:
    """Hugging Face's Trainer prints no times; DeepSpeed's launcher does, at the beginning and the end."""
    log = PastJobLog()
    log.lines = []
    log.say("[INFO] [launch.py:256:main] process 1646253 spawned")
    log.lines += [
        f"{{'loss': 0.{9999 - n}, 'learning_rate': 2e-05, 'epoch': {n / 100:.2f}}}"
        for n in range(1, steps + 1)
    ]
    log.at += gap
    log.say("[INFO] [launch.py:347:main] Process 1646253 exits successfully.")
    return log.text


def test_steps_in_lines_without_times_are_no_hang() -> None:
    """Three hours of steps between two lines with times: a public log (Eso-LLaVA, sft.log) has this
    form. A log without a line between the two is silent."""
    told = seconds(account(replay(trainer_log(900, 11_000))))
    assert "hung" not in told
    assert told["unknown"] == pytest.approx(11_000, rel=0.01), "no checkpoint was seen"
    silent = make_life()
    silent.at += 11_000
    silent.say("[INFO] [launch.py:347:main] Process 1646253 exits successfully.")
    assert seconds(account(replay(silent.text)))["hung"] == pytest.approx(11_000, rel=0.01)


def test_after_the_last_time_of_a_piece_nothing_is_known_of_steps_without_times() -> None:
    """A long log is read in pieces. The time between two of them is no hang either."""
    lines = trainer_log(900, 11_000).splitlines(keepends=True)
    log = PastLog("llm", "4711")
    for part in (lines[:500], lines[500:]):
        log.add_text("".join(part))
    told = seconds(account(log.finish()))
    assert "hung" not in told
    assert told["unknown"] == pytest.approx(11_000, rel=0.01)


def test_a_next_job_redoes_the_steps_since_the_checkpoint() -> None:
    """What the first job made after its checkpoint was lost."""
    first, second = make_life(), PastJobLog(3000)
    first.lines.append("torch.distributed.DistBackendError: NCCL error: remote process exited")
    second.step = 200
    second.at += 100
    second.train(100)
    second.save(40)
    one, two = replay(first.text), PastLog("llm", "4712")
    two.add_text(second.text)
    told = account(one, two.finish())
    assert seconds(told) == {"startup": 195, "useful": 1500, "checkpoint": 80, "redone": 500}
    (death, *_) = told.interruptions
    assert (death.job, death.cause) == ("4711", "unknown")


def test_a_time_limit_cuts_the_last_steps() -> None:
    """The words of slurmstepd say when and why it ended."""
    first, second = make_life(), PastJobLog(3000)
    first.at += 30
    first.end_by(" DUE TO TIME LIMIT")
    second.step = 200
    second.train(100)
    two = PastLog("llm", "4712")
    two.add_text(second.text)
    told = account(replay(first.text), two.finish())
    assert seconds(told)["tail"] == 530
    assert "redone" not in told.parts or not told.parts["redone"]


def test_a_hang_counts_from_its_last_step() -> None:
    """Half an hour later somebody cancels the job. No alarm noticed it then."""
    log = make_life()
    log.at += 3600
    log.end_by("")
    found = replay(log.text)
    assert seconds(account(found))["hung"] == pytest.approx(3600, abs=60)
    assert all(row.noticed is None for row in found.rows)
    calm = make_life()
    calm.at += 60
    calm.train(300)
    assert "hung" not in seconds(account(replay(calm.text)))


def test_a_restart_inside_the_job() -> None:
    """The number goes back to the checkpoint: the steps since then are made again."""
    log = make_life()
    log.say("RuntimeError: CUDA error: uncorrectable ECC error encountered")
    log.at += 120
    log.say("initializing torch distributed ...")
    log.step = 200
    log.train(200)
    told = account(replay(log.text))
    assert seconds(told)["redone"] == 500
    assert [one.cause for one in told.interruptions][:1] == ["gpu"]


def test_accounting_says_when_it_began_and_ended() -> None:
    """The queue of a prolog before the first line is start-up. Lines in the zone of a container are
    found, and lines of another time are left out."""
    life = make_life()
    found = replay(life.text, [held(-200, 1700, "completed")])
    assert seconds(account(found)) == {
        "startup": 295, "useful": 1000, "checkpoint": 40, "provisional": 500, "idle": 65,
    }  # fmt: skip
    log = PastLog("llm", "4711", [held(-200, 1700)], timezone(timedelta(hours=9)))
    log.add_text(life.text)
    assert seconds(account(log.finish()))["useful"] == 1000
    other = replay(life.text, [held(90_000, 91_000)])
    assert (other.rows, other.doubts) == ((), (OUTSIDE_DOUBT,))


def test_one_log_of_two_starts() -> None:
    """A requeued job appends to its log. Accounting tells the starts apart, else twelve hours do."""
    log = make_life()
    log.at += 50_000
    log.step = 200
    log.say("initializing torch distributed ...")
    log.train(100)
    alone = replay(log.text)
    assert sum(row.kind == "held" for row in alone.rows) == 2
    both = replay(log.text, [held(0, 1640, "node"), held(51_630, 52_200)])
    assert [one.cause for one in account(both).interruptions] == ["node"]
    assert seconds(account(both))["redone"] == 500


def test_a_clock_that_jumps() -> None:
    """Back by an hour: the log goes on. One line of another year is no time of the log."""
    log = make_life()
    log.at -= 3600
    log.train(100)
    found = replay(log.text)
    assert CLOCK_DOUBT in found.doubts
    assert account(found).held == (1635 + 495) * 10**6
    odd = make_life()
    odd.lines.insert(150, "the licence ends on 2099-01-01 00:00:00")
    odd.lines.insert(160, "built on 2019-01-01 00:00:00")
    assert replay(odd.text).rows == replay(make_life().text).rows


def test_a_clock_that_is_wrong_for_a_while() -> None:
    """A year ahead for three lines, or not set at the first one. Nobody waited for that year."""
    right = replay(make_life().text)
    for began, years in ((150, 1), (1, -50)):
        log = make_life()
        for place in range(began, began + (3 if years > 0 else 1)):
            log.lines[place] = log.lines[place].replace("2024-", f"{2024 + years}-")
        found = replay(log.text)
        assert [row.kind for row in found.rows].count("held") == 1
        assert account(found).held == pytest.approx(account(right).held, abs=120e6)


def test_a_hole_of_a_day_is_no_end_of_the_job() -> None:
    """A log of 10 GB took days, and its middle is not read: nobody knows that no job ran then."""
    log = make_life()
    past = PastLog("llm", "4711")
    past.add_text(log.text)
    past.add_hole()
    log.at, log.lines, log.step = log.at + 86_400, [], 17_580
    log.train(100)
    past.add_text(log.text)
    found = past.finish()
    told = account(found)
    assert [row.kind for row in found.rows].count("held") == 1
    assert seconds(told)["unknown"] == pytest.approx(86_400, rel=0.01)
    assert (told.calendar.not_submitted, GAP_DOUBT in found.doubts) == (0, False)


def test_a_job_that_writes_again_after_a_day_is_told() -> None:
    """It may have been a new start, or a clock that was set."""
    log = make_life()
    log.at += 86_400
    log.train(100)
    assert GAP_DOUBT in replay(log.text).doubts
    assert GAP_DOUBT not in replay(make_life().text).doubts


def test_a_hole_is_unknown() -> None:
    """Nothing is claimed for lines that were not read."""
    log = make_life()
    past = PastLog("llm", "4711")
    past.add_text(log.text)
    past.add_hole()
    log.lines = []
    log.at += 7200
    log.step += 1000
    log.train(100)
    past.add_text(log.text)
    told = seconds(account(past.finish()))
    assert told["unknown"] == pytest.approx(7200, abs=10)


@pytest.mark.parametrize("text", ["", "\0" * 5000, "step 1 loss 2.0\nstep 2 loss 2.0\n", "\udcff{"])
def test_without_times_nothing_is_claimed(text: str) -> None:
    """And that is said."""
    assert replay(text) == PastRows(doubts=(NO_TIMES_DOUBT,))


LINES = st.sampled_from(
    [
        "iteration {n}/ 100 | lm loss: 2.0E+00 |", "saving checkpoint at iteration {n} to /c",
        "successfully saved checkpoint from iteration {n} to /c", "RuntimeError: CUDA error: x", "hello",
        "slurmstepd: error: *** JOB 1 ON n CANCELLED AT 2024-05-05T11:00:00 DUE TO TIME LIMIT ***",
    ]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(LINES, st.integers(-4000, 90_000), st.integers(0, 100)), max_size=40),
    st.lists(st.tuples(st.integers(-9000, 90_000), st.integers(0, 90_000)), max_size=2),
)
def test_the_parts_add_up_whatever_the_log_says(
    said: list[tuple[str, int, int]], spans: list[tuple[int, int]]
) -> None:
    """Clocks that jump, steps that go back, starts that overlap: each part is there once."""
    log = PastJobLog()
    for words, passed, number in said:
        log.at += passed
        log.say(words.format(n=number))
    starts = [held(began, began + length, "unknown") for began, length in spans]
    told = account(replay(log.text, starts))
    check_sums(told)
