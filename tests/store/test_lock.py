"""The lock of a state directory."""

import errno
import fcntl
import os
import socket
import time
from pathlib import Path

import pytest

from sentinel.core.errors import StoreError
from sentinel.store.errors import StateRefused, StateUnavailable
from sentinel.store.lease import (
    LEASE_TERM_S,
    TRUSTED_TERM_SHARE,
    UNKNOWN_LEASE,
    DirectoryLock,
    Lease,
    get_host_name,
    read_boot_clock,
)
from tests.store.nouns import HOSTILE, at

LEASE = Lease("sentinel run, pid 1 on n1", at().wall)


def test_one_holds_it_and_is_named(tmp_path: Path) -> None:
    """The other learns who; the holder may take it again."""
    one, two = (DirectoryLock(str(tmp_path / "lock")) for _ in range(2))
    assert one.take_file_lock(LEASE)
    assert one.take_file_lock(LEASE)
    assert not two.take_file_lock(Lease("other"))
    assert one.read_lease() == two.read_lease() == LEASE
    one.drop_file_lock()
    one.drop_file_lock()
    assert two.read_lease() == Lease()
    assert two.take_file_lock(Lease("other"))
    two.drop_file_lock()


def test_a_hard_link_in_its_place_is_not_written(tmp_path: Path) -> None:
    """Its text is replaced: where others may write, they could have any file of root's emptied."""
    (tmp_path / "kept").write_text("kept\n")
    (tmp_path / "lock").hardlink_to(tmp_path / "kept")
    with pytest.raises(StateRefused, match="second name"):
        DirectoryLock(str(tmp_path / "lock")).take_file_lock(LEASE)
    assert (tmp_path / "kept").read_text() == "kept\n"


def test_nobody_holds_what_was_never_taken(tmp_path: Path) -> None:
    """Asking makes no file."""
    lock = DirectoryLock(str(tmp_path / "lock"))
    assert lock.read_lease() == Lease()
    assert not (tmp_path / "lock").exists()


def test_a_removed_lock_file_is_taken_anew(tmp_path: Path) -> None:
    """A lock on a file that is gone guards nothing."""
    one, two = (DirectoryLock(str(tmp_path / "lock")) for _ in range(2))
    one.take_file_lock(LEASE)
    (tmp_path / "lock").unlink()
    assert two.take_file_lock(Lease("two"))
    assert not one.take_file_lock(LEASE)
    two.drop_file_lock()


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"holder": 3}'])
def test_a_holder_without_a_name_still_holds(tmp_path: Path, content: str) -> None:
    """On a full disk the name cannot be written."""
    one, two = (DirectoryLock(str(tmp_path / "lock")) for _ in range(2))
    one.take_file_lock(LEASE)
    (tmp_path / "lock").write_text(content)
    assert not two.take_file_lock(Lease("two"))
    assert two.read_lease().holder == "a sentinel whose name cannot be read"
    one.drop_file_lock()


def test_no_directory(tmp_path: Path) -> None:
    """An error with the path, not a wait."""
    with pytest.raises(StateUnavailable, match="/none/lock: cannot be opened: No such file"):
        DirectoryLock(str(tmp_path / "none" / "lock")).take_file_lock(LEASE)


def test_the_name_of_a_holder_is_only_text(tmp_path: Path) -> None:
    """It is shown on terminals; host names and commands are somebody's text."""
    lock = DirectoryLock(str(tmp_path / "lock"))
    lock.take_file_lock(Lease(HOSTILE[:200], 0))
    assert lock.read_lease().holder == HOSTILE[:200]
    assert str(Lease("a\x1b[2J\nb", 1_000_000)) == r"a\x1b[2J\nb since 1970-01-01T00:00:01Z"
    lock.drop_file_lock()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    """In another user's directory root would empty the file that it leads to."""
    (tmp_path / "precious").write_text("keep")
    (tmp_path / "lock").symlink_to("precious")
    with pytest.raises(StateUnavailable, match="symbolic link"):
        DirectoryLock(str(tmp_path / "lock")).take_file_lock(LEASE)
    assert (tmp_path / "precious").read_text() == "keep"


def test_a_shorter_name_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    """A tail of it would make the text unreadable; dropped, the file is empty."""
    one = DirectoryLock(str(tmp_path / "lock"))
    one.take_file_lock(Lease("a name of many words on a host with a long name", at().wall))
    one.take_file_lock(Lease("b"))
    assert one.read_lease() == Lease("b")
    one.drop_file_lock()
    assert (tmp_path / "lock").read_bytes() == b""


