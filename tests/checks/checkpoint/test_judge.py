"""When a checkpoint is complete and how much is at risk, bound by bound, without a folder."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.checkpoint.files import CheckpointContents, CheckpointEntry
from sentinel.checks.checkpoint.judge import (
    ComparedCheckpoints,
    CompleteCheckpoint,
    FolderObservation,
    UnfinishedCheckpoint,
    explain_incomplete,
    find_last_change,
    find_newest_complete,
    get_seconds_at_risk,
    judge_checkpoints,
    render_risk,
)
from sentinel.core.checkpoints import CheckpointRule
from sentinel.core.clock import SECOND, shift_instant
from sentinel.core.model import Status
from sentinel.core.values import Duration, Size
from sentinel.testing import START

ENTRY = CheckpointEntry(name="step_5", step=5, changed=0.0)
PLAIN = CheckpointRule(settled=Duration(60))
MARKED, POINTED = CheckpointRule(marker="DONE"), CheckpointRule(latest="latest")


def files(*times: float, name: str = "shard{}.pt") -> tuple[tuple[str, int, float], ...]:
    return tuple((name.format(number), 10, at) for number, at in enumerate(times))


def inside(size: int = 100, **more: Any) -> CheckpointContents:
    return CheckpointContents(size=size, changed=0.0, **more)


def other(size: int = 100, **more: Any) -> CompleteCheckpoint:
    return CompleteCheckpoint(step=1, size=size, since=START, **more)


def why(
    contents: CheckpointContents,
    rule: CheckpointRule = PLAIN,
    quiet: float = 3600.0,
    entry: CheckpointEntry = ENTRY,
    **known: Any,
) -> str:
    return explain_incomplete(entry, contents, rule, ComparedCheckpoints(**known), quiet)


def test_what_lacks_nothing_is_complete() -> None:
    """The control of all that follows; what its name lacks is told before all else."""
    assert why(inside()) == ""
    assert why(inside(0), entry=replace(ENTRY, lacks="its name says .tmp")) == "its name says .tmp"
    assert why(inside(lacks="it has no shard2.pt")) == "it has no shard2.pt"


@pytest.mark.parametrize(
    ("quiet", "rule", "said"),
    [
        (60.0, PLAIN, ""),
        (59.0, PLAIN, "it changed 59s ago"),
        (0.0, MARKED, ""),
        (0.0, CheckpointRule(), "it changed 0s ago"),
    ],
)
def test_how_long_it_must_be_quiet(quiet: float, rule: CheckpointRule, said: str) -> None:
    """Where nothing else says that it is complete."""
    assert why(inside(), rule, quiet) == said


@pytest.mark.parametrize(
    ("size", "least", "said"),
    [(0, 0, "it has 0 B"), (1, 0, ""), (99, 100, "it has 99 B"), (100, 100, "")],
)
def test_how_large_it_must_be(size: int, least: int, said: str) -> None:
    """An empty one is none."""
    assert why(inside(size), CheckpointRule(min_size=Size(least))) == said


@pytest.mark.parametrize(
    ("marker", "others", "said"),
    [
        (None, (), "it has no DONE"),
        (5, (), ""),
        (0, (), ""),
        (0, (other(marker=0),), ""),
        (0, (other(marker=0), other(marker=3)), "its DONE is empty or cut"),
        (5, (other(marker=3),), ""),
    ],
)
def test_a_marker_is_there_and_filled_as_that_of_others(
    marker: int | None, others: tuple[CompleteCheckpoint, ...], said: str
) -> None:
    assert why(inside(marker=marker), MARKED, complete=others) == said


def test_a_marker_that_must_have_content_is_never_empty() -> None:
    rule = CheckpointRule(marker="meta.json")
    assert why(inside(marker=0), rule) == "its meta.json is empty or cut"


@pytest.mark.parametrize(
    ("times", "looked", "said"),
    [
        ((100.0, 220.0), (), ""),  # ranks do not wait for each other
        ((100.0, 220.5), (), "shard1.pt was written after its DONE"),
        ((221.0, 222.0), (), "shard0.pt was written after its DONE"),
        ((100.0, 100.0), (), ""),
    ],
)
def test_a_file_that_is_younger_than_the_marker(
    times: tuple[float, ...], looked: Any, said: str
) -> None:
    contents = inside(marker=1, marked=100.0, files=files(*times))
    assert why(contents, MARKED, looked=looked) == said


def test_what_was_laid_beside_later_is_no_part_of_the_save() -> None:
    """Unless other checkpoints have such a file; the marker itself is not compared."""
    note = (("note.txt", 1, 500.0),)
    contents = inside(marker=1, marked=100.0, files=(*files(100.0), *note, ("DONE", 1, 900.0)))
    assert why(contents, MARKED) == ""
    said = "note.txt was written after its DONE"
    assert why(contents, MARKED, looked=[{"note.txt": 1}]) == said
    undated = replace(contents, marked=None)
    assert why(undated, MARKED, looked=[{"note.txt": 1}]) == ""


@pytest.mark.parametrize(
    ("highest", "said"),
    [
        (None, "latest names none"),
        (4.0, "latest names step_4"),
        (5.0, ""),
        (6.0, ""),
    ],
)
def test_what_latest_names_and_all_below_is_complete(highest: float | None, said: str) -> None:
    pointer = "" if highest is None else f"step_{highest:.0f}"
    assert why(inside(), POINTED, highest=highest, pointer=pointer) == said


@pytest.mark.parametrize(
    ("times", "highest", "said"),
    [
        ((100.0, 220.0), 6.0, ""),
        ((221.0, 222.0), 6.0, "it was written after latest, which names step_6"),
        ((221.0, 222.0), 5.0, ""),  # it is the one that is named: the pointer came first
        ((100.0, 221.0), 6.0, "shard1.pt was written after latest"),
        ((100.0, 221.0), 5.0, "shard1.pt was written after latest"),
    ],
)
def test_what_is_younger_than_latest(times: tuple[float, ...], highest: float, said: str) -> None:
    contents = inside(files=files(*times))
    known: dict[str, Any] = {"highest": highest, "pointed": 100.0, "pointer": f"step_{highest:.0f}"}
    assert why(contents, POINTED, **known) == said
    assert why(contents, POINTED, **{**known, "pointed": None}) == ""


FEWER = "it has fewer files than the others: 3 of 4 shard#.pt"
FOUR = {"shard#.pt": 4}


@pytest.mark.parametrize(
    ("others", "looked", "said"),
    [
        (2, (), FEWER),
        (1, (), ""),  # one other is no rule
        (2, ({"shard#.pt": 3},), FEWER),
        (2, ({"shard#.pt": 3},) * 2, ""),
        (0, (), ""),
    ],
)
def test_a_file_fewer_than_the_others_is_missing(
    others: int, looked: tuple[dict[str, int], ...], said: str
) -> None:
    """Unless others that were looked into have as few."""
    contents = inside(files=files(1.0, 1.0, 1.0))
    complete = [other(forms=FOUR, written=float(n)) for n in range(others)]
    assert why(contents, complete=[*complete, other()], looked=looked) == said


@pytest.mark.parametrize(("size", "said"), [(94, FEWER.replace("3 of", "2 of")), (95, "")])
def test_fewer_files_and_fewer_bytes_than_one_other(size: int, said: str) -> None:
    """Fewer ranks write fewer files and as many bytes; of several the smallest counts."""
    contents = inside(size, files=files(1.0, 1.0))
    assert why(contents, complete=[other(forms=FOUR)]) == said
    both = [other(forms={"shard#.pt": 5}, size=1000), other(forms=FOUR)]
    assert why(contents, complete=both) == said


def test_the_newest_four_others_count() -> None:
    """By when they were written, in whatever order they come: what trainers write changes."""
    new = [other(forms={**FOUR, "extra.bin": 1}, written=float(n)) for n in (30, 10, 40, 20)]
    old = other(forms=FOUR, written=5.0)
    contents = inside(files=files(1.0, 1.0, 1.0, 1.0))
    said = "it has no extra.bin, and the others have 1"
    assert why(contents, complete=[*new, old]) == said
    assert why(contents, complete=[*new[:3], old]) == ""


@pytest.mark.parametrize(
    ("size", "older", "sizes", "said"),
    [
        (74, (100, 110), (), "it has 74 B, and those before it have 100 B or more"),
        (75, (100, 110), (), ""),
        (74, (100,), (), ""),
        (74, (100, 98), (), ""),
        (74, (100, 110), (98, 200), "it has 74 B, and those before it have 100 B or more"),
        (74, (100, 110), (98, 74), ""),
        (75, (101, 101), (100, 100), ""),
    ],
)
def test_what_is_cut(size: int, older: tuple[int, ...], sizes: tuple[int, ...], said: str) -> None:
    """Less than three quarters of each before it, and no two others as small."""
    later = other(10, written=5.0)  # what was saved after it says nothing
    assert why(inside(size), complete=[*map(other, older), later], sizes=sizes) == said


def test_only_the_last_four_before_it_count() -> None:
    """A training that keeps less now is not cut."""
    sizes = (10, 100, 100, 100, 100)
    saved = [other(size, written=float(n - 9)) for n, size in enumerate(sizes)]
    assert why(inside(74), complete=saved)
    assert why(inside(74), complete=[*saved[1:], replace(saved[0], written=-0.5)]) == ""


def test_when_it_last_changed() -> None:
    """By the file server's clock at the first look alone; a file of the future changed now."""
    wall = START.wall / SECOND
    then = shift_instant(START, -50.0)
    contents = replace(inside(), changed=wall - 100)
    assert find_last_change(contents, None, START, first=True) == shift_instant(START, -100.0)
    ahead = replace(contents, changed=wall + 100)
    assert find_last_change(ahead, None, START, first=True) == START
    same = UnfinishedCheckpoint(size=100, changed=wall - 100, since=then)
    assert find_last_change(contents, same, START, first=False) == then
    for odd in (None, replace(same, size=99), replace(same, changed=wall)):
        assert find_last_change(contents, odd, START, first=False) == START


