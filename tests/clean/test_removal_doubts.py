"""Reasons not to remove an entry, whatever the rules say: each bit and each boundary."""

import os
import pwd
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sentinel.clean.removal_doubts import (
    explain_barred,
    explain_doubt,
    is_immutable,
    is_renamable_only,
    is_writable,
    list_home_folders,
    read_mount_id,
)
from sentinel.clean.rules import DirectoryEntry, RetentionRules
from tests.clean.world import mounted
from tests.user_files.places import ALICE, MALLORY, file_of, folder_of, shared_folder


def found(mode: int = 0, *, gid: int = 0, changed: int = 0, inode: int = 7) -> os.stat_result:
    return os.stat_result((mode, inode, 1, 1, 0, gid, 0, 0, 0, changed))


@pytest.mark.parametrize(
    ("changed", "inode", "doubt"),
    [
        (1000, 7, ""),  # the clock of the file system stands still, or behind
        (1001, 7, "is younger by the clock of its file system"),
        (1059, 7, "is younger by the clock of its file system"),
        (1060, 7, ""),
        (1060, 8, "was replaced meanwhile"),
    ],
)
def test_what_was_renamed_is_old_by_its_own_clock_too(changed: int, inode: int, doubt: str) -> None:
    entry = DirectoryEntry("step1", 1000.0, complete=True, identity=(1, 7))
    rules = RetentionRules(r"step(\d+)", older_than=60.0)
    assert explain_doubt(found(changed=changed, inode=inode), entry, rules) == doubt


@pytest.mark.parametrize(
    ("above", "below", "gids", "is_so"),
    [
        (0o755, 0o755, (1, 1), False),
        (0o757, 0o755, (1, 1), True),
        (0o757, 0o757, (1, 1), False),
        (0o757, 0o775, (1, 1), True),  # the group may remove it, but all may rename it
        (0o775, 0o755, (1, 1), True),
        (0o775, 0o775, (1, 1), False),
        (0o775, 0o775, (1, 2), True),
        (0o775, 0o757, (1, 2), False),
        (0o777, 0o777, (1, 2), False),
        (0o775, 0o1775, (1, 1), True),
        (0o777, 0o1777, (1, 1), True),
        (0o1777, 0o755, (1, 1), False),
        (0o1775, 0o755, (1, 1), False),
    ],
)
def test_others_may_rename_but_not_remove(
    above: int, below: int, gids: tuple[int, int], is_so: bool
) -> None:
    """Modes of the folder and of a directory in it, with their groups."""
    asked = is_renamable_only(found(above, gid=gids[0]), found(below, gid=gids[1]))
    assert asked is is_so


@contextmanager
def being(uid: int) -> Iterator[None]:
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.root
def test_home_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the user who runs this, by the environment and by passwd, and of the other user."""
    monkeypatch.setenv("HOME", "/elsewhere/")
    roots, daemons = (pwd.getpwuid(uid).pw_dir for uid in (0, 1))
    with being(1):
        assert list_home_folders(ALICE) == {"/elsewhere", daemons}
        assert list_home_folders(0) == {"/elsewhere", daemons, roots}


@pytest.mark.root
def test_who_may_write_and_where(tmp_path: Path) -> None:
    with shared_folder() as folder, mounted(tmp_path, "-t", "tmpfs", "-o", "ro", "tmpfs"):
        fds = [os.open(path, os.O_RDONLY) for path in (folder_of(ALICE, folder / "a"), tmp_path)]
        asked = []
        for uid in (ALICE, MALLORY):
            with being(uid):
                asked.append((is_writable(fds[0]), explain_barred(fds[0])))
        assert asked == [
            (True, ""),
            (False, "the user who runs this may not write to the root"),
        ]
        assert explain_barred(fds[1]) == "the file system is read-only"
        os.fchmod(fds[0], 0o666)  # names in it cannot be reached
        with being(ALICE):
            assert not is_writable(fds[0])
        assert read_mount_id(fds[0]) != read_mount_id(fds[1])
        for fd in fds:
            os.close(fd)


@pytest.mark.root
def test_a_file_that_is_immutable_is_told_from_one_that_may_not_be_written() -> None:
    with shared_folder() as folder:
        fd, before = os.open(folder, os.O_PATH), len(os.listdir("/proc/self/fd"))
        locked, hers = file_of(0, folder / "locked", ""), file_of(ALICE, folder / "hers", "")
        (folder / "link").symlink_to("locked")
        os.mkfifo(folder / "pipe", 0o600)
        if subprocess.run(["chattr", "+i", locked], capture_output=True, check=False).returncode:
            pytest.skip("the file system knows no immutable files")
        try:
            names = [name for name in sorted(os.listdir(folder)) if is_immutable(name, fd)]
        finally:
            subprocess.run(["chattr", "-i", locked], check=True)
        assert names == ["locked"]
        with being(MALLORY):
            assert not is_immutable(hers.name, fd)
            assert not is_immutable("no such file", fd)
        assert len(os.listdir("/proc/self/fd")) == before
        os.close(fd)