def test_who_holds_it_knows_so(tmp_path: Path) -> None:
    """And whether another ever held it, whose journal may lie there."""
    one, two = (DirectoryLock(str(tmp_path / "lock")) for _ in range(2))
    assert (one.is_held, one.has_earlier_holder) == (False, False)
    one.take_file_lock(LEASE)
    assert (one.is_held, one.has_earlier_holder, two.has_earlier_holder) == (True, False, True)
    assert not two.take_file_lock(LEASE)
    assert not two.is_held
    one.drop_file_lock()
    assert (one.is_held, one.has_earlier_holder) == (False, True)
    assert os.stat(tmp_path / "lock").st_mode & 0o777 == 0o600


def test_who_asks_keeps_nobody_from_taking_it(tmp_path: Path) -> None:
    """A look takes the shared lock for a moment: no file stays open after it."""
    one, two = (DirectoryLock(str(tmp_path / "lock")) for _ in range(2))
    one.take_file_lock(LEASE)
    one.drop_file_lock()
    before = len(os.listdir("/proc/self/fd"))
    assert [two.read_lease() for _ in range(5)] == [Lease()] * 5
    one.take_file_lock(LEASE)
    assert [two.read_lease() for _ in range(5)] == [LEASE] * 5
    assert [two.take_file_lock(LEASE) for _ in range(2)] == [False] * 2
    one.drop_file_lock()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (errno.ENOLCK, "this file system has no locks"),
        (errno.ENOSYS, "this file system has no locks"),
        (errno.EOPNOTSUPP, "this file system has no locks"),
        (errno.EIO, "cannot be locked: Input/output error"),
    ],
)
def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, what: str
) -> None:
    """With what to do; nobody leads without a lock, and no file stays open."""

    def refuse(file: int, mode: int) -> None:
        raise OSError(number, os.strerror(number))

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(fcntl, "flock", refuse)
    lock = DirectoryLock(str(tmp_path / "lock"))
    with pytest.raises(StoreError, match=what) as caught:
        lock.take_file_lock(LEASE)
    assert ("postgresql:// URL" in str(caught.value)) == ("no locks" in what)
    assert not lock.is_held
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_lock_on_what_is_read_only_needs_no_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its holder has no name there; any other error of opening is told."""
    (tmp_path / "lock").touch()
    opened, number = os.open, errno.EROFS

    def open_(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_RDWR:
            raise OSError(number, os.strerror(number))
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", open_)
    lock, other = (DirectoryLock(str(tmp_path / "lock")) for _ in range(2))
    assert lock.take_file_lock(LEASE)
    assert other.read_lease() == UNKNOWN_LEASE
    lock.drop_file_lock()
    number = errno.EACCES
    with pytest.raises(StateUnavailable, match="cannot be opened: Permission denied"):
        lock.take_file_lock(LEASE)


def test_what_a_lease_rests_on() -> None:
    """Clocks of two hosts differ a little: less than the whole term is counted on."""
    assert (LEASE_TERM_S, TRUSTED_TERM_SHARE) == (30.0, 0.9)
    assert read_boot_clock() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=60)
    assert [str(Lease()), str(Lease("", 5)), str(Lease("a"))] == ["", "", "a"]


def test_a_lock_that_was_removed_or_refused_leaves_no_file_open(tmp_path: Path) -> None:
    """A service whose directory a cleaner empties each hour would run out of descriptors, and so would
    one that stands by."""
    lock = DirectoryLock(str(tmp_path / "lock"))
    lock.take_file_lock(LEASE)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        (tmp_path / "lock").unlink()
        assert lock.take_file_lock(LEASE)
    assert not DirectoryLock(str(tmp_path / "lock")).take_file_lock(LEASE)
    assert len(os.listdir("/proc/self/fd")) == before
    lock.drop_file_lock()


def test_leaders_of_two_hosts_are_told_apart() -> None:
    assert get_host_name() == socket.gethostname() != ""


def test_who_only_looks_for_a_moment_keeps_nobody_from_leading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is tried again after a short pause."""
    path, pauses = tmp_path / "lock", list[float]()
    path.touch()
    looks = os.open(path, os.O_RDONLY)
    fcntl.flock(looks, fcntl.LOCK_SH)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        os.close(looks)

    monkeypatch.setattr(time, "sleep", pause)
    lock = DirectoryLock(str(path))
    assert lock.take_file_lock(LEASE)
    assert pauses == [0.02]
    lock.drop_file_lock()
