"""`clean` from the file to the log: opt-in, a rehearsal, the removal, its caps."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.service.watch import Line, Watch

CONFIG = """\
checks:
  old:
    kind: clean
    every: 1s
    root: {folder}/ckpt
    match: 'step(\\d+)'
    older_than: {age}
    complete: weights
    {more}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
"""
SIZE = 1_000_000


@pytest.fixture
def root(watch: Watch) -> Path:
    """Six checkpoints of 1 MB, and a link to what has to stay."""
    root = watch.folder / "ckpt"
    for number in range(1, 7):
        checkpoint(root, number)
    (watch.folder / "treasure").mkdir()
    (watch.folder / "treasure" / "gold").write_text("gold")
    (root / "step0").symlink_to(watch.folder / "treasure")
    return root


def checkpoint(root: Path, number: int) -> None:
    """A directory with 1 MB."""
    folder = root / f"step{number}"
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(os.urandom(SIZE))


def passed(watch: Watch, *words: str) -> None:
    done = watch.say("tick", "--all", *words)
    assert done.returncode == 0, done.stderr


def acted(watch: Watch) -> list[Line]:
    return watch.told(reason="action")


def left(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if not path.is_symlink())


def logged(watch: Watch, root: Path) -> list[Line]:
    """The log of actions about the directory, the oldest line first."""
    done = watch.say("nodes", "list", "--history", str(root), "--json")
    assert done.returncode == 0, done.stderr
    lines: list[Line] = json.loads(done.stdout)
    return lines


ALL = [f"step{n}" for n in range(1, 7)]


def test_without_being_asked_to_it_only_tells(watch: Watch, root: Path) -> None:
    """`remove` is off unless it is written: nothing goes, nothing is in the log."""
    watch.configure(CONFIG, age="1ms", more="keep_last: 2")
    passed(watch)
    assert (left(root), acted(watch), logged(watch, root)) == (ALL, [], [])


def test_a_rehearsal_says_what_would_go_and_how_much_it_frees(watch: Watch, root: Path) -> None:
    """Nothing goes, and the log holds nothing that would count against a cap."""
    watch.configure(CONFIG, age="1ms", more="remove: true")
    passed(watch, "--dry-run")
    (told,) = acted(watch)
    assert told["dry_run"] is True
    assert told["summary"].startswith(f"clean {root}: would be done")
    assert "4 to remove, 4.03 MB: step1 … step4" in told["details"]
    assert (left(root), logged(watch, root)) == (ALL, [])


def test_what_may_go_goes_and_the_log_tells_what_went(watch: Watch, root: Path) -> None:
    """Not the two newest, nothing through a link; a second pass finds nothing more to do."""
    watch.configure(CONFIG, age="1ms", more="remove: true")
    passed(watch)
    passed(watch)
    assert left(root) == ["step5", "step6"]
    assert (watch.folder / "treasure" / "gold").read_text() == "gold"
    (told,) = acted(watch)
    assert told["summary"].endswith("4 removed, 4.03 MB freed")
    intended, done = logged(watch, root)
    assert (intended["what"], intended["by"], done["what"]) == ("intended", "old", "done")
    assert json.loads(intended["commands"][0][-1]) == ["step1", "step2", "step3", "step4"]
    assert done["detail"].endswith("4 removed, 4.03 MB freed")


def test_no_more_removals_than_the_cap(watch: Watch, root: Path) -> None:
    """The second one within the hour is refused, which is in the log and wakes nobody."""
    watch.configure(CONFIG, age="1ms", more="remove: true\n    limits: {per_hour: 1}")
    passed(watch)
    checkpoint(root, 7)
    passed(watch)
    assert left(root) == ["step5", "step6", "step7"]
    assert len(acted(watch)) == 1
    refused = logged(watch, root)[-1]
    assert (refused["what"], refused["rule"]) == ("refused", "per_hour")


@pytest.mark.long
def test_limits_that_are_not_named_are_those_of_cleaning(watch: Watch, root: Path) -> None:
    """Not those of a node, which rests for half an hour and may be helped three times a week."""
    watch.configure(CONFIG, age="1ms", more="remove: true\n    limits: {per_hour: 9}")
    for number in range(6, 11):
        checkpoint(root, number + 1)
        passed(watch)
    assert left(root) == ["step10", "step11"]


def test_old_dates_do_not_make_a_copy_old(watch: Watch, root: Path) -> None:
    """Brought back from the archive a moment ago: nothing goes."""
    for path in root.rglob("*"):
        os.utime(path, (0, 0), follow_symlinks=False)
    watch.configure(CONFIG, age="7d", more="remove: true")
    passed(watch)
    assert (left(root), acted(watch)) == (ALL, [])


@pytest.mark.root
def test_what_cannot_be_removed_is_an_alert(watch: Watch, root: Path) -> None:
    """Where it is asked for: whoever waits for room has to know."""
    inner = root / "step1" / "inner"
    inner.mkdir()
    subprocess.run(["mount", "--bind", str(inner), str(inner)], check=True)
    try:
        watch.configure(CONFIG, age="1ms", more="remove: true")
        passed(watch)
        told = watch.told(reason="firing")
    finally:
        subprocess.run(["umount", "-l", str(inner)], check=True)
    assert [t["status"] for t in told] == ["warning"]
    assert "1 cannot be removed: 'step1'" in told[0]["summary"]
    assert left(root) == ["step1", "step5", "step6"]
