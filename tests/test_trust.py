"""Who could change a file, by real owners, modes, links and mounts."""

import os
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.trust import find_path_fault, find_program_path, find_tree_fault
from tests.lab import needs
from tests.lab.fuse import Fuse

pytestmark = pytest.mark.root

ROOT = frozenset({0})
DAEMON, DAEMONS, USERS = 1, 1, 100
"""A user of every Debian system, the group that is its own, and one that is not."""
WITH_DAEMON = frozenset({0, DAEMON})
ACL = "system.posix_acl_access"
EVERYBODY_ELSE = 0xFFFFFFFF


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of root below /tmp, which is sticky and everybody's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.fixture
def file(place: Path) -> Path:
    """Two directories and a file, all root's alone."""
    path = place / "a" / "b" / "sentinel.yaml"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def wrong(path: Path, trusted: frozenset[int] = ROOT) -> str:
    found = find_path_fault(str(path), trusted)
    return f"{found.path} {found.why}; {found.remedy}" if found else ""


def test_what_only_root_can_change_is_believed(file: Path) -> None:
    """Also below /tmp, where only its owner may take a directory away."""
    assert wrong(file) == ""


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_directory_on_the_way_counts(file: Path, level: int) -> None:
    """Whoever owns one may put another file there. With the caller among the trusted it is fine."""
    which = [file, *file.parents][level]
    os.chown(which, DAEMON, DAEMONS)
    assert wrong(file) == f"{which} belongs to daemon; "
    assert wrong(file, WITH_DAEMON) == ""


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize(
    ("mode", "who", "mend"),
    [(0o20, "its group", "g-w"), (0o02, "everybody", "o-w"), (0o22, "everybody", "go-w")],
)
def test_who_may_write_may_change(file: Path, level: int, mode: int, who: str, mend: str) -> None:
    """The file itself, or what lies in a directory; root's group is nobody's own."""
    which = [file, *file.parents][level]
    which.chmod(which.stat().st_mode | mode)
    assert wrong(file) == f"{which} may be written by {who}; chmod {mend}"


def test_in_a_sticky_directory_the_entrys_owner_decides(file: Path) -> None:
    """rename(2): others cannot take it away, and what is theirs is theirs."""
    file.parent.chmod(0o1777)
    assert wrong(file) == ""
    os.chown(file, DAEMON, DAEMONS)
    assert wrong(file) == f"{file} belongs to daemon; "
    os.chown(file, 0, 0)
    os.chown(file.parent, DAEMON, DAEMONS)
    assert wrong(file) == f"{file.parent} belongs to daemon; "


def test_a_link_in_tmp_leads_as_far_as_its_owner_is_believed(file: Path) -> None:
    """The way there, the link itself and the way from it: each is looked at."""
    drop, own = file.parent.parent / "drop", file.parent.parent / "own"
    drop.mkdir()
    drop.chmod(0o1777)
    (drop / "link").symlink_to("../b/sentinel.yaml")
    own.symlink_to(drop / "link")
    assert wrong(own) == ""
    os.chown(drop / "link", DAEMON, DAEMONS, follow_symlinks=False)
    assert wrong(own) == f"{drop}/link belongs to daemon; "
    os.chown(drop / "link", 0, 0, follow_symlinks=False)
    drop.chmod(0o777)
    assert wrong(own) == f"{drop} may be written by everybody; chmod go-w"
    drop.chmod(0o1777)
    os.chown(file.parent, DAEMON, DAEMONS)
    assert wrong(own) == f"{file.parent} belongs to daemon; "


def test_a_linked_directory_is_left_by_its_real_parent(file: Path) -> None:
    """`link/..` is above what the link leads to, not above the link."""
    other = file.parent.parent / "other"
    other.mkdir()
    (file.parent / "link").symlink_to(other)
    os.chown(file.parent.parent, DAEMON, DAEMONS)
    assert "belongs to daemon" in wrong(file.parent / "link" / ".." / "b" / "sentinel.yaml")


