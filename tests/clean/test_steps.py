"""A step is all entries of one number: it goes whole or stays whole."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sentinel.clean.rules import RetentionRules
from sentinel.clean.steps import removable_steps
from sentinel.clean.tree import CheckpointRoot, RemovalRefused
from tests.clean.world import asked, checkpoint, names, renewed, soon

FLAT = r"(?:model|meta|optim)_(\d+)(?:_rank\d+)?\.(?:pt|json)"
RULES = RetentionRules(FLAT, complete="meta_*.json")


def save(root: Path, number: int, *, size: int = 5000, ranks: int = 2, meta: bool = True) -> None:
    """One step of four files in one folder."""
    root.mkdir(exist_ok=True)
    (root / f"model_{number:06d}.pt").write_bytes(b"m" * size)
    for rank in range(ranks):
        (root / f"optim_{number:06d}_rank{rank}.pt").write_bytes(b"o" * size)
    if meta:
        (root / f"meta_{number:06d}.json").write_text('{"step": 1}')


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """Five steps."""
    for number in range(100, 600, 100):
        save(tmp_path / "flat", number)
    return tmp_path / "flat"


def going(root: Path, rules: RetentionRules = RULES) -> list[int | None]:
    steps = CheckpointRoot(str(root)).find_steps(rules)
    return [s.number for s in removable_steps(steps, rules, time.time()) if not s.held]


def step_files(root: Path, number: int) -> list[str]:
    return [name for name in names(root) if f"_{number:06d}" in name]


def test_all_files_of_a_number_go_together(flat: Path) -> None:
    """The first name stands for all of them, in what is told and in what is asked for."""
    told, _ = asked("list", flat, RULES)
    assert [(e["name"], e["parts"]) for e in told["going"]] == [
        (f"meta_{n:06d}.json", 4) for n in (100, 200, 300)
    ]
    told, complaint = asked("remove", flat, RULES, names=("meta_000100.json",))
    assert (told["removed"], complaint) == (1, "")
    assert [len(step_files(flat, n)) for n in (100, 200, 300)] == [0, 4, 4]
    asked("remove", flat, RULES, names=("model_000200.pt", "optim_000200_rank0.pt"))
    assert len(step_files(flat, 200)) == 4


@pytest.mark.parametrize(
    "match", [r"model_(\d+)\.pt", r"model_\d+\.pt", r"(?:model|optim)_(\d+).*"]
)
def test_a_match_that_fits_a_part_holds_the_whole(flat: Path, match: str) -> None:
    """The rest would be left without its weights; the message names what does not fit."""
    told, _ = asked("list", flat, RetentionRules(match, complete="model_*.pt"))
    assert told["removable"] == 0
    assert len(told["held"]) == 3
    assert "meta_000100.json has the same number, and `match` does not fit it" in told["held"][0]


def test_what_is_named_in_ignore_is_neither_a_pointer_nor_a_part(flat: Path) -> None:
    """Results that carry the number of a step, a table of the best ones, a link to nowhere."""
    (flat / "eval_000100.json").write_text("{}")
    (flat / "wandb-latest").symlink_to("gone")
    (flat / "best.json").write_text('{"best_step": 200}')
    ignoring = RetentionRules(
        FLAT, complete="meta_*.json", ignore=["eval_*", "wandb-*", "best.json"]
    )
    assert asked("list", flat, RULES)[0] is None
    assert going(flat, ignoring) == [100, 200, 300]


@pytest.mark.parametrize(
    ("ignore", "advice"),
    [
        ([], "let it fit, or write `ignore: [meta_000100.json]`"),
        (
            ["meta_*"],
            "optim_000100_rank0.pt has the same number, and `match` does not fit it; let it fit",
        ),
        (["meta_*", "optim_*"], "does not fit it; let it fit"),
    ],
)
def test_the_advice_to_ignore_removes_no_step_without_its_parts(
    flat: Path, ignore: list[str], advice: str
) -> None:
    """`match` misses the optimizer: the step stays whole, whatever is ignored."""
    rules = RetentionRules(r"model_(\d+)\.pt", complete="model_*.pt", ignore=ignore)
    told, _ = asked("list", flat, rules)
    assert told["removable"] == 0
    assert told["held"][0].endswith(advice)


def test_logs_and_pictures_of_a_step_are_no_parts(flat: Path) -> None:
    """They may lie there as long as somebody likes."""
    for name in ("log_000100.txt", "samples_000100.png", "events.out.tfevents.100"):
        (flat / name).write_text("x")
    assert going(flat) == [100, 200, 300]


@pytest.mark.parametrize("name", ["rank", "shard", "mp_rank_", "of-"])
def test_a_match_that_catches_the_rank_is_refused(tmp_path: Path, name: str) -> None:
    """`step 3` would be the third file of every checkpoint."""
    for step in range(5):
        for rank in range(4):
            (tmp_path / f"step{step}-{name}{rank}.pt").write_text("x")
    told, complaint = asked(
        "list", tmp_path, RetentionRules(rf"step\d+-{name}(\d+)\.pt", complete="*.pt")
    )
    assert told is None
    assert "catches the number of a rank or shard" in complaint


def test_one_held_part_holds_the_step(flat: Path) -> None:
    """A name that cannot be written down is one."""
    (flat / "model_000100\n.pt").write_text("x")
    told, _ = asked("list", flat, RetentionRules(r"(?s)\w+_(\d+).*", complete="meta_*.json"))
    assert [e["name"][5:11] for e in told["going"]] == ["000200", "000300"]


def test_a_pointer_to_a_part_keeps_the_whole(flat: Path) -> None:
    (flat / "resume.txt").write_text("optim_000100_rank1.pt")
    assert going(flat) == [200, 300]


def test_without_complete_two_more_stay_and_the_key_is_named(flat: Path) -> None:
    """Any byte would make one complete."""
    assert going(flat, RetentionRules(FLAT)) == [100]
    told, _ = asked("list", flat, RetentionRules(FLAT))
    assert told["doubts"] == [
        "nothing shows which are whole, so the 4 newest stay; name a file that only a whole one "
        "holds in `complete`"
    ]
    assert asked("list", flat, RULES)[0]["doubts"] == []


@pytest.mark.parametrize("rules", [RULES, RetentionRules(FLAT)], ids=["complete", "any byte"])
def test_a_crash_loop_leaves_the_last_two_whole_ones(flat: Path, rules: RetentionRules) -> None:
    """Ten stubs, each with all its names; or ranks that are missing."""
    for number in range(600, 1600, 100):
        save(flat, number, size=1)
    assert not {400, 500} & set(going(flat, rules))
    for number in range(600, 1600, 100):
        save(flat, number, ranks=1)
    left = going(flat, rules)
    assert not {400, 500} & set(left)
    assert 100 in left


def test_a_run_on_fewer_ranks_is_not_cut(tmp_path: Path) -> None:
    """It has fewer files, and as many bytes."""
    for number in range(1, 4):
        save(tmp_path / "r", number, ranks=8, size=1000)
    for number in range(4, 9):
        save(tmp_path / "r", number, ranks=2, size=3000)
    assert going(tmp_path / "r") == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("text", "empty_ones", "left"),
    [('{"a": 1}', 2, ["step1"]), ("", 5, []), ('{"a": 1}', 0, ["step1", "step2", "step3"])],
)
def test_a_marker_without_a_byte_marks_nothing_where_it_has_content(
    root: Path, text: str, empty_ones: int, left: list[str]
) -> None:
    """A full disk leaves empty files. `done` is always empty, and marks what it is in."""
    for number in range(1, 6):
        (root / f"step{number}" / "done").touch()
        (root / f"step{number}" / "state.json").write_text(text if number <= 5 - empty_ones else "")
    renewed(root)
    assert [
        f"step{n}" for n in going(root, RetentionRules(r"step(\d+)", complete="state.json"))
    ] == left
    # What is marked and yet holds an empty file replaces none of those that hold a filled one.
    kept = {2, 3} if text and empty_ones else set()
    left_by_done = going(root, RetentionRules(r"step(\d+)", complete="done"))
    assert left_by_done == [n for n in (1, 2, 3) if n not in kept]


def test_a_part_that_cannot_be_renamed_gives_the_others_their_names_back(flat: Path) -> None:
    """Half a step is never left."""
    opened = CheckpointRoot(str(flat))
    step = removable_steps(opened.find_steps(RULES), RULES, time.time())[0]
    rename, before = os.rename, names(flat)

    def failing(old: str, new: str, **how: int) -> None:
        if old == "optim_000100_rank0.pt":
            raise PermissionError(1, "Operation not permitted")
        rename(old, new, **how)

    os.rename = failing  # type: ignore[assignment]
    try:
        with pytest.raises(PermissionError):
            opened.remove_step(step, RULES, soon())
    finally:
        os.rename = rename
    assert names(flat) == before


@pytest.mark.parametrize("change", ["write", "add", "replace"])
def test_a_step_that_changed_since_the_look_stays_whole(flat: Path, change: str) -> None:
    """Any of its files counts, and one that is new."""
    opened = CheckpointRoot(str(flat))
    step = removable_steps(opened.find_steps(RULES), RULES, time.time())[0]
    part = flat / "optim_000100_rank1.pt"
    if change == "write":
        part.write_text("new")
    elif change == "add":
        (flat / "optim_000100_rank2.pt").write_text("new")
    else:
        part.unlink()
        part.write_text("new")
    before = names(flat)
    with pytest.raises(RemovalRefused):
        opened.remove_step(step, RULES, soon())
    assert names(flat) == before


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A folder for 100,000 files: on a busy disk, making them takes minutes."""
    shared = Path("/dev/shm")
    with TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else tmp_path) as folder:
        yield Path(folder)


