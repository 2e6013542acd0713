"""Rules of what a log means from one look to the next, without any file."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.log.cadence import Cadence, LimitBounds, TrainingBaseline
from sentinel.checks.log.file_offset import FileStat, ReadPosition
from sentinel.checks.log.joined_ranks import MAX_RANKS as MOST_RANKS
from sentinel.checks.log.judge import EMPTY_BASELINE, StaleRules, judge_log, list_log_values
from sentinel.checks.log.log_state import LogObservation, LogState, ProgressMark
from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.progress import MAX_KEPT_TROUBLES, _StateUpdate, update_state
from sentinel.checks.log.scan import LogEvent, LogPatterns, merge_phases, scan_text
from sentinel.checks.log.settings import PhaseSettings
from sentinel.checks.log.trouble_roles import ECHO_KIND_NAMES
from sentinel.checks.log.troubles import TroubleFinder
from sentinel.core.clock import SECOND, shift_instant
from sentinel.core.model import Status
from sentinel.core.values import Duration
from sentinel.testing import START
from tests.checks.log.jobs import job

GROWTH = StaleRules(stale_after=1200, startup=600, by_number=False)
NUMBER = StaleRules(stale_after=1200, startup=600, by_number=True)
HOUR_OLD = job(started=START.wall // SECOND - 3600)
YOUNG = job(started=START.wall // SECOND - 599)


CHECKPOINT = {
    "checkpoint": PhaseSettings(
        begin=re.compile("^saving"), end=re.compile("^saved"), allow=Duration(1800)
    ),
    "evaluation": PhaseSettings(begin=re.compile("^evaluating"), allow=Duration(1800)),
}
PATTERNS = LogPatterns(
    {"progress": re.compile(r"^at (\d+)", re.MULTILINE)},
    merge_phases(CHECKPOINT),
    None,
    TroubleFinder({}, []),
)


def sight(
    minutes: float = 0, *, size: int | None = 10, inode: str = "1:2", text: str = "", **more: Any
) -> LogObservation:
    """What is seen so many minutes after START; `size` None: no file."""
    looks, places = {}, {}
    if size is not None:
        looks = {"/l": FileStat(size=size, inode=inode, mtime=more.pop("mtime", 0))}
        places = {"/l": ReadPosition(inode=inode, size=size)}
    return LogObservation(
        **{
            "path": "/l",
            "at": shift_instant(START, minutes * 60),
            "looks": looks,
            "places": places,
            "events": tuple(scan_text(text, PATTERNS)),
            **more,
        }
    )


def story(
    rules: StaleRules, *sights: LogObservation, learned: TrainingBaseline = EMPTY_BASELINE
) -> list[tuple[Status, str]]:
    """The answers to one look after the other, each with the memory of those before."""
    seen: LogState | None = None
    answers = []
    for one in sights:
        seen, learned = update_state(one, seen, learned, rules.by_number)
        verdict = judge_log(one, seen, rules, learned)
        answers.append((verdict.status, verdict.summary))
    return answers


def at(*numbers: int) -> str:
    """Lines with these numbers."""
    return "".join(f"at {number}\n" for number in numbers)


def test_a_log_that_does_not_grow_is_stale_from_the_limit_on() -> None:
    """Counted from the look that saw it move last."""
    assert story(GROWTH, sight(0), sight(19.9), sight(20), sight(21, size=11)) == [
        (Status.OK, "grows (/l)"),
        (Status.OK, "has not grown for 19m 54s"),
        (Status.CRITICAL, "has not grown for 20m (limit 20m)"),
        (Status.OK, "grows (/l)"),
    ]


@pytest.mark.parametrize(("written_ago", "shown"), [(45, 45), (0, 0), (-5, 0), (3600, 0)])
def test_how_long_ago_a_log_moved_is_told_by_its_time_and_not_by_the_look(
    written_ago: int, shown: float
) -> None:
    """That of a file server whose clock is behind counts for nothing."""
    written = sight(1, mtime=START.wall // SECOND + 60 - written_ago, text=at(7, 8))
    seen, learned = update_state(written, None, EMPTY_BASELINE, True)
    verdict = judge_log(written, seen, NUMBER, learned)
    assert list_log_values(written, seen, verdict)["quiet_seconds"] == shown


def test_an_age_is_told_from_the_last_line_on_and_not_from_the_look_that_noticed_it() -> None:
    """The time of a clock that is not ours is one that cannot be: the log had moved since."""
    written = START.wall // SECOND + 15
    looks = sight(0), sight(1, size=11, mtime=written), sight(21, size=11, mtime=written)
    assert story(GROWTH, *looks)[-1] == (
        Status.CRITICAL,
        "has not grown for 20m 45s (limit 20m)",
    )
    # Passes look twice, so the usual spacing is less than the minute in which the log stopped.
    often = [sight(n * 0.4, size=10 + n) for n in range(12)]
    later = [sight(at, size=30, mtime=START.wall // SECOND + 265) for at in (5.4, 25.4)]
    assert story(GROWTH, *often, *later)[-1][1] == "has not grown for 20m 59s (limit 20m)"
    elsewhere = sight(0), sight(1, size=11, mtime=7), sight(21, size=11, mtime=7)
    assert story(GROWTH, *elsewhere)[-1][1] == "has not grown for 20m (limit 20m)"


@pytest.mark.parametrize(
    ("written", "last", "hangs"),
    [
        (15, 20.99, True),  # a pass that is half a second early: nothing was written for longer
        (60, 20.99, False),  # the file was written less than the limit ago
        (15, 20.8, False),  # twelve seconds before the limit, as looks saw it
    ],
)
def test_a_look_that_is_early_does_not_leave_a_hang_to_the_next(
    written: int, last: float, hangs: bool
) -> None:
    """Where looks and the limit are both multiples of a pass, half of all looks are early."""
    mtime = START.wall // SECOND + written
    looks = [sight(n, size=11, mtime=mtime) for n in (1, 2, 3, last)]
    status, words = story(GROWTH, sight(0), *looks)[-1]
    assert (status is Status.CRITICAL) is hangs, words


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


def test_a_number_that_was_seen_once_is_not_said_to_advance() -> None:
    """As of a training that was started again: what is known is where it stands."""
    first, second = story(NUMBER, sight(0, text=at(7)), sight(1, size=11, text=at(8)))
    assert first == (Status.OK, "at progress 7, no step seen yet")
    assert second == (Status.OK, "at progress 8, advancing")


def test_with_a_number_growth_alone_does_not_count() -> None:
    """A pulse, or a line `still waiting`, in a log keeps no hung training alive."""
    looks = [sight(n * 10, size=n, text=at(7)) for n in range(3)]
    assert story(NUMBER, *looks)[-1] == (
        Status.CRITICAL,
        "no progress for 20m, still at progress 7 (limit 20m)",
    )


@pytest.mark.parametrize("number", [8, 3])
def test_a_number_that_changes_has_moved(number: int) -> None:
    """A lower one too: the training went back to a checkpoint."""
    assert story(NUMBER, sight(0, text=at(7)), sight(30, text=at(number)))[-1] == (
        Status.OK,
        f"at progress {number:g}, advancing",
    )


def test_a_number_that_scrolled_out_of_the_tail_has_not_moved() -> None:
    """A chatty log says nothing new about progress."""
    assert story(NUMBER, sight(0, text=at(7)), sight(20))[-1][0] is Status.CRITICAL


def test_a_log_without_any_number_is_stale_in_time() -> None:
    """A wrong pattern must not stay silent for ever."""
    assert story(NUMBER, sight(0), sight(20)) == [
        (Status.OK, "no line matches `progress`, for 0s now"),
        (Status.CRITICAL, "no line matches `progress`, for 20m now (limit 20m)"),
    ]


def test_the_wall_clock_decides_nothing_between_looks() -> None:
    """An hour's jump is no hour of silence."""
    jumped = replace(shift_instant(START, 60), wall=START.wall + 3600 * SECOND)
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
    rules: StaleRules, look: LogObservation, status: Status
) -> None:
    """Loading a large model is silent, and no hang."""
    strict = replace(rules, stale_after=60)
    assert story(strict, replace(look, at=START), look)[-1][0] is status


