"""Rows whose number stands still: those that show life, and those that a training that hangs may leave behind."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel.checks.log.row_counts import is_resource
from sentinel.checks.log.rows import (
    MAX_KINDS,
    SEARCHED_CHARS,
    RowKind,
    add_rows,
    find_rows,
    hash_values,
    list_carriers,
)
from sentinel.core.model import Status
from sentinel.core.settings import FilePath
from tests.checks.log.test_check import Watch

Lines = Callable[[int], str]
"""What is written in a minute."""


def bar(n: int, total: int, minute: int, more: str = "") -> str:
    """As tqdm/std.py, `format_meter`, writes it."""
    shown = f"{100 * n // total:3d}%|{'#' * (10 * n // total):<10}| {n}/{total}"
    return f"{shown} [{minute:02d}:07<{99 - minute % 99:02d}:11, {60 + minute % 9:.2f}s/it{more}]\n"


def huggingface(minute: int) -> str:
    """`transformers/trainer_callback.py`, ProgressCallback.on_log, of four hosts without a bar; the epoch is
    rounded to two digits (`Trainer.log`)."""
    epoch = minute // 200 / 100
    return "".join(
        f"10.9.8.{host}: {{'loss': {2.1 - (minute % 199) / 100:.4f}, 'learning_rate': 4.99999{9000 - minute}e-05,"
        f" 'epoch': {epoch}}}\n"
        for host in (43, 17)
    )


WELL: dict[str, tuple[str | None, Lines]] = {
    "an epoch of two digits, of two hosts": (None, huggingface),
    "an epoch of two digits, as the user names it": (r"'epoch': ([\d.]+)", huggingface),
    "an epoch that is whole": (
        r"epoch (\d+)",
        lambda m: f"epoch {m // 300} batch {m % 300}/300 loss {3 - m / 900:.3f}\n",
    ),
    "thousands that the pattern does not know": (
        r"step +(\d+) ",
        lambda m: f"step {990 + m:,} | loss {3 - m / 900:.3f} | lr 3.0e-04\n",
    ),
    "an exponent of two digits": (
        r"step=([\d.e+]+)",
        lambda m: f"step={1000 + m // 2:.1e} loss={3 - m / 900:.2e}\n",
    ),
    "JSON lines": (
        r'"epoch": ([\d.]+)',
        lambda m: f'{{"epoch": {m // 100 / 100:.2f}, "train_loss": {3 - m / 900:.4f}, "lr": 0.0003}}\n',
    ),
    "a table": (
        r"^\| +([\d.]+) \|",
        lambda m: ("| epoch | loss |\n" if not m else "") + f"| {m // 90 / 10:5.1f} | {3 - m / 900:.4f} |\n",
    ),
    "ranks in turn": (
        r"epoch: ([\d.]+)",
        lambda m: f"[rank{m % 4}]: epoch: {m // 150 / 100:.2f} ppl: {30 - m / 90:.2f} grad: 0.{m % 7}1\n",
    ),
    "a bar that is a little shorter in the next epoch": (
        r"(\d+)/100 \[",
        lambda m: bar(m % 100, 100 if m < 100 else 98, m, f", loss={3 - m / 900:.4f}"),
    ),
    "a row that is seldom": (
        r"epoch ([\d.]+)",
        lambda m: f"epoch {m // 300 / 100:.2f} loss {3 - m / 900:.3f}\n" if m % 8 == 0 else "",
    ),
}  # fmt: skip

STEPS: Lines = lambda m: f"step {m} loss {3 - m / 900:.3f}\n"  # noqa: E731

HUNG: dict[str, tuple[str, Lines, Lines, int]] = {
    "nothing more": (r"step (\d+)", STEPS, lambda m: "", 0),
    "lines of another kind": (
        r"step (\d+)",
        STEPS,
        lambda m: f"heartbeat {m}: queue 0.{m}, 12 of {m} requests\n",
        0,
    ),
    "a bar that a timer draws again": (
        r"(\d+)/9000 \[",
        lambda m: bar(m, 9000, m, ", loss=2.1"),
        lambda m: bar(59, 9000, m, ", loss=2.1"),
        1,
    ),
    "a bar that a timer draws again, with a value that nobody knows": (
        r"(\d+)/9000 \[",
        lambda m: bar(m, 9000, m, f", queue={m % 17}"),
        lambda m: bar(59, 9000, m, f", queue={m * m}"),
        8,
    ),
    "a monitor that names the step": (
        r"step (\d+)",
        lambda m: STEPS(m) + f"monitor: step {m} gpu util 9{m % 10}% mem {60 + m % 9} GiB power: {600 + m}\n",
        lambda m: f"monitor: step 59 gpu util 9{m % 10}% mem {60 + m % 9} GiB power: {600 + m}\n",
        1,
    ),
    "ranks that repeat their last row": (
        r"step (\d+)",
        lambda m: "".join(f"[{rank}] step {m} loss 2.{m}{rank}\n" for rank in range(8)),
        lambda m: "".join(f"[{rank}] step 59 loss 2.59{rank}\n" for rank in range(8)),
        1,
    ),
    "times of the day": (
        r"step (\d+)",
        lambda m: f"2026-03-01 10:{m % 60:02d}:05,123 step {m} loss 2.{m} took {m}.5 s\n",
        lambda m: f"2026-03-01 11:{m % 60:02d}:05,123 step 59 loss 2.59 took {m}.5 s\n",
        1,
    ),
    "an error that names the step again and again": (
        r"step (\d+)",
        STEPS,
        lambda m: f"WARNING: step 59: waited for {m} peers, try {m * m}\n",
        0,
    ),
}  # fmt: skip


def append(log: Path, text: str) -> None:
    with log.open("a", newline="") as file:
        file.write(text)


@pytest.mark.parametrize(("pattern", "lines"), WELL.values(), ids=WELL)
def test_a_number_that_stands_in_rows_that_go_on_is_no_hang(
    pattern: str | None, lines: Lines, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    append(log, "".join(map(lines, range(20))))
    watch = Watch(path=FilePath(log), progress=re.compile(pattern) if pattern else "auto")
    told = set[Status]()
    for minute in range(20, 290, 3):
        append(log, "".join(map(lines, range(minute, minute + 3))))
        told.add(watch.look(3).status)
    assert told == {Status.OK}
    assert [watch.look(11).status, watch.look(1).status] == [Status.CRITICAL] * 2, "it stops"


@pytest.mark.parametrize(("pattern", "well", "hung", "late"), HUNG.values(), ids=HUNG)
def test_a_hang_beside_which_lines_go_on_is_told(
    pattern: str, well: Lines, hung: Lines, late: int, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.touch()
    watch = Watch(path=FilePath(log), progress=re.compile(pattern))
    for minute in range(60):
        append(log, well(minute))
        assert watch.look(1).status is Status.OK
    said: list[Status] = []
    for minute in range(60, 80):
        append(log, hung(minute))
        said.append(watch.look(1).status)
    assert said.count(Status.CRITICAL) >= 11 - late
    assert said.index(Status.CRITICAL) >= 9
    append(log, well(80))
    assert watch.look(1).status is Status.OK


def test_a_row_an_hour_and_two_trainings_in_one_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    watch = Watch(path=FilePath(log), progress=re.compile(r"epoch ([\d.]+)"), stale_after=5400.0)
    for hour in range(30):
        append(log, f"epoch 0.0{hour // 20} loss {9 - hour / 10:.2f}\n")
        append(log, f"other: epoch 0.0{hour // 20} score {hour / 7:.2f}\n")
        assert watch.look(60).status is Status.OK
    assert watch.look(60).status is Status.OK
    assert watch.look(60).status is Status.CRITICAL


def test_the_rows_of_one_kind_are_known_in_any_dress() -> None:
    forms = [
        "step 9 loss 2.5e-05 at 2.31it/s",
        "step  10 loss -0.31 at 12.4s/it",
        "step 1,200 loss nan at 7it/s",
        "step 1.2k | loss: inf @ at 7it/s",
    ]
    told = [(form.index("step") + 5, "1") for form in forms]
    kinds = {
        find
        for one, at in zip(forms, told, strict=True)
        for find, _ in find_rows(one, "step", [at])
    }
    assert len(kinds) == 1
    assert kinds != {find for find, _ in find_rows("step 9 norm 1", "step", [(5, "9")])}
    assert kinds != {find for find, _ in find_rows(forms[0], "other", told[:1])}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[00:07<99:11, 1.50s/it]", "[01:07<98:11, 1.61it/s]"),
        ("2026-03-01 10:07:05,123 step 5", "2026-03-02 11:08:06,999 step 5"),
        ("step 5 mem: 71.2 GiB", "step 5 mem: 69.9 GiB"),
        ("step 5 ETA 3h12m", "step 5 ETA 3h11m"),
        ("step 5 gpu_util=97 rank=3", "step 5 gpu_util=13 rank=4"),
        ("step 5 at 1767225600.5", "step 5 at 1767225660.5"),
        ("from 10.0.0.7 step 5", "from 10.0.0.8 step 5"),
        ("step 5 (0x7f001)", "step 5 (0x7f002)"),
    ],
)
def test_clocks_and_gauges_say_nothing(one: str, other: str) -> None:
    assert hash_values(one) == hash_values(other)
    assert hash_values(one) != hash_values(f"{other} loss 2.1")


@pytest.mark.parametrize(
    "text", ["loss 2.31", "'reward': -0.5,", "ppl=1.3e+02", "| 0.31 |", "loss: nan"]
)
def test_other_values_count(text: str) -> None:
    assert hash_values(text) != hash_values(re.sub(r"\d|nan", "7", text))
    assert not is_resource("loss", " | lr")


def test_what_is_remembered_of_rows_is_bounded() -> None:
    """Rows of 4 KiB that are all of different kinds, and a log that is only numbers."""
    kinds: dict[str, RowKind] = {}
    for n in range(300):
        name = "".join(chr(97 + n // 26**k % 26) for k in range(3))
        line = f"{name} {'x' * 4000} step {n} 0.5\n"
        kinds, _ = add_rows(kinds, [*find_rows(line, "step", [(4010, str(n))])])
    assert len(kinds) == MAX_KINDS
    assert len(list_carriers(kinds)) == 1
    numbers = "".join(f"{n} {n / 7:.3f}\n" for n in range(100_000))
    found = [
        *find_rows(
            numbers, "step", [(m.start(), m[0]) for m in re.finditer(r"^\d+", numbers, re.M)]
        )
    ]
    assert [abs(span.rows - SEARCHED_CHARS // 16) <= 1 for _, span in found] == [True]
    ((_, span),) = find_rows("7" * 10**6, "step", [(0, "7" * 10**6)])
    assert span.runs[0][0] == "7" * 40


def test_a_row_without_the_number_counts_only_where_its_kind_carries_it() -> None:
    first = "step 1 loss 0.5\nstep 2 loss 0.4\nstep 3 loss 0.3\nseen 3 files\n"
    told = [(m.start(1), m[1]) for m in re.finditer(r"step (\d+)", first)]
    kinds, _ = add_rows({}, [*find_rows(first, "step", told)])
    carriers = list_carriers(kinds)
    assert (
        add_rows(kinds, [*find_rows("step one,200 loss 0.2\n", "step", [], carriers)])[1] == set()
    )
    assert add_rows(kinds, [*find_rows("step 1,200 loss 0.2\n", "step", [], carriers)])[1] == {
        "step"
    }
    assert add_rows(kinds, [*find_rows("seen 4 files\n", "step", [], carriers)])[1] == set()
    assert [*find_rows("step 1,200 loss 0.2\n", "step", [])] == []