def test_a_link_without_an_end_ends(file: Path) -> None:
    """And is not believed."""
    file.unlink()
    file.symlink_to(file.name)
    assert wrong(file) == f"{file} is a link without an end; "


def test_what_is_not_there_in_tmp_anybody_may_put_there(file: Path) -> None:
    """A dangling link of root's into a sticky directory is filled by whoever is first."""
    file.parent.chmod(0o1777)
    link = file.parent.parent / "link"
    link.symlink_to(file.parent / "gone")
    assert wrong(link) == f"{file.parent} lets everybody put files there; "


def test_a_group_of_ones_own_is_oneself(file: Path) -> None:
    """Where useradd(8) makes such groups the usual umask is 002. Any other group is others."""
    for path in (file, file.parent):
        os.chown(path, DAEMON, DAEMONS)
        path.chmod(path.stat().st_mode | 0o20)
    assert wrong(file, WITH_DAEMON) == ""
    os.chown(file, DAEMON, USERS)
    assert wrong(file, WITH_DAEMON) == f"{file} may be written by its group; chmod g-w"


def test_an_access_list_makes_it_others(file: Path) -> None:
    """acl(5): the group's bit is the list's mask, so that any right to write shows in it."""
    os.chown(file, DAEMON, DAEMONS)
    entries = [(1, 6, EVERYBODY_ELSE), (2, 6, 2), (4, 4, EVERYBODY_ELSE), (16, 6, EVERYBODY_ELSE),
               (32, 4, EVERYBODY_ELSE)]  # fmt: skip
    packed = b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(file, ACL, struct.pack("<I", 2) + packed)
    except OSError as error:
        pytest.skip(f"no access lists on this file system: {error.strerror}")
    assert wrong(file, WITH_DAEMON) == f"{file} may be written by its group; chmod g-w"


def test_a_mount_of_somebody_elses_shows_what_that_one_likes(place: Path) -> None:
    """The server of a FUSE mount says root owns it all; the kernel knows whose server it is."""
    if why := needs.why_no_fuse():
        needs.skip(why)
    with Fuse(place / "root's") as fuse:
        assert wrong(fuse.point / "data") == ""
    with Fuse(place / "their\rs", DAEMON) as fuse:  # the kernel escapes no carriage return
        assert wrong(fuse.point / "data") == f"{fuse.point} is mounted by daemon; "
    with Fuse(place / "theirs", DAEMON) as fuse:
        assert wrong(fuse.point / "data") == f"{fuse.point} is mounted by daemon; "
        assert wrong(fuse.point / "data", WITH_DAEMON) == ""


def test_one_file_of_somebody_else_spoils_a_directory_of_code(file: Path) -> None:
    """Any module of it may be imported; a link leads to where it leads."""
    folder = file.parent.parent
    assert find_tree_fault(str(folder), ROOT) is None
    os.chown(file, DAEMON, DAEMONS)
    found = find_tree_fault(str(folder), ROOT)
    assert found is not None
    assert found.path == str(file)
    elsewhere = folder.parent / "module.py"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    found = find_tree_fault(str(folder), ROOT)
    assert found is not None
    assert found.path == str(elsewhere)


def test_a_program_is_found_as_it_is_started(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first in PATH that may be run; a path is itself."""
    first, second = file.parent, file.parent.parent
    monkeypatch.setenv("PATH", f"{first}:{second}")
    (first / "tool").touch()
    (second / "tool").touch(0o755)
    (first / "folder").mkdir()
    assert find_program_path("tool") == str(second / "tool")
    assert find_program_path(str(second / "tool")) == str(second / "tool")
    assert (find_program_path("folder"), find_program_path("none")) == ("", "")
    (first / "tool").chmod(0o755)
    assert find_program_path("tool") == str(first / "tool")