def test_once_it_has_advanced_startup_protects_no_longer() -> None:
    """What has begun to train can hang at once. A progress bar's `0` is no beginning yet."""
    strict = replace(NUMBER, stale_after=60)
    young = replace(YOUNG, started=START.wall // SECOND)
    looks = [sight(0, job=young, text=at(0)), sight(2, job=young)]
    assert story(strict, *looks)[-1] == (
        Status.OK,
        "job 7 started 2m ago; at progress 0 for 2m",
    )
    looks = [sight(0, job=young, text=at(0, 1)), sight(1, job=young)]
    assert story(strict, *looks)[-1][0] is Status.CRITICAL


@pytest.mark.parametrize(
    ("looks", "answer"),
    [
        pytest.param(
            [sight(size=None)],
            (Status.UNKNOWN, "/l does not exist; check the path"),
            id="without a job nobody knows what should be there",
        ),
        pytest.param(
            [sight(size=None, job=YOUNG)],
            (Status.OK, "job 7 started 9m 59s ago; no log yet at /l"),
            id="a job that has just started",
        ),
        pytest.param(
            [sight(size=None, job=HOUR_OLD)],
            (Status.CRITICAL, "job 7 started 1h ago, but there is no log at /l"),
            id="a job that should have written by now",
        ),
        pytest.param(
            [sight(), sight(19, size=None)],
            (Status.OK, "/l is gone, last seen to move 19m ago"),
            id="rotated a moment ago",
        ),
        pytest.param(
            [sight(), sight(20, size=None)],
            (Status.CRITICAL, "/l is gone, last seen to move 20m ago"),
            id="gone for long",
        ),
    ],
)
def test_a_missing_log_is_never_called_well_for_long(
    looks: list[LogObservation], answer: tuple[Status, str]
) -> None:
    """A watchdog that takes a missing file for health is disarmed by a wrong path."""
    assert story(GROWTH, *looks)[-1] == answer


def test_a_look_that_failed_changes_no_memory() -> None:
    """It neither proves life nor counts as silence."""
    hidden = sight(10, error="/l hangs", size=None)
    assert story(GROWTH, sight(0), hidden, sight(19), sight(20)) == [
        (Status.OK, "grows (/l)"),
        (Status.UNKNOWN, "/l hangs"),
        (Status.OK, "has not grown for 19m"),
        (Status.CRITICAL, "has not grown for 20m (limit 20m)"),
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
    words = "(one look: by its modification time)"
    assert story(one, sight(mtime=written)) == [
        (Status.CRITICAL, f"last written 20m ago {words} (limit 20m)")
    ]
    assert story(replace(one, by_number=True), sight(mtime=written + 1, text=at(12))) == [
        (Status.OK, f"at progress 12, last written 19m 59s ago {words}")
    ]


def test_one_look_learns_nothing_and_says_so() -> None:
    """`auto` without a state is what people write by hand."""
    one = replace(GROWTH, stale_after=None, one_look=True)
    written = START.wall // SECOND - 1200
    assert story(one, sight(mtime=written))[0][1].endswith(
        "(limit 20m; auto: one look learns nothing)"
    )
    assert story(one, sight(mtime=written + 1))[0][0] is Status.OK


def test_a_file_from_the_future_is_fresh() -> None:
    """The file server's clock may run ahead."""
    one = replace(GROWTH, one_look=True)
    assert story(one, sight(mtime=START.wall // SECOND + 900))[0][0] is Status.OK


WITH_PHASES = replace(NUMBER, allow={"checkpoint": 1800.0, "evaluation": 1800.0})


def test_a_phase_has_its_own_allowance_from_its_first_line_on() -> None:
    """A checkpoint of 29 minutes is none of the 20 that a hang takes; one of 30 is too long."""
    looks = [
        sight(0, text=at(1, 2)),
        sight(10, text="saving\n"),
        sight(39.9),
        sight(40),
        sight(41, text="saved\n"),
        sight(60.9),
        sight(61),
    ]
    assert story(WITH_PHASES, *looks)[1:] == [
        (Status.OK, "at progress 2, advancing, in checkpoint"),
        (Status.OK, "at progress 2 for 29m 54s, in checkpoint"),
        (
            Status.CRITICAL,
            "no progress for 30m, still at progress 2, in checkpoint (limit in checkpoint 30m)",
        ),
        (Status.OK, "at progress 2, advancing"),
        (Status.OK, "at progress 2 for 19m 54s"),
        (Status.CRITICAL, "no progress for 20m, still at progress 2 (limit 20m)"),
    ]


@pytest.mark.parametrize(
    ("after", "status"),
    [
        pytest.param(at(3), Status.OK, id="one advance may be a late line of another rank"),
        pytest.param(at(3, 4), Status.CRITICAL, id="two end it"),
    ],
)
def test_a_phase_without_an_end_ends_with_progress(after: str, status: Status) -> None:
    """From there on the usual limit holds."""
    looks = [sight(0, text=at(1) + "evaluating\n" + after), sight(20)]
    assert story(WITH_PHASES, *looks)[-1][0] is status


def test_every_number_that_was_seen_has_to_advance() -> None:
    """Iterations that go on while no samples are consumed are a hang too."""
    two = LogPatterns(
        {"iteration": re.compile(r"it (\d+)"), "samples": re.compile(r"sa (\d+)")},
        {},
        None,
        TroubleFinder({}, []),
    )
    looks = [
        sight(0, events=tuple(scan_text("it 1\nsa 5\n", two))),
        sight(20, events=tuple(scan_text("it 2\nsa 5\n", two))),
    ]
    assert story(NUMBER, *looks)[-1] == (
        Status.CRITICAL,
        "no progress for 20m, still at samples 5 (limit 20m)",
    )


def test_a_number_that_was_never_seen_is_no_obligation() -> None:
    """Patterns for several trainers may stand side by side."""
    looks = [sight(0, text=at(1)), sight(30, text=at(2))]
    assert story(NUMBER, *looks)[-1][0] is Status.OK


def test_ranks_that_never_join_are_told_before_startup_ends() -> None:
    """Nothing came after the first announcements: the others will not come either."""
    waiting = replace(NUMBER, startup=3600)
    line = "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/16\n"
    looks = [sight(0, job=YOUNG, text=line), sight(9.9, job=YOUNG), sight(10, job=YOUNG)]
    assert story(waiting, *looks)[-2:] == [
        (Status.OK, "job 7 started 19m 53s ago; no line matches `progress`, for 9m 54s now"),
        (
            Status.CRITICAL,
            "stuck at initialisation for 10m: 1 of 16 ranks joined (rank 0)",
        ),
    ]


def test_a_world_of_more_ranks_than_are_counted_is_not_called_incomplete() -> None:
    """All have joined, and one more than can be remembered; a smaller world has to be complete."""
    for size, status in ((MOST_RANKS + 1, Status.OK), (MOST_RANKS, Status.CRITICAL)):
        joined = "".join(
            f"Initializing distributed: GLOBAL_RANK: {n}, MEMBER: {n + 1}/{size}\n"
            for n in range(2 * size - MOST_RANKS - 1)
        )
        assert story(NUMBER, sight(0, text=joined), sight(15))[-1][0] is status


def test_ranks_that_come_twice_are_a_split_world() -> None:
    """Every node is a world of its own: MASTER_ADDR is wrong."""
    line = "initializing ddp: GLOBAL_RANK: 0, MEMBER: 1/8\n" * 4
    answer = story(NUMBER, sight(0, text=line), sight(10))[-1]
    assert answer[0] is Status.CRITICAL
    assert "1 of 8 ranks joined (rank 0), some more than once: a split world" in answer[1]


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(
            "".join(
                f"Initializing distributed: GLOBAL_RANK: {n}, MEMBER: {n + 1}/4\n"
                for n in range(1, 4)
            ),
            id="the others",
        ),
        pytest.param("All distributed processes registered. Starting with 4 processes\n", id="so"),
        pytest.param(at(1, 2), id="progress"),
    ],
)
def test_a_world_that_has_begun_is_not_stuck_at_its_beginning(after: str) -> None:
    """Whatever proves it."""
    line = "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/4\n"
    assert story(NUMBER, sight(0, text=line), sight(1, text=after), sight(15))[-1][0] is Status.OK


AUTO = replace(NUMBER, stale_after=None, bounds=LimitBounds(floor=120, ceiling=1800))
WATCHED = TrainingBaseline(quiets={"progress": Cadence(longest=(60.0,) * 9, total=100_000)})


def test_auto_is_what_people_write_by_hand_until_it_has_watched_long_enough() -> None:
    """And says how far it is."""
    looks = [sight(0, text=at(1, 2)), sight(19.9), sight(20)]
    answers = story(AUTO, *looks)
    assert [status for status, _ in answers] == [Status.OK, Status.OK, Status.CRITICAL]
    assert answers[-1][1].endswith("(limit 20m; auto: still learning, 5m 06s watched)")


def test_auto_follows_what_was_learned() -> None:
    """Twice the usual quiet of a minute and a look between, less half a look."""
    looks = [sight(n, text=at(n) if n < 4 else "") for n in range(7)]
    answers = story(AUTO, *looks, learned=WATCHED)
    assert [status for status, _ in answers].index(Status.CRITICAL) == 6
    assert answers[-1][1] == (
        "no progress for 3m, still at progress 3 (limit 2m 30s; auto: usually quiet for 1m at most, over 1d 3h)"
    )


def test_hours_without_a_look_teach_nothing() -> None:
    """sentinel was stopped; that the number has advanced since is no quiet of hours."""
    seen, learned = update_state(sight(0, text=at(1)), None, WATCHED, True)
    seen, learned = update_state(sight(300, text=at(900)), seen, learned, True)
    assert learned.quiets["progress"].longest == (60.0,) * 9
    assert learned.quiets["progress"].pauses == ()


def test_what_a_former_job_wrote_into_the_same_file_is_not_read_again() -> None:
    """Its place is handed on, its numbers and phases are not."""
    first = sight(0, job=HOUR_OLD, text=at(1, 2) + "saving\n")
    again = replace(HOUR_OLD, started=START.wall // SECOND)
    seen, learned = update_state(first, None, TrainingBaseline(), True)
    seen, _ = update_state(sight(1, job=again, text=""), seen, learned, True)
    assert (seen.places, seen.marks, seen.phase) == (first.places, {}, None)


def seen_after(*sights: LogObservation, rules: StaleRules = GROWTH) -> LogState:
    """What is remembered after these looks."""
    seen: LogState | None = None
    learned = EMPTY_BASELINE
    for one in sights:
        seen, learned = update_state(one, seen, learned, rules.by_number)
    assert seen is not None
    return seen


TROUBLE = LogEvent(at=0, what="trouble", trouble=LogTrouble(kind="oom", line="CUDA out of memory"))


def test_an_error_in_a_log_that_only_grows_is_old_after_a_quarter_of_an_hour() -> None:
    """If it still grows: one that stands still has not outlived it."""
    bad = sight(0, events=(TROUBLE,))
    grows = [sight(n, size=10 + n) for n in range(1, 15)]
    assert seen_after(bad, *grows).troubles
    assert not seen_after(bad, *grows, sight(15, size=30)).troubles
    assert seen_after(bad, sight(30)).troubles
    assert seen_after(bad, sight(15)).troubles
    assert not seen_after(bad, sight(30), sight(31, size=31)).troubles


def test_an_error_in_a_log_with_numbers_is_old_after_two_advances() -> None:
    """Time alone ends nothing there, and growth does not count."""
    bad = sight(1, text=at(2), events=(*scan_text(at(2), PATTERNS), TROUBLE))
    waits = [sight(1 + n, size=10 + n) for n in range(1, 40)]
    first = sight(0, text=at(1))
    assert seen_after(first, bad, *waits, rules=NUMBER).troubles
    assert seen_after(first, bad, sight(2, text=at(3)), rules=NUMBER).troubles
    assert not seen_after(
        first, bad, sight(2, text=at(3)), sight(3, text=at(4)), rules=NUMBER
    ).troubles


def test_several_files_are_one_log_of_all_their_bytes() -> None:
    """One is told by its name, several by the pattern."""
    two = {
        path: FileStat(size=size, inode=path, mtime=size) for path, size in (("/a", 3), ("/b", 4))
    }
    both = sight(0, path="/*", size=None)
    both = replace(both, looks=two)
    assert (both.shown_path, both.size_bytes, both.modified_at_s) == ("/*", 7, 4)
    one = replace(both, looks={"/a": two["/a"]})
    assert (one.shown_path, one.size_bytes) == ("/a", 3)
    assert (sight(0, size=None).shown_path, sight(0, size=None).size_bytes) == ("/l", None)
    assert seen_after(both).marks[""].value == 7
    assert seen_after(sight(0), sight(1, size=25)).marks[""].grain == 15


def test_a_quiet_is_over_where_a_phase_begins_and_that_of_the_phase_is_not_learned() -> None:
    """Epochs of many minutes with short evaluations between them are quiet for all of an epoch;
    the length of a phase is learned by itself."""

    def pauses(last: str, then: str = "") -> int:
        seen: LogState | None = None
        learned = EMPTY_BASELINE
        texts = [at(1), at(2), then, *[""] * 8, last]
        for minute, text in enumerate(texts):
            seen, learned = update_state(sight(minute, text=text), seen, learned, True)
        return len(learned.quiets["progress"].pauses)

    assert pauses(at(3)) == 1
    assert pauses("saving\n" + at(3)) == pauses("saving\n") == 1
    assert pauses("saving\nsaved\n" + at(3)) == 1
    assert pauses("saved\n" + at(3), then="saving\n") == 0


def test_a_number_is_known_as_exactly_as_it_moves() -> None:
    """Twice the farthest of: the usual pace from look to look, the last move, a block of output."""
    seen = LogState(path="/l", first=START, looked=START, grown=START, spacing=60)
    mark = ProgressMark(value=1, since=START)

    def blur(mark: ProgressMark, *rates: float) -> float:
        return _StateUpdate(seen, START, TrainingBaseline(rates={"progress": rates}))._compute_blur(
            "progress", mark
        )

    assert blur(mark) == 0
    assert blur(replace(mark, grain=50)) == 0
    assert blur(mark, 0.001) == pytest.approx(0.12)
    assert blur(mark, 0.3, 0.1, 0.2) == pytest.approx(24)
    assert blur(replace(mark, grain=50), 0.2) == 100
    assert blur(replace(mark, grain=50, jump=70), 0.2) == 140


def test_auto_knows_a_job_by_the_one_before() -> None:
    """Three jobs of the name began within two minutes, and one of them ran for an hour."""
    learned, minute = EMPTY_BASELINE, 0.0
    for length in (60, 5, 5):
        run = replace(YOUNG, started=START.wall // SECOND + int(minute * 60))
        seen: LogState | None = None
        for n in range(length):
            one = sight(minute + n, job=run, text=at(n) if n else "", inode=f"1:{minute}")
            seen, learned = update_state(one, seen, learned, by_number=True)
        minute += length
    assert learned.starts == (120.0, 120.0, 120.0)
    assert list(learned.jobs.values()) == [57 * 60, 2 * 60, 2 * 60]

    def answer(*numbers: int, until: float) -> tuple[Status, str]:
        run = replace(YOUNG, started=START.wall // SECOND + int(minute * 60))
        looks = [sight(minute), *(sight(minute + n, job=run, text=at(n)) for n in numbers)]
        looks = [replace(one, job=run) for one in (*looks, sight(minute + until))]
        return story(AUTO, *looks, learned=learned)[-1]

    assert answer(until=9.9)[0] is Status.OK
    status, words = answer(until=10)
    assert status is Status.CRITICAL
    assert words.endswith("(limit 10m; auto: earlier jobs took 2m at most to begin)")
    assert answer(1, 2, 3, until=12.9)[0] is Status.OK
    assert answer(1, 2, 3, until=13)[0] is Status.CRITICAL


def test_a_start_that_was_not_watched_teaches_nothing() -> None:
    """sentinel came when the job had long begun."""
    run = replace(YOUNG, started=START.wall // SECOND - 7200)
    seen, learned = update_state(
        sight(0, job=run, text=at(1)), None, EMPTY_BASELINE, by_number=True
    )
    assert learned.starts == ()
    seen, learned = update_state(sight(1, job=run, text=at(3)), seen, learned, by_number=True)
    assert learned.starts == ()


def test_a_run_in_between_says_nothing_of_how_often_one_looks() -> None:
    """The least limit of `auto` follows from that: a suspicion does not make it shorter."""
    seen = seen_after(sight(0))
    assert (
        update_state(sight(0.1), seen, EMPTY_BASELINE, True, due=False)[0].spacing
        == seen.spacing
        == 60
    )
    assert update_state(sight(0.1), seen, EMPTY_BASELINE, True)[0].spacing == pytest.approx(49.2)
    assert update_state(sight(60), seen, EMPTY_BASELINE, True)[0].spacing == pytest.approx(72)


def test_a_look_without_an_advance_is_no_work_of_the_job() -> None:
    """It counts with the next one that is."""
    run = replace(YOUNG, started=START.wall // SECOND)
    seen: LogState | None = None
    learned, far = EMPTY_BASELINE, []
    for minute, text in enumerate([at(1), at(2), "", "", at(3)]):
        one = sight(minute, job=run, text=text)
        seen, learned = update_state(one, seen, learned, by_number=True)
        far.append(sum(learned.jobs.values()))
    assert far == [0, 0, 0, 0, 180]


def test_a_phase_that_ended_while_nobody_looked_teaches_no_length() -> None:
    """Up to three looks it is known well enough."""

    def lengths(minutes: float) -> dict[str, tuple[float, ...]]:
        seen: LogState | None = None
        learned = EMPTY_BASELINE
        for minute, text in ((0, at(1)), (1, "saving\n"), (2, ""), (2 + minutes, "saved\n")):
            seen, learned = update_state(sight(minute, text=text), seen, learned, True)
        return learned.phases

    assert (lengths(2.9), lengths(4)) == ({"checkpoint": (60.0,)}, {})


def test_a_span_in_which_a_phase_begins_measures_no_speed() -> None:
    """Also where it begins with the last look."""

    def rates(last: str) -> tuple[float, ...]:
        seen: LogState | None = None
        learned = EMPTY_BASELINE
        for minute in range(16):
            text = at(minute) + (last if minute == 15 else "")
            seen, learned = update_state(sight(minute, text=text), seen, learned, True)
        return learned.rates.get("progress", ())

    assert (rates(""), rates("saving\n")) == ((pytest.approx(1 / 60),), ())


def test_of_many_echoes_the_last_ones_make_room() -> None:
    """The first stay, with the causes that came late."""
    echo, other = sorted(ECHO_KIND_NAMES)[0], "oom"
    kinds = [echo] * MAX_KEPT_TROUBLES + [other] * 2
    events = (
        LogEvent(at=n, what="trouble", trouble=LogTrouble(kind=kind, line=str(n)))
        for n, kind in enumerate(kinds)
    )
    seen = seen_after(sight(0, events=tuple(events)))
    kept = [*range(MAX_KEPT_TROUBLES - 2), MAX_KEPT_TROUBLES, MAX_KEPT_TROUBLES + 1]
    assert [int(trouble.line) for trouble in seen.troubles] == kept