def complete(**ages: float) -> dict[str, CompleteCheckpoint]:
    """Checkpoints by name, of these ages in seconds; the step is the number in the name."""
    return {
        name: replace(other(), step=float(name[1:]), since=shift_instant(START, -age))
        for name, age in ages.items()
    }


@pytest.mark.parametrize(
    ("there", "ran", "seconds"),
    [
        ({}, None, None),
        ({}, 30.0, 30.0),
        ({"s1": 100.0}, None, 100.0),
        ({"s1": 100.0}, 50.0, 50.0),
        ({"s1": 100.0}, 200.0, 100.0),
        ({"s9": 100.0, "s2": 40.0}, None, 40.0),  # after a fall back higher steps are old
    ],
)
def test_what_is_at_risk(there: dict[str, float], ran: float | None, seconds: float | None) -> None:
    """The work since the newest complete one, and never more than the job has done."""
    assert get_seconds_at_risk(complete(**there), START, ran) == seconds


def test_of_those_that_became_complete_together_the_highest_step_is_the_newest() -> None:
    newest = find_newest_complete(complete(s3=5.0, s7=5.0, s5=5.0), START)
    assert newest is not None
    assert newest[0] == "s7"
    assert find_newest_complete({}, START) is None


def test_the_risk_in_a_line() -> None:
    assert render_risk({}, START, None) == "no complete checkpoint is known"
    assert render_risk({}, START, 60.0) == "1m of work at risk: there is no complete checkpoint"
    assert render_risk(complete(s1=60.0), START, None) == "1m of work since checkpoint s1 at risk"


