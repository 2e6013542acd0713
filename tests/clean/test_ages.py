"""Rules of what is old, whole and meant: whatever is in doubt stays."""

import os
import time
from pathlib import Path

import pytest

from sentinel.clean.gone_marks import GONE_MARK, GONE_PREFIX, LOOKED, UNPROVEN, mark_gone
from sentinel.clean.rules import RetentionRules
from sentinel.clean.tree import CheckpointRoot, RemovalRefused
from tests.clean.world import HOUR, RULES, WHOLE, asked, first, going, names, renewed, soon

MONTH = 30 * 86_400


def dated(path: Path, days: float) -> None:
    """As a copy that keeps its dates is (cp -p, rsync -a, tar)."""
    at = time.time() - days * 86_400
    for found in (*path.rglob("*"), path):
        os.utime(found, (at, at), follow_symlinks=False)


def test_a_young_file_deep_inside_keeps_it_all(root: Path) -> None:
    """The age is that of the latest change of anything in it."""
    opened, later = CheckpointRoot(str(root)), time.time() + 7000
    assert "step1" in going(opened, HOUR, later=7200)
    os.utime(root / "step1" / "inner" / "more", (later, later))
    assert "step1" not in going(opened, HOUR, later=7200)


def test_a_copy_that_keeps_its_old_dates_is_young(root: Path) -> None:
    """A checkpoint that was just brought back from the archive is about to be used."""
    dated(root, 30)
    assert asked("list", root, HOUR)[0]["going"] == []
    assert going(CheckpointRoot(str(root)), HOUR, later=7200)


def test_the_file_systems_own_clock_has_a_say(root: Path) -> None:
    """A host whose clock runs ahead takes everything for old; what was renamed is put back."""
    opened = CheckpointRoot(str(root))
    victim = first(opened, HOUR, later=7200)
    with pytest.raises(RemovalRefused, match="younger by the clock of its file system"):
        opened.remove_step(victim, HOUR, soon())
    assert names(root) == [f"step{n}" for n in range(1, 6)]


@pytest.mark.parametrize("change", ["write", "add", "replace"])
def test_what_changed_since_the_look_stays(root: Path, change: str) -> None:
    """A run that goes on from there just then, however long the others took to go."""
    opened = CheckpointRoot(str(root))
    victim = first(opened)
    if change == "write":
        (root / "step1" / "inner" / "more").write_text("new")
    elif change == "add":
        (root / "step1" / "inner" / "new").touch()
    else:
        (root / "step1").rename(root.parent / "aside")
        (root / "step1").mkdir()
    with pytest.raises(RemovalRefused, match="changed or replaced"):
        opened.remove_step(victim, RULES, soon())
    assert (root / "step1").is_dir()


def test_files_do_not_count_where_a_marker_tells_the_complete(root: Path) -> None:
    """Archives beside the directories hold none; they must not take the places of the newest."""
    for number in range(1, 6):
        (root / f"step{number}" / "done").touch()
    for number in (8, 9):
        (root / f"step{number}").write_text("an archive, or a note")
    assert going(CheckpointRoot(str(root)), RetentionRules(r"step(\d+)", complete="done")) == [
        "step1",
        "step2",
        "step3",
    ]


@pytest.mark.parametrize("kind", ["directory", "files", "file"])
def test_what_holds_no_byte_is_not_complete(root: Path, kind: str) -> None:
    """On a full disk new checkpoints are empty: the last good ones are older than they."""
    for number in (7, 8):
        path = root / f"step{number}"
        if kind == "file":
            path.touch()
            continue
        path.mkdir()
        if kind == "files":
            (path / "weights").touch()
    assert going(CheckpointRoot(str(root))) == ["step1", "step2", "step3"]


def test_a_leftover_goes_on_only_while_no_file_in_it_is_young(root: Path) -> None:
    """Its name alone proves nothing: whoever may write there could have given it."""
    gone = (root / "step1").rename(root / f"{GONE_PREFIX}{'0' * 16}")
    mark(gone)
    renewed(root)
    assert asked("list", root, HOUR)[0]["going"] == []
    told, _ = asked("remove", root, HOUR, names=(f"{GONE_PREFIX}{'0' * 16}",))
    assert (told["removed"], len(names(root))) == (0, 5)
    assert asked("remove", root, names=(f"{GONE_PREFIX}{'0' * 16}",))[0]["removed"] == 1


def mark(folder: Path) -> None:
    """As a removal does that finds no time to end."""
    above = os.open(folder.parent, os.O_RDONLY)
    mark_gone(folder.name, above, folder.stat())
    os.close(above)


@pytest.mark.root
def test_a_directory_that_somebody_else_renamed_is_kept_and_told(root: Path, as_root: None) -> None:
    """A member of the group may rename what belongs to others, and can remove nothing in it."""
    data = root / "datasets"
    (data / "inner").mkdir(parents=True)
    (data / "corpus").write_text("all that there is")
    stolen = data.rename(root / f"{GONE_PREFIX}{'a' * 16}")
    kept = [f"{stolen.name!r}: {UNPROVEN}"]
    assert asked("list", root)[0]["held"] == kept
    assert asked("remove", root, names=(stolen.name,))[0]["removed"] == 0
    mark(stolen)
    os.lchown(stolen / GONE_MARK, 61_002, 61_002)
    assert asked("list", root)[0]["held"] == kept
    (stolen / GONE_MARK).unlink()
    (stolen / GONE_MARK).symlink_to("removing-1")  # of another directory
    assert asked("list", root)[0]["held"] == kept
    assert (stolen / "corpus").exists()


def test_a_removal_without_time_goes_on(root: Path) -> None:
    """What it has begun holds its mark until the end."""
    tree = CheckpointRoot(str(root))
    step = first(tree)
    with pytest.raises(TimeoutError):
        tree.remove_step(step, RULES, time.monotonic() - 1)
    (gone,) = root.glob(f"{GONE_PREFIX}*")
    assert (gone / GONE_MARK).is_symlink()
    assert asked("remove", root, names=(gone.name,))[0]["removed"] == 1
    assert not gone.exists()


def test_what_was_not_proven_is_never_gone_on_with(root: Path) -> None:
    """A run that ended between looking and removing leaves it where a person finds it."""
    (root / "step1").rename(root / f"{LOOKED}00000000-step1")
    renewed(root)
    asked("remove", root, names=("step2", f"{LOOKED}00000000-step1"))
    assert names(root) == [f"{LOOKED}00000000-step1", "step3", "step4", "step5"]


def test_a_pattern_that_fits_the_names_of_a_removal_catches_none_of_them(root: Path) -> None:
    left = (root / "step1").rename(root / f"{LOOKED}00000000-step1")
    (root / "step2").rename(root / ".saved-step2")
    hidden = RetentionRules(r"\..*step(\d+)", complete=WHOLE)
    assert hidden.fits_name(left.name)
    found = CheckpointRoot(str(root)).find_steps(hidden)
    assert [step.first_name for step in found] == [".saved-step2"]
