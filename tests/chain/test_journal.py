"""What became of each slot."""

import pytest
from msgspec.structs import replace

from sentinel.chain.journal import (
    JournalEntry,
    SlotGap,
    describe_first_failure,
    find_closed_gap,
    find_run_job,
    sum_journal,
)
from sentinel.chain.model import Chain

CHAIN = Chain(name="s", every=60, command=("sentinel",))


def ran(slot: int, job: str = "1", what: str = "ran", late: float = 1.0) -> JournalEntry:
    return JournalEntry(slot=slot, what=what, at=slot + late, job=job)  # type: ignore[arg-type]


def test_nothing_yet() -> None:
    """No slot is missing before the first."""
    assert sum_journal(CHAIN, [], 6000.0).slots == 0


def test_every_slot_counts_once() -> None:
    """Run, found another at work, failed, or missing; the slot of now counts once it has run."""
    entries = [ran(60), ran(120, what="busy"), ran(180, what="failed"), ran(360), ran(420)]
    found = sum_journal(CHAIN, entries, 485.0)
    assert (found.slots, found.ran, found.busy, found.failed) == (7, 3, 1, 1)
    assert found.gaps == (SlotGap(240, 300, 2),)
    assert (found.last, found.repeated) == (420, 0)


def test_a_slot_that_was_run_twice_shows() -> None:
    """It never may be."""
    assert sum_journal(CHAIN, [ran(60, "1"), ran(60, "2")], 70.0).repeated == 1


def test_lateness_is_of_the_first_beginning() -> None:
    """Seconds between the slot and the link that set to work on it."""
    begins = [ran(60, what="begin", late=3.0), ran(60, what="begin", late=50.0), ran(60)]
    assert sum_journal(CHAIN, begins, 119.0).late == 3.0


def test_a_host_that_believes_to_be_in_1970_makes_no_gap_of_half_a_century() -> None:
    """Neither in what is told nor in memory."""
    now = 1_800_000_000.0
    entries = [ran(60), *(ran(CHAIN.slot_at(now) - n * 60) for n in (2, 1, 0))]
    found = sum_journal(CHAIN, entries, now)
    assert (found.slots, found.gaps) == (3, ())


def test_a_host_whose_clock_is_ahead_hides_no_silence() -> None:
    """What it noted lies in the future; the last pass is that of the others."""
    now = 1_800_000_000.0
    last = CHAIN.slot_at(now) - 600
    found = sum_journal(CHAIN, [ran(last), ran(CHAIN.slot_at(now) + 86_400)], now)
    assert (found.last, found.last_at) == (last, last + 1)


def test_slots_of_another_spacing_are_none_of_this_chain() -> None:
    """A link of the older installation may still be at work: no slot of its own would ever count."""
    now = 1_800_000_000.0
    entries = [ran(CHAIN.slot_at(now) - 90), *(ran(CHAIN.slot_at(now) - n * 60) for n in (1, 0))]
    assert (sum_journal(CHAIN, entries, now).slots, find_closed_gap(CHAIN, entries, now)) == (
        2,
        None,
    )


@pytest.mark.parametrize(("entries", "job"), [([ran(60, "7")], "7"), ([ran(60, what="begin")], "")])
def test_only_what_ended_was_run(entries: list[JournalEntry], job: str) -> None:
    """A node may die in the middle: then the slot is run again."""
    assert find_run_job(entries, 60) == job


@pytest.mark.parametrize(
    ("now", "told"),
    [(301.0, True), (361.0, True), (425.0, False)],
    ids=["at once", "next", "later"],
)
def test_blind_time_is_told_when_it_ends(now: float, told: bool) -> None:
    """In the first two passes after it: a pass may fail to deliver."""
    entries = [ran(60), *(ran(s) for s in (300, 360, 420) if s + 1 < now)]
    assert (find_closed_gap(CHAIN, entries, now) == SlotGap(120, 240, 3)) is told


def test_why_there_was_no_pass_yet() -> None:
    """The reason that the first job left, or that none came; nothing where one ran or none is late."""
    bad = replace(ran(60, "7", "failed"), text="/x.yaml: the file cannot be read")
    told = "the first pass failed in job 7: /x.yaml: the file cannot be read"
    assert describe_first_failure(CHAIN, [ran(60, what="begin"), bad], 130.0) == told
    assert describe_first_failure(CHAIN, [bad, ran(120)], 130.0) == ""
    late = replace(CHAIN, installed=1000)
    assert describe_first_failure(late, [], 1300.0) == "no job of it made a pass since 5m"
    assert describe_first_failure(late, [], 1050.0) == ""
    assert describe_first_failure(late, [ran(1020, what="begin")], 1100.0) == ""
    slow = replace(
        late, every=600
    )  # due at 1200; whoever looks a minute later need not wait for 2200
    assert describe_first_failure(slow, [], 1250.0) == ""
    assert describe_first_failure(slow, [], 1270.0) == "no job of it made a pass since 4m 30s"
    assert describe_first_failure(replace(late, mode="relay"), [], 1300.0) == ""
