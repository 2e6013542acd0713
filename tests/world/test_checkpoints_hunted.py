"""Folders of trainers that were hunted, and the later ones that were drawn: `clean` in five situations, and what `checkpoint` calls the newest complete one
when all is well and when the two newest lack a part, or half of their bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel.checks.checkpoint import CheckpointCheck
from sentinel.checks.checkpoint.files import CheckpointEntry, find_missing_forms, find_step_series
from sentinel.clean.hints import read_hint
from sentinel.clean.rules import RetentionRules
from sentinel.core.checkpoint_names import find_demanded_words
from sentinel.core.settings import FilePath
from sentinel.testing import FixedSlurm, context
from tests.world.checkpoint_forms import Form
from tests.world.checkpoint_forms_drawn import DRAWN_3, DRAWN_4
from tests.world.checkpoint_forms_hunted import HUNTED_1, HUNTED_2, HUNTED_3, HUNTED_4
from tests.world.test_checkpoints import NEWEST, SITUATIONS, THIRD, without_a_rank
from tests.world.test_checkpoints_drawn import RIGHT, find_newest, tell_harm

FORMS = (*HUNTED_1, *HUNTED_2, *HUNTED_3, *DRAWN_3, *DRAWN_4, *HUNTED_4)


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_a_folder_and_a_part_that_is_missing(
    form: Form, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    told = []
    for number, make in enumerate(SITUATIONS):
        root = tmp_path / str(number) / "ckpt"
        root.mkdir(parents=True)
        told.append(f"{make.__name__.replace('_', ' ')}: {tell_harm(root, form, make)}")
    newest = []
    for make in (SITUATIONS[-1], without_a_rank):
        root = tmp_path / make.__name__ / "ckpt"
        root.mkdir(parents=True)
        newest.append(find_newest(root, form, make))
    answer = f"{', '.join(told)}; newest complete: {newest[0]}; without a part: {newest[1]}"
    right = f"{RIGHT.rpartition(' ')[0]} {NEWEST}; without a part: {THIRD}"
    record_property("answer", answer)
    record_property("right", right)
    assert answer == right


@pytest.mark.parametrize(
    ("match", "words"),
    [
        (r"last_Ant_ep_(\d+)_rew_.*\.pth", ("last",)),
        (r"steps-(\d+)_partial", ("partial",)),
        (r"(?:tmp-)?checkpoint-(\d+)", ()),
        (r"step(\d+)(?:-tmp)?", ()),
        (r"last_(\d+)|step_(\d+)", ()),
        (r"(\d+).*", ()),
        (r"best_(\d+)\.pt", ()),
        (r"[last]_(\d+)", ()),
        (r"lasting-(\d+)", ()),
    ],
)
def test_a_word_tells_nothing_only_where_every_name_has_it(
    match: str, words: tuple[str, ...]
) -> None:
    assert find_demanded_words(match) == words


def newest_of(tmp_path: Path, sizes: dict[str, int]) -> str:
    """The newest complete one of files that were saved in this order."""
    for number, (name, size) in enumerate(sizes.items()):
        (tmp_path / name).write_bytes(b"w" * size)
        os.utime(tmp_path / name, (1_700_000_000 + number,) * 2)
    check = CheckpointCheck(path=FilePath(tmp_path), match=re.compile(r"\w+?_(\d+)\.\w+"))
    (finding,) = check.run(context(FixedSlurm(), one_shot=True)).findings
    said = re.search(r"newest:? (\S+), complete", finding.summary)
    assert said, finding.summary
    return said[1]


def test_a_form_that_became_smaller_is_complete(tmp_path: Path) -> None:
    sizes = {f"m_{n}.pt": 4000 for n in range(1, 5)} | {f"m_{n}.pt": 1000 for n in range(5, 8)}
    assert newest_of(tmp_path, sizes) == "m_7.pt"


def test_what_grows_or_varies_a_little_is_complete(tmp_path: Path) -> None:
    sizes = {f"m_{n}.pt": 1000 * n for n in range(1, 5)} | {"m_5.pt": 3500}
    assert newest_of(tmp_path, sizes) == "m_5.pt"


def test_parts_that_no_step_has_any_more_are_not_missed(tmp_path: Path) -> None:
    sizes = {f"{part}_{n}.pt": 4000 for n in range(1, 4) for part in ("model", "optim")}
    assert newest_of(tmp_path, sizes | {"model_4.pt": 4000}).endswith("_3.pt")
    sizes |= {f"model_{n}.pt": 4000 for n in range(4, 7)}
    assert newest_of(tmp_path, sizes) == "model_6.pt"


def test_an_export_beside_old_steps_is_not_missed_at_new_ones() -> None:
    def entries(late: float) -> list[CheckpointEntry]:
        saved = [
            CheckpointEntry(name=f"m_{n}.pt", step=n, changed=10_000.0 * n) for n in range(1, 6)
        ]
        beside = [
            CheckpointEntry(name=f"o_{n}.pt", step=n, changed=10_000.0 * n + late)
            for n in range(1, 5)
        ]
        return [*saved, *beside]

    def missing(late: float) -> dict[float, str]:
        return find_missing_forms(find_step_series(entries(late)), entries(late))

    assert missing(9000) == {}
    assert missing(60) == {5: "it has no o_#.pt, and the others have 1"}


def test_numbers_of_settings_keep_nothing(tmp_path: Path) -> None:
    there = {f"step_{n}" for n in (1000, 2000, 3000)}
    rules = RetentionRules(r"step_(\d+)")
    for text in ("save_steps: 1000\nnum_epochs: 2000\n", '{"eval_steps": 1000}', "lr 1000 0.1\n"):
        assert not read_hint(text.encode(), there, rules).numbers
    for text in ("2000\n", "step: 2000\nlr: 0.1\n", '{"step": 2000, "aux": {}}'):
        assert read_hint(text.encode(), there, rules).numbers == {2000}
