"""Folders of real trainers: `clean` removes old steps, whole, and never the last that can be resumed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel.clean.program import list_root, remove_names
from sentinel.clean.rules import RetentionRules
from sentinel.clean.tree import CheckpointRoot
from tests.world.case import Case, each
from tests.world.checkpoint_forms import FORMS, Form

STEPS = tuple(range(1000, 9000, 1000))
NEWEST, SECOND, THIRD, OLD = 8000, 7000, 6000, 3000
COST = "Weeks of training that cannot be resumed, or weights without their optimizer."


def entry_names(form: Form, step: int) -> set[str]:
    """What lies in the folder when that step is whole."""
    return {file.format(n=step).partition("/")[0] for file in form.files}


def write(root: Path, form: Form, step: int, *, size: int = 4000, files: int | None = None) -> None:
    """Save a step, or its first files only."""
    for number, file in enumerate(form.files[:files]):
        path = root / file.format(n=step)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = b"w" * size + bytes([65 + number])
        data = b'{"part": %d}' % number if path.suffix == ".json" else data
        path.write_bytes(b"" if path.name in form.empty else data)


def point(root: Path, form: Form, step: int) -> None:
    """Let the trainer's pointer name that step."""
    text = form.text.format(n=step)
    if form.pointer.startswith("-> "):
        link = root / form.pointer.removeprefix("-> ")
        link.unlink(missing_ok=True)
        link.symlink_to(text)
    elif form.pointer:
        (root / form.pointer).write_text(text)


def save_all(root: Path, form: Form, named: int = NEWEST) -> None:
    for step in STEPS:
        write(root, form, step)
        for name in form.beside:
            (root / name.format(n=step)).write_bytes(b"PK\x03\x04" + b"w" * 5000)
    point(root, form, named)
    if form.note[0]:
        (root / form.note[0]).write_text(form.note[1])


def after_a_rollback(root: Path, form: Form) -> set[int]:
    """Old ones are named again or, where nothing names one, saved again."""
    save_all(root, form, OLD)
    if not form.pointer:
        write(root, form, OLD)
    return {OLD, NEWEST, SECOND}


def while_saving(root: Path, form: Form) -> set[int]:
    """Only the first files of the newest are there, under the name that they have until then."""
    save_all(root, form, SECOND)
    remove_step(root, form, NEWEST)
    write(root, form, NEWEST, files=max(1, len(form.files) // 2))
    if form.staging:
        (name,) = entry_names(form, NEWEST)
        (root / name).rename(root / form.staging.format(n=NEWEST))
    return {SECOND, THIRD}


def after_a_crash_loop(root: Path, form: Form) -> set[int]:
    """The two newest are stubs."""
    save_all(root, form, THIRD)
    for step in (SECOND, NEWEST):
        remove_step(root, form, step)
        write(root, form, step, size=1)
    return {THIRD, 5000}


def without_a_rank(root: Path, form: Form) -> set[int]:
    """The two newest lack the file that was to be written second, or half of the only one."""
    save_all(root, form, THIRD)
    for step in (SECOND, NEWEST):
        remove_step(root, form, step)
        if len(form.files) == 1:
            write(root, form, step, size=2000)
            continue
        write(root, form, step)
        (root / form.files[1].format(n=step)).unlink()
    return {THIRD, 5000}


def when_all_are_older_than_the_limit(root: Path, form: Form) -> set[int]:
    """The training ended long ago."""
    save_all(root, form)
    return {NEWEST, SECOND}


def remove_step(root: Path, form: Form, step: int) -> None:
    for file in form.files:
        (root / file.format(n=step)).unlink()


SITUATIONS: tuple[Callable[[Path, Form], set[int]], ...] = (
    after_a_rollback,
    while_saving,
    after_a_crash_loop,
    without_a_rank,
    when_all_are_older_than_the_limit,
)
CASES = [
    Case(f"{form.name}-{make.__name__.replace('_', '-')}", form.source, (form, make), "stays", COST)
    for form in FORMS
    for make in SITUATIONS
]


def clean(root: Path, rules: RetentionRules) -> None:
    """As the check and the action do it, until nothing more goes."""
    while names := [str(e["name"]) for e in list_root(CheckpointRoot(str(root)), rules)["going"]]:  # type: ignore[attr-defined]
        told = remove_names(CheckpointRoot(str(root)), rules, names)
        assert told["errors"] == []
        assert told["removed"] == len(names)


@each(*CASES)
def test_a_step_goes_whole_and_the_last_that_can_be_resumed_stays(
    tmp_path: Path, case: Case
) -> None:
    """What is there of each step afterwards is all that was there before, or nothing."""
    form, make = case.form
    root = tmp_path / "run" / "ckpt"
    root.mkdir(parents=True)
    keep = make(root, form)
    before = {step: entry_names(form, step) & set(os.listdir(root)) for step in STEPS}
    inside = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    clean(root, RetentionRules(form.match, complete=form.complete))
    left = set(os.listdir(root))
    for step in STEPS:
        assert before[step] & left in (before[step], set()), f"a part of {step} was taken"
    for step in keep:
        assert before[step] <= left, f"{step} is gone"
    assert {p: p.read_bytes() for p in root.rglob("*") if p.is_file()} == {
        path: data for path, data in inside.items() if path.exists()
    }
    assert not before[1000] & left, "nothing is cleaned any more"


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_each_form_is_named_once_and_has_a_source(form: Form) -> None:
    assert form.source
    assert [other.name for other in FORMS].count(form.name) == 1
