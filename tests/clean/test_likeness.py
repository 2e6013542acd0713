"""Only what is like the newer steps of its series goes: whatever else stays and is told, by real removals."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel.clean.rules import RetentionRules
from tests.clean.test_replacing import clean
from tests.clean.world import asked

MANY = range(1, 21)
EARLY = (1, 2, 3, 5, 6, 8, 9)
"""More than are kept for their own sake: these are of one kind, and newer ones are of another."""


def put(root: Path, name: str, size: int = 40_000) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"w" * size)


def plain(root: Path) -> None:
    for n in MANY:
        put(root, f"step-{n}/model.pt")


def exported(root: Path) -> None:
    plain(root)
    for n in EARLY:
        put(root, f"step-{n}/hf/model.safetensors")


def evaluated(root: Path) -> None:
    plain(root)
    for n in EARLY:
        put(root, f"step-{n}/results.csv", 90)


def protected(root: Path) -> None:
    plain(root)
    for n in EARLY:
        os.chmod(root / f"step-{n}/model.pt", 0o444)


def renamed(root: Path) -> None:
    plain(root)
    os.chmod(root / "step-4/model.pt", 0o444)
    for n in EARLY:
        (root / f"step-{n}").rename(root / f"step-{n}.good")


def copied(root: Path) -> None:
    plain(root)
    for n in EARLY:
        put(root, f"step-{n}.orig/model.pt")


def copied_with_a_number(root: Path) -> None:
    for n in MANY:
        put(root, f"step-{n}/model.pt")
        if n < 8:
            put(root, f"step-{n}-2/model.pt")


def written_by_another_version(root: Path) -> None:
    """Up to a step all hold one file more, and none behind it."""
    for n in MANY:
        put(root, f"step-{n}/model.pt")
        if n < 10:
            put(root, f"step-{n}/args.json", 60)


def evaluated_of_late(root: Path) -> None:
    """The evaluation has not come to the two newest yet."""
    plain(root)
    for n in range(1, 19):
        put(root, f"step-{n}/results.csv", 90)


def differences(root: Path) -> None:
    for n in MANY:
        put(root, f"step-{n}/model.pt" if n in (1, 11) else f"step-{n}/changed.bin", 40_000 if n in (1, 11) else 9000)  # fmt: skip


def whole_ones_behind_differences(root: Path) -> None:
    for n in MANY:
        put(root, f"step-{n}/changed.bin" if n in (2, 3, 4, 5) else f"step-{n}/model.pt", 9000 if n in (2, 3, 4, 5) else 40_000)  # fmt: skip


def unfinished(root: Path) -> None:
    for n in MANY:
        put(root, f"step-{n}{'.tmp' if n in (1, 3) else ''}/model.pt")
        if n == 3:
            put(root, "step-3.tmp/only-here.pt")


def protected_all(root: Path) -> None:
    plain(root)
    for n in MANY:
        os.chmod(root / f"step-{n}/model.pt", 0o444)


@pytest.mark.parametrize(
    ("make", "stays", "goes"),
    [
        (plain, {17, 18, 19, 20}, {*range(1, 17)}),
        (exported, {*EARLY}, {4, 7, 10}),
        (evaluated, {*EARLY}, {4, 7, 10}),
        (protected, {*EARLY}, {4, 7, 10}),
        (renamed, {4, *EARLY}, {7, 10}),
        (copied, {*EARLY}, {4, 7, 10}),
        (copied_with_a_number, {1, 2, 3, 4, 5, 6, 7}, {8, 9, 10}),
        (written_by_another_version, {8, 9}, {*range(1, 8), 10}),
        (evaluated_of_late, {17, 18, 19, 20}, {*range(1, 15)}),
        (differences, {*MANY}, set()),
        (whole_ones_behind_differences, {4, 5}, {1, 2, 3, 6}),
        (unfinished, {3}, {1, 2, 4}),
        (protected_all, {17, 18, 19, 20}, {1, 2, 10, 11}),
    ],
)  # fmt: skip
def test_what_is_like_the_newer_ones_goes_and_nothing_else(
    tmp_path: Path, make: Callable[[Path], None], stays: set[int], goes: set[int]
) -> None:
    """Also when a removal has already taken what lay between them."""
    root = tmp_path / "run" / "ckpt"
    make(root)
    left = {*clean(root, r"step-(\d+).*")}
    assert (stays - left, goes & left) == (set(), set())


def test_each_reason_is_told_once_with_its_number(tmp_path: Path) -> None:
    renamed(tmp_path)
    told = asked("list", tmp_path, RetentionRules(r"step-(\d+).*"))[0]["doubts"][1:]
    assert {one.partition(": ")[2] for one in told} == {
        "its name says more than those of the newest",
        "is protected against writing",
    }


SOUP = "models:\n" + "".join(f"  - model: ckpt/step-{n}\n" for n in (2, 3, 4, 5, 6))
"""Five, which a list of at most three was not; the sources of a merge are needed to repeat it."""


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("../soup.yml", SOUP, {2, 3, 4, 5, 6}),
        ("../train.sh", "python train.py --init ckpt/step-3/model.pt --epochs 5\n", {3}),
        ("notes", SOUP, {2, 3, 4, 5, 6}),
        ("step-20/merge.py", "sources = ['step-2', 'step-3']\n", {2, 3}),
        ("step-20/soup.yml", SOUP, {2, 3, 4, 5, 6}),
        ("../sums.txt", "\n".join(f"step-{n}" for n in MANY), set()),
        ("sums", "\n".join(f"step-{n}" for n in MANY), set()),
        ("step-20/saved.json", "\n".join(f"step-{n}" for n in MANY), set()),
        ("../train.sh", "python train.py --epochs 5 --save-every 3\n", set()),
    ],
)
def test_what_a_text_of_any_kind_names_stays(
    tmp_path: Path, name: str, text: str, kept: set[int]
) -> None:
    root = tmp_path / "run" / "ckpt"
    plain(root)
    (root / name).write_text(text)
    for n in (17, 18, 19):  # so that the newest is not the only one that has it
        if name.startswith("step-20"):
            (root / name.replace("20", str(n))).write_text(text)
    assert {*clean(root)} == {*kept, 17, 18, 19, 20}
