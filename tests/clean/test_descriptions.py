"""What a step says that it needs: a base stays, and where a run was resumed from does not."""

import os
from pathlib import Path

import pytest

from sentinel.clean.pointers import names_needed

STEPS = frozenset({"step-1", "step-2"})


def needed(folder: Path, **files: str) -> dict[str, bool]:
    """What descriptions of these texts name; a file `a` is a.json."""
    for name, text in files.items():
        (folder / f"{name}.json").write_text(text)
    fd = os.open(folder, os.O_RDONLY)
    try:
        return names_needed(fd, str(folder), STEPS)
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    "text",
    [
        '{"resume_from_checkpoint": "/runs/step-1"}',
        '{"resume_from_checkpoint":"/runs/step-1","model":"llm"}',
        "resume_from : step-1\n",
        "auto-resume: /runs/step-1\n",
        "args: --resume=/runs/step-1 --lr=0.1\n",
    ],
)
def test_where_a_run_was_resumed_from_is_no_base(tmp_path: Path, text: str) -> None:
    """transformers/training_args.py has `resume_from_checkpoint`, other trainers `resume`."""
    assert needed(tmp_path, config=text) == {"step-1": False}


@pytest.mark.parametrize(
    "text",
    [
        '{"base_model_name_or_path": "/runs/step-1"}',
        "no_resume: true\nbase: step-1\n",
        "we resume training from step-1\n",
        "base: /runs/resume-me/step-1\n",
    ],
)
def test_what_is_named_otherwise_is_a_base(tmp_path: Path, text: str) -> None:
    """In doubt a step is kept for longer."""
    assert needed(tmp_path, config=text) == {"step-1": True}


@pytest.mark.parametrize(("first", "second"), [("base", "resume"), ("resume", "base")])
def test_a_base_stays_one_whatever_else_names_it(tmp_path: Path, first: str, second: str) -> None:
    """Whichever description is read last."""
    texts = {"a": f"{first}: step-1\n", "b": f"{second}: step-1\n"}
    assert needed(tmp_path, **texts) == {"step-1": True}
