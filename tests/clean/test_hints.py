"""A small file of any name that names a checkpoint keeps it; one that only holds settings or lists all keeps none."""

from pathlib import Path

import pytest

from sentinel.clean.hints import MAX_HINT_FILES
from sentinel.clean.program import list_root
from sentinel.clean.rules import RetentionRules
from sentinel.clean.tree import CheckpointRoot

RULES = RetentionRules(r"net-rank_0-(\d+)_4\.ckpt")
STEPS = range(1000, 9000, 1000)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "run" / "ckpt"
    folder.mkdir(parents=True)
    for step in STEPS:
        (folder / f"net-rank_0-{step}_4.ckpt").write_bytes(b"PK\3\4" + b"w" * 9000)
    return folder


def find_going_steps(root: Path) -> list[int]:
    going = list_root(CheckpointRoot(str(root)), RULES)["going"]
    return [int(e["name"].split("-")[2].split("_")[0]) for e in going]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("meta.json", '{"last_epoch": 1, "last_step": 7, "last_ckpt_file": "net-rank_0-2000_4.ckpt"}'),
        ("run.yaml", "lr: 0.1\nbest_step: 2000\n"),
        ("info", "/old/place/net-rank_0-2000_4.ckpt\n"),
    ],
)  # fmt: skip
def test_what_a_small_file_of_any_name_says_stays(root: Path, name: str, text: str) -> None:
    """MindFormers resumes from what its meta.json names (mindformers/trainer/utils.py)."""
    (root / name).write_text(text)
    assert find_going_steps(root) == [1000, 3000, 4000]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.yaml", "save_steps: 1000\nwarmup: 2000\nlr: 0.1\n"),
        ("params.json", '{"save_interval": 1000, "eval": {"every": 2000}}'),
        ("sums.txt", "".join(f"0a1b  net-rank_0-{step}_4.ckpt\n" for step in STEPS)),
        ("broken.json", '{"last_step": 2000'),
        ("data.json", "\0\1\2"),
    ],
)  # fmt: skip
def test_settings_and_lists_keep_nothing(root: Path, name: str, text: str) -> None:
    """The control: nothing would ever be cleaned again."""
    (root / name).write_text(text)
    assert find_going_steps(root) == [1000, 2000, 3000, 4000]


@pytest.mark.parametrize("name", ["meta.json", "state.yaml", "tracker", "progress.txt", "latest"])
@pytest.mark.parametrize(
    "text",
    [
        "2000",
        "2000.0\n",
        '"2000.0"',
        "2,000",
        "step: 2000.0\n",
        "global_step=2_000",
        "iteration: 2,000\n",
        "2e3",
        "step: 2e+03\n",
        "global_step=2.0e3",
    ],
)
def test_a_step_stays_however_its_number_is_written(root: Path, name: str, text: str) -> None:
    """A float, since a program kept it as one, or with thousands set apart."""
    (root / name).write_text(text)
    assert find_going_steps(root) == [1000, 3000, 4000]


@pytest.mark.parametrize(
    "text", ["loss: 2000.0\n", "lr: 2,000\n", "lr: 2e3\n", "warmup_steps: 2000.0\n"]
)
def test_other_large_numbers_keep_nothing(root: Path, text: str) -> None:
    """The control."""
    (root / "run.yaml").write_text(text)
    assert find_going_steps(root) == [1000, 2000, 3000, 4000]


def test_where_such_files_are_many_they_are_data(root: Path) -> None:
    for number in range(MAX_HINT_FILES + 1):
        (root / f"sample{number}.json").write_text('{"of": "net-rank_0-2000_4.ckpt"}')
    assert find_going_steps(root) == [1000, 2000, 3000, 4000]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("metrics_epoch_{n}.json", '{{"best_epoch": 7000, "epoch": {n}, "training_loss": 0.211}}'),
        ("eval-{n}.yaml", "step: {n}\nbleu: 31.2\n"),
        ("scores-{n}.info", "{n}\n"),
    ],
)
def test_a_file_that_names_the_step_in_its_own_name_is_a_part_and_is_told(
    root: Path, name: str, text: str
) -> None:
    """AllenNLP writes metrics for each epoch (allennlp/training/gradient_descent_trainer.py). Nothing was removed, and
    nothing said why."""
    for step in STEPS:
        (root / name.format(n=step)).write_text(text.format(n=step))
    told = list_root(CheckpointRoot(str(root)), RULES)
    assert told["going"] == []
    assert [name.format(n=step) in str(told["held"]) for step in STEPS] == 4 * [True] + 4 * [False]
    ignoring = RetentionRules(RULES.pattern.pattern, ignore=[name.format(n="*")])
    assert list_root(CheckpointRoot(str(root)), ignoring)["removable"] == 4


def test_a_numbered_file_keeps_the_step_of_another_number(root: Path) -> None:
    """The control."""
    (root / "eval-8000.yaml").write_text("best_step: 2000\n")
    assert find_going_steps(root) == [1000, 3000, 4000]
