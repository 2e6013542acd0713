"""The lock of a state directory."""

from pathlib import Path

import pytest

from sentinel.store.errors import Unavailable
from sentinel.store.lease import DirectoryLock, Lease
from tests.store.nouns import HOSTILE, at

LEASE = Lease("sentinel run, pid 1 on n1", at().wall)


def test_one_holds_it_and_is_named(tmp_path: Path) -> None:
    """The other learns who; the holder may take it again."""
    one, two = (DirectoryLock(str(tmp_path / "lock")) for _ in range(2))
    assert one.take(LEASE)
    assert one.take(LEASE)
    assert not two.take(Lease("other"))
    assert one.lease() == two.lease() == LEASE
    one.drop()
    one.drop()
    assert two.lease() == Lease()
    assert two.take(Lease("other"))
    two.drop()


def test_nobody_holds_what_was_never_taken(tmp_path: Path) -> None:
    """Asking makes no file."""
    lock = DirectoryLock(str(tmp_path / "lock"))
    assert lock.lease() == Lease()
    assert not (tmp_path / "lock").exists()


def test_a_removed_lock_file_is_taken_anew(tmp_path: Path) -> None:
    """A lock on a file that is gone guards nothing."""
    one, two = (DirectoryLock(str(tmp_path / "lock")) for _ in range(2))
    one.take(LEASE)
    (tmp_path / "lock").unlink()
    assert two.take(Lease("two"))
    assert not one.take(LEASE)
    two.drop()


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"holder": 3}'])
def test_a_holder_without_a_name_still_holds(tmp_path: Path, content: str) -> None:
    """On a full disk the name cannot be written."""
    one, two = (DirectoryLock(str(tmp_path / "lock")) for _ in range(2))
    one.take(LEASE)
    (tmp_path / "lock").write_text(content)
    assert not two.take(Lease("two"))
    assert two.lease().holder == "a sentinel that could not write its name"
    one.drop()


def test_no_directory(tmp_path: Path) -> None:
    """An error with the path, not a wait."""
    with pytest.raises(Unavailable, match="/none/lock: cannot be opened: No such file"):
        DirectoryLock(str(tmp_path / "none" / "lock")).take(LEASE)


def test_the_name_of_a_holder_is_only_text(tmp_path: Path) -> None:
    """It is shown on terminals; host names and commands are somebody's text."""
    lock = DirectoryLock(str(tmp_path / "lock"))
    lock.take(Lease(HOSTILE[:200], 0))
    assert lock.lease().holder == HOSTILE[:200]
    assert str(Lease("a\x1b[2J\nb", 0)) == r"a\x1b[2J\nb since 1970-01-01T00:00:00Z"
    lock.drop()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    """In another user's directory root would empty the file that it leads to."""
    (tmp_path / "precious").write_text("keep")
    (tmp_path / "lock").symlink_to("precious")
    with pytest.raises(Unavailable, match="symbolic link"):
        DirectoryLock(str(tmp_path / "lock")).take(LEASE)
    assert (tmp_path / "precious").read_text() == "keep"
