"""What a pass has to do about a script, and a week of fifty of them."""

import itertools
from datetime import datetime, timezone

import pytest
from msgspec.structs import replace

from sentinel.chain.script import CronScript, iterate_slots, read_script
from sentinel.chain.script_history import (
    DueSlots,
    ScriptRecord,
    SubmittedRun,
    due_slots,
    record_failed,
    record_submitted,
    update_next_slot,
    update_record,
)
from sentinel.core.errors import Invalid

UTC = timezone.utc
HOUR = 3600
T0 = int(datetime(2026, 11, 16, tzinfo=UTC).timestamp())  # a Monday


def script(text: str = "", directory: str = "cron.hourly") -> CronScript:
    return read_script(f"{directory}/x", directory, f"#!/bin/sh\n{text}\n")


def run(slot: int, *, over: bool) -> SubmittedRun:
    return SubmittedRun(slot=slot, job=str(slot), at=float(slot), state="COMPLETED" if over else "")


@pytest.mark.parametrize(
    ("text", "since", "runs", "expected"),
    [
        ("", 30, (), DueSlots()),
        ("", HOUR, (), DueSlots(run=(T0 + HOUR,))),
        ("", 5 * HOUR, (), DueSlots(run=(T0 + 5 * HOUR,), missed=4)),
        (
            "#SENTINEL catchup=all",
            3 * HOUR,
            (),
            DueSlots(run=tuple(T0 + n * HOUR for n in (1, 2, 3))),
        ),
        ("#SENTINEL catchup=none", 5 * HOUR + 901, (), DueSlots(missed=5)),
        ("#SENTINEL catchup=none", 5 * HOUR + 900, (), DueSlots(run=(T0 + 5 * HOUR,), missed=4)),
        ("", HOUR, (run(T0, over=False),), DueSlots(skipped=1)),
        ("", HOUR, (run(T0, over=True),), DueSlots(run=(T0 + HOUR,))),
        ("#SENTINEL overlap=allow", HOUR, (run(T0, over=False),), DueSlots(run=(T0 + HOUR,))),
        ("#SENTINEL overlap=queue", HOUR, (run(T0, over=False),), DueSlots(run=(T0 + HOUR,))),
        (
            "#SENTINEL overlap=queue",
            HOUR,
            (run(T0, over=False), run(T0 - HOUR, over=False)),
            DueSlots(skipped=1),
        ),
    ],
)
def test_what_is_due(
    text: str, since: int, runs: tuple[SubmittedRun, ...], expected: DueSlots
) -> None:
    """So many seconds after the last pass."""
    record = ScriptRecord(handled=float(T0), runs=runs)
    assert due_slots(script(text), record, T0 + since, UTC) == expected


def test_what_could_not_be_submitted_stays_due() -> None:
    """The next pass tries it again."""
    record = ScriptRecord(handled=float(T0))
    wanted = due_slots(script(), record, T0 + HOUR, UTC)
    again = record_failed(record, [], "sbatch: refused")
    assert again.trouble == "sbatch: refused"
    assert due_slots(script(), again, T0 + HOUR + 60, UTC) == wanted


def test_what_was_submitted_before_one_failed_is_not_submitted_again() -> None:
    """Of three slots that are made up, the first was taken."""
    one = script("#SENTINEL catchup=all")
    record = ScriptRecord(handled=float(T0))
    first, *rest = due_slots(one, record, T0 + 3 * HOUR, UTC).run
    again = record_failed(record, [run(first, over=False)], "sbatch: refused")
    again = replace(again, runs=tuple(replace(r, state="COMPLETED") for r in again.runs))
    assert due_slots(one, again, T0 + 3 * HOUR + 60, UTC).run == tuple(rest)


