"""Folders of trainers that were drawn: `clean` in five situations, and what `checkpoint` calls the newest complete one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel.checks.checkpoint import CheckpointCheck
from sentinel.clean.rules import RetentionRules
from sentinel.core.checkpoints import CheckpointRule
from sentinel.core.settings import FilePath
from sentinel.testing import FixedSlurm, context
from tests.world.checkpoint_forms import Form
from tests.world.checkpoint_forms_drawn import DRAWN_1, DRAWN_2
from tests.world.test_checkpoints import NEWEST, SITUATIONS, STEPS, clean, entry_names

DRAWN = (*DRAWN_1, *DRAWN_2)
RIGHT = ", ".join(f"{make.__name__.replace('_', ' ')}: whole" for make in SITUATIONS) + (
    f"; newest complete: {NEWEST}"
)


def tell_harm(root: Path, form: Form, make: Callable[[Path, Form], set[int]]) -> str:
    """What `clean` did that nobody wants; `whole` where that is nothing."""
    keep = make(root, form)
    before = {step: entry_names(form, step) & set(os.listdir(root)) for step in STEPS}
    beside = {name.format(n=step) for name in form.beside for step in STEPS}
    clean(root, RetentionRules(form.match, complete=form.complete))
    left = set(os.listdir(root))
    cut = [step for step in STEPS if before[step] & left not in (before[step], set())]
    gone = [step for step in keep if not before[step] <= left]
    if cut or gone or not beside <= left:
        return f"cut {cut}, gone {gone}, beside {sorted(beside - left)}"
    return "nothing is cleaned" if before[1000] & left else "whole"


def find_newest(root: Path, form: Form, make: Callable[[Path, Form], set[int]]) -> str:
    """The step of the newest complete one in that situation, when time has passed."""
    make(root, form)
    for number, path in enumerate(sorted(root.rglob("*"), key=lambda p: p.stat().st_mtime_ns)):
        os.utime(path, (1_700_000_000 + number / 1000,) * 2, follow_symlinks=False)
    match = form.match if re.compile(form.match).groups else f"({form.match})"
    match = r"\D*(\d+)\D.*" if match != form.match else match
    in_folders = all("/" in file for file in form.files)
    rule = CheckpointRule(
        marker=form.complete if in_folders and "*" not in form.complete else "",
        latest=form.pointer.removeprefix("-> ") if form.names_newest else "",
    )
    check = CheckpointCheck(path=FilePath(root), match=re.compile(match), complete=rule)
    (finding,) = check.run(context(FixedSlurm(), one_shot=True)).findings
    return f"{int(str(finding.values['step'] or 0).partition('.')[0])}"


@pytest.mark.parametrize("form", DRAWN, ids=[form.name for form in DRAWN])
def test_a_folder_that_was_drawn(
    form: Form, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    told = []
    for number, make in enumerate(SITUATIONS):
        root = tmp_path / str(number) / "ckpt"
        root.mkdir(parents=True)
        told.append(f"{make.__name__.replace('_', ' ')}: {tell_harm(root, form, make)}")
    root = tmp_path / "newest" / "ckpt"
    root.mkdir(parents=True)
    newest = find_newest(root, form, SITUATIONS[-1])
    newest = str(NEWEST) if str(NEWEST) in newest else newest
    answer = f"{', '.join(told)}; newest complete: {newest}"
    record_property("answer", str(answer))
    record_property("right", str(RIGHT))
    assert answer == RIGHT