@pytest.mark.nightly  # it has a limit by the clock
def test_a_folder_of_100_000_entries_is_looked_at_in_time(memory_path: Path) -> None:
    """A hundred steps of a thousand ranks."""
    root = memory_path / "many"
    root.mkdir()
    folder = os.open(root, os.O_RDONLY)
    for number in range(100):
        for rank in range(1000):
            name = f"model_{number:06d}_rank{rank}.pt"
            os.mknod(name, dir_fd=folder)
        with open(root / f"meta_{number:06d}.json", "w", encoding="ascii") as file:
            file.write('{"step": 1}')
    os.close(folder)
    told, complaint = asked("list", root, RULES)
    assert (told["entries"], told["removable"]) == (100, 98), complaint


def test_a_number_in_another_kind_of_name_is_no_number_of_a_step(tmp_path: Path) -> None:
    """`model-00001-of-00002` beside `checkpoint-1` counts shards."""
    for number in range(1, 6):
        checkpoint(tmp_path, number)
    (tmp_path / "model-00001-of-00002.safetensors").write_text("x")
    assert going(tmp_path, RetentionRules(r"step(\d+)", complete="weights")) == [1, 2, 3]


@pytest.mark.nightly  # it makes 80,000 files
def test_a_step_of_very_many_files_is_compared_too(memory_path: Path) -> None:
    """The two newest lack the last rank: the older ones, which are whole, stay."""
    rules = RetentionRules(r"step_(\d+)", complete="meta.json")
    for number in (1, 2, 3, 4):
        folder = memory_path / f"step_{number}"
        folder.mkdir(parents=True)
        (folder / "meta.json").write_text('{"step": 1}')
        for rank in range(20_001 - (number > 2)):
            (folder / f"rank_{rank:05d}.bin").write_bytes(b"r")
    assert going(memory_path, rules) == []
    for number in (3, 4):
        (memory_path / f"step_{number}" / "rank_20000.bin").write_bytes(b"r")
    assert going(memory_path, rules) == [1, 2]