def test_a_clock_that_is_put_back_stops_no_script_and_runs_none_twice() -> None:
    """A host believed for a while to be in 2030: without this, nothing would be due until then."""
    slot = T0 + HOUR
    record = ScriptRecord(handled=slot + 4 * 365 * 86400.0, runs=(run(slot, over=True),))
    for now, expected in ((slot - 60, ()), (slot + 1, ()), (slot + HOUR, (slot + HOUR,))):
        record = update_record(record, record.runs, now)
        assert due_slots(script(), record, now, UTC).run == expected


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('#SENTINEL schedule="61 * * * *"', "minute '61' is not within"),
        ('#SENTINEL schedule="0 0 30 2 *"', "never comes"),
        (
            f'#SENTINEL schedule="{"1" * 5000} * * * *"',
            "minute '1111111111111111111…' is not within",
        ),
        ("#SENTINEL overlap=maybe", "one of skip, queue, allow"),
        ("#SENTINEL shedule=@daily", "knows schedule="),
        ('#SENTINEL schedule="0 0', "No closing quotation"),
    ],
)
def test_lines_that_make_no_sense_are_refused(line: str, said: str) -> None:
    """A script with a typing error never runs at another time than was meant."""
    with pytest.raises(Invalid, match=said):
        script(line)


def _spacing(found: list[int]) -> int:
    return min(b - a for a, b in itertools.pairwise(found))


FIFTY = [
    *(("", f"cron.every-{n}min") for n in (1, 5, 7, 10, 13, 15, 20, 30, 45, 90)),
    *(("", f"cron.{word}") for word in ("hourly", "daily", "weekly", "monthly")),
    *((f'#SENTINEL schedule="{m} {h} * * *"', "cron.daily") for m in (0, 17, 59) for h in range(0, 24, 4)),
    *((f'#SENTINEL schedule="*/{n} 8-20 * * mon-fri"', "cron.x") for n in (5, 10, 15, 20, 30)),
    *((f'#SENTINEL schedule="0 {h} * * {d}"', "cron.x") for h in (3, 22) for d in (0, 3, 6)),
    *((f'#SENTINEL schedule="{m} * 16-20 * *"', "cron.x") for m in (1, 2, 3, 4, 5, 6, 7)),
]  # fmt: skip


def test_a_week_of_fifty_scripts_is_exactly_on_schedule() -> None:
    """A pass every five minutes, some of them late, with four hours of nothing on Wednesday."""
    assert len(FIFTY) == 50
    scripts = [script(text, directory) for text, directory in FIFTY]
    records = [ScriptRecord(handled=float(T0)) for _ in scripts]
    submitted: list[list[int]] = [[] for _ in scripts]
    missed = [0] * len(scripts)
    outage = range(T0 + 58 * HOUR, T0 + 62 * HOUR)
    for minute in range(T0 + 300, T0 + 7 * 24 * HOUR + 1, 300):
        now = minute + minute // 300 % 7
        if now in outage:
            continue
        for number, one in enumerate(scripts):
            wanted = due_slots(one, records[number], now, UTC)
            runs = [run(slot, over=True) for slot in wanted.run]
            if wanted != DueSlots():
                records[number] = record_submitted(records[number], wanted, runs, now)
            submitted[number] += wanted.run
            missed[number] += wanted.missed
    for number, one in enumerate(scripts):
        should = list(iterate_slots(one.schedule, T0, T0 + 7 * 24 * HOUR, UTC))
        lost = sorted(set(should) - set(submitted[number]))
        assert submitted[number] == sorted(set(submitted[number])), one.schedule
        assert set(submitted[number]) <= set(should)
        assert len(lost) == missed[number]
        unlucky = [slot for slot in lost if slot not in range(outage.start, outage.stop + 300)]
        assert not unlucky or _spacing(should) < 300


def test_the_next_slot_is_known_between_passes_and_after_a_change() -> None:
    """It is looked for anew once it has passed, or once the script has another schedule."""
    first = update_next_slot(ScriptRecord(handled=T0), script(), T0, UTC)
    assert first.next_slot == T0 + HOUR
    assert update_next_slot(first, script(), T0 + 60, UTC) is first
    assert update_next_slot(first, script(), T0 + HOUR, UTC).next_slot == T0 + 2 * HOUR
    often = script(directory="cron.every-30min")
    assert update_next_slot(first, often, T0 + 60, UTC).next_slot == T0 + HOUR // 2
    assert first.next_slot == T0 + HOUR
