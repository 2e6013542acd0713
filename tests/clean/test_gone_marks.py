"""What proves that a removal has begun: the name that it gives, and the mark that it puts inside."""

import os
import subprocess
from pathlib import Path

import pytest

from sentinel.clean.gone_marks import GONE_MARK, GONE_PREFIX, has_gone_mark, is_gone_name, mark_gone
from tests.clean.world import mounted

DIGITS = "0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        (GONE_PREFIX + DIGITS, True),
        (GONE_PREFIX + "0" * 16, True),
        (DIGITS, False),  # as many programs name what they save
        (GONE_PREFIX + DIGITS[:15], False),
        (GONE_PREFIX + DIGITS + "0", False),
        (GONE_PREFIX + "step_10000000000", False),
        (GONE_PREFIX + DIGITS.upper(), False),
    ],
)
def test_the_names_that_a_removal_gives(name: str, is_one: bool) -> None:
    assert is_gone_name(name) is is_one


class Folder:
    """A directory, the one that holds it, and what is looked at."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.path, self.found = path, path.stat()

    def mark(self, found: os.stat_result | None = None) -> None:
        above = os.open(self.path.parent, os.O_RDONLY)
        try:
            mark_gone(self.path.name, above, found or self.found)
        finally:
            os.close(above)

    @property
    def is_marked(self) -> bool:
        fd = os.open(self.path, os.O_RDONLY)
        try:
            return has_gone_mark(fd)
        finally:
            os.close(fd)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "step1")


def test_a_directory_is_marked_once_and_nothing_stays_open(folder: Folder) -> None:
    before = len(os.listdir("/proc/self/fd"))
    assert not folder.is_marked
    folder.mark()
    folder.mark()  # the removal goes on later
    assert (folder.is_marked, os.listdir(folder.path)) == (True, [GONE_MARK])
    assert len(os.listdir("/proc/self/fd")) == before


def test_only_what_was_looked_at_is_marked(folder: Folder) -> None:
    """Another directory of that name, a file, and what is not there."""
    folder.mark(folder.path.parent.stat())
    assert os.listdir(folder.path) == []
    file = folder.path / "weights"
    file.touch()
    folder.mark(file.stat())
    assert os.listdir(folder.path) == ["weights"]
    with pytest.raises(FileNotFoundError):
        mark_gone("step2", os.open(folder.path.parent, os.O_PATH), folder.found)


def test_a_mark_of_another_kind_or_directory_is_none(folder: Folder) -> None:
    mark = folder.path / GONE_MARK
    mark.write_text(f"removing-{folder.found.st_ino}")
    assert not folder.is_marked
    mark.unlink()
    mark.symlink_to(f"removing-{folder.found.st_ino + 1}")
    assert not folder.is_marked
    mark.unlink()
    mark.symlink_to(f"removing-{folder.found.st_ino}")
    assert folder.is_marked  # the control


@pytest.mark.root
def test_a_mark_of_another_user_is_none(folder: Folder) -> None:
    folder.mark()
    os.lchown(folder.path / GONE_MARK, 61_002, 61_002)
    assert not folder.is_marked


@pytest.mark.root
@pytest.mark.parametrize(("options", "error"), [("nr_inodes=2", ""), ("ro", "Read-only")])
def test_a_full_disk_has_no_room_for_a_mark(tmp_path: Path, options: str, error: str) -> None:
    """People remove because it is full. Any other error stops the removal before anything is gone."""
    with mounted(tmp_path, "-t", "tmpfs", "tmpfs"):
        folder = Folder(tmp_path / "step1")
        subprocess.run(["mount", "-o", f"remount,{options}", tmp_path], check=True)
        if not error:
            folder.mark()
        else:
            with pytest.raises(OSError, match=error):
                folder.mark()
        assert os.listdir(folder.path) == []
