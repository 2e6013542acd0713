"""A step goes only if two newer ones hold all that it holds: real removals, and what is left after them.

The form of async saves on a full quota: https://github.com/pytorch/pytorch/blob/main/torch/distributed/checkpoint/filesystem.py
writes `__RANK_N.distcp` first and `.metadata` at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from sentinel.clean.program import list_root, remove_names
from sentinel.clean.replacing import MAX_UNLIKE, StepContent, find_irreplaceable, replaces
from sentinel.clean.rules import RetentionRules
from sentinel.clean.tree import CheckpointRoot
from tests.clean.world import asked

Files = Mapping[str, int]
DCP: Files = {f"__{rank}_0.distcp": 40_000 for rank in range(4)} | {".metadata": 500}
STUB: Files = {"__0_0.distcp": 4096}
EXPORT: Files = {"hf/model.safetensors": 80_000, "hf/config.json": 60}
WEIGHTS: Files = {"model.safetensors": 9000, "config.json": 60}
OPTIMIZER: Files = {"optimizer.pt": 18_000}
LORA: Files = {"adapter_model.safetensors": 300, "adapter_config.json": 60}
RANKS_8: Files = {f"optim_rank{rank}.pt": 1000 for rank in range(8)} | {"model.pt": 8000}
RANKS_2: Files = {f"optim_rank{rank}.pt": 4000 for rank in range(2)} | {"model.pt": 8000}
SHARDS: Files = {f"shard_{number}.bin": 4000 for number in range(20)} | {"index.json": 90}
ONE: Files = {"state.pt": 10_000}


def save(root: Path, number: int, files: Files) -> None:
    for name, size in files.items():
        path = root / f"step-{number}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"w" * size)


def clean(root: Path, match: str = r"step-(\d+)", **how: str) -> list[int]:
    """Remove for real until nothing more goes; the numbers that are left."""
    rules = RetentionRules(match, **how)  # type: ignore[arg-type]
    while names := [str(e["name"]) for e in list_root(CheckpointRoot(str(root)), rules)["going"]]:  # type: ignore[attr-defined]
        assert remove_names(CheckpointRoot(str(root)), rules, names)["errors"] == []
    found = {rules.step_number(path.name) for path in root.iterdir()}
    return sorted(number for number in found if number is not None)


def without(files: Files, *names: str) -> Files:
    return {name: size for name, size in files.items() if name not in names}


def each(numbers: Iterable[int], files: Files) -> dict[int, Files]:
    return dict.fromkeys(numbers, files)


def sized(size: int) -> Files:
    return {"state.pt": size}


CASES: dict[str, tuple[dict[int, Files], set[int], set[int]]] = {
    # What is saved, what has to stay, what has to go.
    "all are alike": (each(range(1, 9), DCP), {5, 6, 7, 8}, {1, 2, 3, 4}),
    "stubs on a full quota, and an export in the first": (
        each(range(1, 6), DCP) | {1: {**DCP, **EXPORT}} | each(range(6, 10), STUB),
        {4, 5}, {2, 3},
    ),
    "stubs lack only the last and smallest file": (
        each(range(1, 6), DCP) | each(range(6, 11), without(DCP, ".metadata")),
        {4, 5}, {1, 2, 3},
    ),
    "stubs in one file of one name": (
        {1: sized(30_000)} | each(range(2, 6), ONE) | each(range(6, 10), sized(100)),
        {4, 5}, {2, 3},
    ),
    # They may as well be what changed since the first.
    "all are stubs but the first": ({1: DCP} | each(range(2, 9), STUB), {1, *range(2, 9)}, set()),
    "all are stubs but one in the middle": (
        each(range(1, 9), STUB) | {4: DCP}, {4}, set(),
    ),
    "the first are stubs, and the last is whole": (
        each(range(1, 8), STUB) | {8: DCP}, {8}, set(),
    ),
    "the newest is being saved": (
        each(range(1, 8), DCP) | {8: STUB}, {6, 7}, {1, 2, 3},
    ),
    "an export in the newest": (
        each(range(1, 9), DCP) | {8: {**DCP, **EXPORT}}, {7, 8}, {1, 2, 3, 4},
    ),
    "a milestone with its optimizer beside steps without": (
        {1: {**WEIGHTS, **OPTIMIZER}, 5: {**WEIGHTS, **OPTIMIZER}}
        | each((2, 3, 4, 6, 7, 8, 9), WEIGHTS), {1, 5, 8, 9}, {2, 3, 4},
    ),
    "milestones, and stubs after them": (
        {1: {**WEIGHTS, **OPTIMIZER}, 5: {**WEIGHTS, **OPTIMIZER}}
        | each((2, 3, 4, 6, 7), WEIGHTS) | each(range(8, 12), {"model.safetensors": 90}),
        {1, 5, 6, 7}, {2, 3, 4},
    ),
    "fewer ranks, as many bytes": (
        each(range(1, 5), RANKS_8) | each(range(5, 10), RANKS_2), {6, 7, 8, 9}, {1, 2, 3, 4},
    ),
    "more ranks, as many bytes": (
        each(range(1, 5), RANKS_2) | each(range(5, 10), RANKS_8), {6, 7, 8, 9}, {1, 2, 3, 4},
    ),
    "ranks that are missing": (
        each(range(1, 6), RANKS_8) | each(range(6, 11), without(RANKS_8, "optim_rank7.pt")),
        {4, 5}, {1, 2, 3},
    ),
    "one target was full at each of the newest": (
        each(range(1, 6), SHARDS) | each(range(6, 11), {**SHARDS, "shard_3.bin": 2000}),
        {4, 5}, {1, 2, 3},
    ),
    "one optimizer of eight was cut": (
        each(range(1, 6), RANKS_8) | each(range(6, 11), {**RANKS_8, "optim_rank2.pt": 300}),
        {4, 5}, {1, 2, 3},
    ),
    "a compressed shard varies": (
        {n: {**SHARDS, "shard_3.bin": 4000 - 90 * n} for n in range(1, 10)}, {6, 7, 8, 9}, {1, 2, 3, 4, 5},
    ),
    "all shards became smaller": (
        each(range(1, 6), SHARDS) | each(range(6, 11), dict.fromkeys(SHARDS, 3900)),
        {7, 8, 9, 10}, {1, 2, 3, 4, 5},
    ),
    "files of a database are named by sums, which differ each time": (
        {n: {f"ocdbt.process_{r}/d/{n}{r}f0e1d2c3b4a5968778695a4b3c2d1e": 4000 for r in range(4)} | {"manifest.ocdbt": 90}
         for n in range(1, 10)}, {6, 7, 8, 9}, {1, 2, 3, 4, 5},
    ),
    "names that are drawn": (
        {n: {f"{n}f0e1d2c-4b5a-4968-8778-695a4b3c2d1e.bin": 4000, "index.json": 90} for n in range(1, 10)},
        {6, 7, 8, 9}, {1, 2, 3, 4, 5},
    ),
    "a state that grows": (
        {n: sized(1000 * n) for n in range(2, 10)}, {6, 7, 8, 9}, {2, 3, 4, 5},
    ),
    "a state that shrinks": (
        {n: sized(20_000 - 100 * n) for n in range(1, 10)}, {6, 7, 8, 9}, {1, 2, 3, 4, 5},
    ),
    "an adapter that was trained before the full model": (
        each((1, 2, 3, 4), LORA) | each(range(5, 12), WEIGHTS), {3, 4, 10, 11}, {1, 2, 5, 6, 7},
    ),
    "an adapter between steps of the full model": (
        each(range(1, 12), WEIGHTS) | each((3, 6), LORA), {3, 6, 10, 11}, {1, 2, 4, 5, 7},
    ),
    "an adapter under the names of the full model": (
        each((1, 2, 3, 4), sized(50)) | each(range(5, 12), ONE), {3, 4, 10, 11}, {1, 2, 5, 6, 7},
    ),
    "a trainer that saves one file less": (
        each(range(1, 5), {**WEIGHTS, "args.json": 60}) | each(range(5, 12), WEIGHTS),
        {3, 4, 10, 11}, {1, 2, 5, 6, 7},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("saved", "stays", "goes"), CASES.values(), ids=CASES)
def test_the_newest_that_can_be_resumed_stays(
    tmp_path: Path, saved: dict[int, Files], stays: set[int], goes: set[int]
) -> None:
    root = tmp_path / "ckpt"
    for number in sorted(saved):
        save(root, number, saved[number])
    left = clean(root)
    assert (stays - {*left}, goes & {*left}) == (set(), set())
    assert all(
        {
            str(p.relative_to(root / f"step-{n}"))
            for p in (root / f"step-{n}").rglob("*")
            if p.is_file()
        }
        == {*saved[n]}
        for n in left
    )


def flat(names: str) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        for name in names.split():
            (root / name).write_bytes(b"w" * 1000)

    return write


@pytest.mark.parametrize(
    ("names", "match", "stays", "goes"),
    [
        ("a_1.pt a_2.pt a_3.pt b_4.pt b_5.pt b_6.pt b_7.pt b_8.pt b_9.pt", r"\w_(\d+)\.pt",
         {2, 3, 8, 9}, {1, 4, 5}),
        ("a_1.pt b_1.pt a_2.pt b_2.pt a_3.pt b_3.pt a_4.pt a_5.pt a_6.pt a_7.pt a_8.pt",
         r"\w_(\d+)\.pt", {2, 3, 7, 8}, {1, 4}),
        # Seeds are numbers, and their steps come in turns.
        ("seed1_10.pt seed2_15.pt seed1_20.pt seed2_25.pt seed1_30.pt seed2_35.pt seed2_45.pt "
         "seed2_55.pt seed2_65.pt seed2_75.pt", r"seed\d_(\d+)\.pt", {20, 30, 65, 75}, {10, 15, 25}),
        # So are rates and sizes of models, also where the names of one training sort before those of the other.
        ("lr0.01_15.pt lr0.01_25.pt lr0.01_35.pt lr0.001_10.pt lr0.001_20.pt lr0.001_30.pt lr0.001_40.pt "
         "lr0.001_50.pt lr0.001_60.pt lr0.001_70.pt", r"lr[\d.]+_(\d+)\.pt", {25, 35, 60, 70}, {10, 15, 20}),
        ("gpt-7b-step10.pt gpt-7b-step20.pt gpt-7b-step30.pt gpt-13b-step35.pt gpt-13b-step45.pt gpt-13b-step55.pt "
         "gpt-13b-step65.pt gpt-13b-step75.pt gpt-13b-step85.pt", r"gpt-\d+b-step(\d+)\.pt", {20, 30, 75, 85}, {10, 35, 45}),
        ("bs64_10.pt bs64_20.pt bs64_30.pt bs64_40.pt bs128_41.pt bs128_51.pt bs128_61.pt bs128_71.pt bs128_81.pt",
         r"bs\d+_(\d+)\.pt", {30, 40, 71, 81}, {10, 20, 41}),
        # A loss says nothing of the training.
        ("step10_loss2.31.pt step20_loss2.11.pt step30_loss2.05.pt step40_loss1.98.pt step50_loss1.98.pt step60_loss1.91.pt "
         "step70_loss1.88.pt", r"step(\d+)_loss.*", {40, 50, 60, 70}, {10, 20, 30}),
        # An epoch only goes up.
        ("e0_1.pt e0_2.pt e1_3.pt e1_4.pt e2_5.pt e2_6.pt e3_7.pt e3_8.pt", r"e\d_(\d+)\.pt",
         {5, 6, 7, 8}, {1, 2, 3, 4}),
    ],
)  # fmt: skip
def test_each_of_several_trainings_keeps_its_newest(
    tmp_path: Path, names: str, match: str, stays: set[int], goes: set[int]
) -> None:
    flat(names)(tmp_path)
    left = {*clean(tmp_path, match)}
    assert (stays - left, goes & left) == (set(), set())


def test_why_a_step_stays_is_told(tmp_path: Path) -> None:
    """What is as large as the newest ones needs no word."""
    rules = RetentionRules(r"step-(\d+)")
    for number in range(1, 9):
        save(tmp_path, number, DCP)
    assert "older stay" not in " ".join(asked("list", tmp_path, rules)[0]["doubts"])
    save(tmp_path, 2, EXPORT)
    for number in range(3, 9):
        os.utime(tmp_path / f"step-{number}")
    assert asked("list", tmp_path, rules)[0]["doubts"][-1] == (
        "1 older stay, such as step-2: holds what the newest do not hold"
    )


def content(files: Files) -> StepContent:
    return StepContent((name, size, 0.0) for name, size in files.items())


def test_an_empty_file_replaces_nothing() -> None:
    assert not replaces(
        content({"model.pt": 9000, "meta": 0}), content({"model.pt": 9000, "meta": 9})
    )
    assert replaces(content({"model.pt": 9000, "meta": 0}), content({"model.pt": 9000, "meta": 0}))


def test_the_states_of_fewer_ranks_replace_those_of_more() -> None:
    """Hugging Face's rng_state_N.pth: one small file for each rank."""
    few, many = ({"model.pt": 90_000} | {f"rng_{r}.pth": 60 for r in range(n)} for n in (2, 8))
    assert replaces(content(few), content(many))
    assert not replaces(content({"model.pt": 90_000}), content(many))