@pytest.mark.parametrize(
    ("there", "ran", "fewest", "status"),
    [
        ({"s1": 100.0}, None, 0, Status.OK),
        ({"s1": 100.5}, None, 0, Status.OK),
        ({"s1": 101.0}, None, 0, Status.CRITICAL),
        ({"s1": 100.5}, 100.0, 0, Status.OK),
        ({"s1": 10.0}, None, 1, Status.OK),
        ({"s1": 10.0}, None, 2, Status.WARNING),
        ({"s1": 101.0}, None, 2, Status.CRITICAL),
        ({}, None, 0, Status.WARNING),
        ({}, 100.0, 0, Status.OK),
        ({}, 101.0, 0, Status.CRITICAL),
        ({}, 100.0, 1, Status.WARNING),
    ],
)
def test_how_bad_it_is(
    there: dict[str, float], ran: float | None, fewest: int, status: Status
) -> None:
    """Late is more than the limit, as it is shown; without a job nothing is awaited but one checkpoint."""
    sight = FolderObservation(at=START, complete=complete(**there), ran=ran)
    assert judge_checkpoints(sight, 100.0, fewest).status is status


def test_what_is_said_of_it() -> None:
    """What is late, what is few, the newest, what the job has run, and what is not complete."""
    begun = {"begun": "s9", "why": "it has no DONE", "unfit": "5 names do not fit"}
    sight = FolderObservation(at=START, complete=complete(s1=120.0), ran=110.0, **begun)
    told = judge_checkpoints(sight, 100.0, 2).summary.split("; ")
    assert told[0] == "nothing saved since the job started 110s ago (limit 100s)"
    assert told[1] == "1 complete checkpoint, at least 2 expected"
    assert told[2].startswith("newest s1, complete ")
    assert told[2].endswith("(2m old, 100 B)")
    assert told[3:] == ["5 names do not fit", "s9 is not complete: it has no DONE"]
    old = judge_checkpoints(replace(sight, ran=500.0), 100.0, 0).summary
    assert old.startswith("nothing saved for 2m (limit 100s); newest s1, ")
    for ran in (None, 120.0, 130.0):
        longer = replace(sight, ran=ran, begun="", unfit="")
        assert len(judge_checkpoints(longer, 1000.0, 0).summary.split("; ")) == 1
    several = replace(sight, complete=complete(s1=1.0, s2=2.0), begun="", unfit="", ran=None)
    few = judge_checkpoints(several, 100.0, 3).summary
    assert few.startswith("2 complete checkpoints, at least 3 expected; ")
    none = judge_checkpoints(replace(sight, complete={}, ran=5.0), 100.0, 0).summary
    assert none.startswith("no complete checkpoint; the job started 5s ago; ")


def test_its_numbers() -> None:
    sight = FolderObservation(at=START, complete=complete(s7=12.34), ran=5.67)
    assert judge_checkpoints(sight, 100.0, 0).values == {
        "age_seconds": 12.3, "at_risk_seconds": 5.7, "size_bytes": 100, "complete": 1, "step": 7.0,
    }  # fmt: skip
    nothing = judge_checkpoints(FolderObservation(at=START, complete={}), 100.0, 0).values
    assert nothing == {
        "age_seconds": None, "at_risk_seconds": None, "size_bytes": None, "complete": 0,
        "step": None,
    }  # fmt: skip
