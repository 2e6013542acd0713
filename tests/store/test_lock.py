"""The lock of a state directory."""

from pathlib import Path

import pytest

from sentinel.store.errors import StateUnavailable
from sentinel.store.lease import DirectoryLock, Lease
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
    assert two.read_lease().holder == "a sentinel that could not write its name"
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
    assert str(Lease("a\x1b[2J\nb", 0)) == r"a\x1b[2J\nb since 1970-01-01T00:00:00Z"
    lock.drop_file_lock()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    """In another user's directory root would empty the file that it leads to."""
    (tmp_path / "precious").write_text("keep")
    (tmp_path / "lock").symlink_to("precious")
    with pytest.raises(StateUnavailable, match="symbolic link"):
        DirectoryLock(str(tmp_path / "lock")).take_file_lock(LEASE)
    assert (tmp_path / "precious").read_text() == "keep"