def test_what_is_unlike_without_an_end_stays() -> None:
    """Nobody compares 100,000 folders with each other."""
    unlike = [content({"x" * (1 + number): 10}) for number in range(3 * MAX_UNLIKE)]
    alike = [content({"y": 10})] * 9
    none = [False] * (len(unlike) + len(alike))
    found = find_irreplaceable([*unlike, *alike], none, none, 2)
    assert len(found) == len(unlike) + len(alike)


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ('{"base_model_name_or_path": "/data/run/step-3", "peft_type": "LORA"}', True),
        ('{"base": {"path": "../step-3/"}, "kind": "difference"}', True),
        ('{"base_model_name_or_path": "org/model-3b", "r": 3}', False),
    ],
)
def test_what_goes_on_from_another_step_needs_it(tmp_path: Path, text: str, stays: bool) -> None:
    """An adapter that was trained on a step of the folder; its own old steps go if they say what they need."""
    for number in range(1, 8):
        save(tmp_path, number, WEIGHTS)
    for number in range(8, 16):
        save(tmp_path, number, LORA)
        (tmp_path / f"step-{number}" / "adapter_config.json").write_text(text)
    left = {*clean(tmp_path)}
    assert (3 in left) is stays
    assert {6, 7, 14, 15} <= left
    assert {1, 2, 4, 8, 9} & left == (set() if stays else {8, 9})


def test_what_an_old_step_went_on_from_is_not_needed(tmp_path: Path) -> None:
    """Each start names where it began: only the last of these is kept."""
    for number in range(1, 13):
        save(tmp_path, number, WEIGHTS)
        begun = (number - 1) // 3 * 3
        (tmp_path / f"step-{number}" / "args.json").write_text(f'{{"resume": "/run/step-{begun}"}}')
    assert clean(tmp_path) == [6, 9, 10, 11, 12]
