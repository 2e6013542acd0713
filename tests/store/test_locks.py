"""Locks of file systems that several hosts share."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.core.clock import Instant
from sentinel.core.errors import StoreError
from sentinel.core.mounts import parse_mount_table
from sentinel.store.locks import refuse_local_locks, require_locks
from sentinel.store.opening import open_store
from tests.lab import needs
from tests.lab.waiting import wait_until

INFO = """\
22 1 0:21 / / rw,relatime shared:1 - ext4 /dev/vda rw
36 22 0:52 / /lustre rw,nosuid shared:2 - lustre mgs@tcp:/fs rw,localflock,lazystatfs
37 22 0:53 / /home rw shared:3 - nfs4 srv:/home rw,vers=4.2,local_lock=none
38 22 0:54 / /old rw shared:4 - nfs srv:/old rw,vers=3,nolock,local_lock=all
"""


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/lustre/me", "mounted with localflock, .* mount it with -o flock"),
        ("/old/me", "mounted with nolock"),
        ("/home/me", None),
        ("/tmp", None),
    ],
)
def test_locks_that_hold_on_one_node_only_are_refused(path: str, said: str | None) -> None:
    """With what to mount it with, and where else the state can be."""
    mount = parse_mount_table(INFO.encode()).find_mount(path)
    assert mount is not None
    if said is None:
        refuse_local_locks(path, mount)
        return
    with pytest.raises(StoreError, match=f"{said}.*postgresql://"):
        refuse_local_locks(path, mount)


def test_locks_that_work_are_taken_and_leave_nothing(tmp_path: Path) -> None:
    """Also when two try at the same time."""
    require_locks(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def lockless(tmp_path: Path, as_root: None) -> Iterator[Path]:
    """A FUSE file system that refuses POSIX locks, as Lustre without `flock` does."""
    if why := needs.why_no_fuse():
        needs.skip(why)
    backing, point = tmp_path / "backing", tmp_path / "point"
    backing.mkdir()
    point.mkdir()
    with subprocess.Popen([sys.executable, "-m", "tests.store.lockless", backing, point]) as server:
        try:
            wait_until(lambda: os.path.ismount(point), "the mount", 10)
            yield point
        finally:  # no unmount ends it while a namespace of another test has a copy of the mount
            server.kill()
            subprocess.run(["umount", "--lazy", str(point)], check=False)


def test_a_file_system_without_locks_is_refused_with_the_remedy(lockless: Path) -> None:
    """Before anything is written that two could write at once."""
    with pytest.raises(StoreError, match=r"has no locks \(No locks available\); set state: to"):
        open_store(str(lockless / "state"), Instant(0))


def test_several_that_start_at_once_all_find_that_locks_work(tmp_path: Path) -> None:
    """Services, ticks and commands on one state: none may be refused because of another's test."""
    program = (
        "import sys\n"
        "from sentinel.store.locks import require_locks\n"
        "for _ in range(500):\n"
        "    require_locks(sys.argv[1])\n"
    )
    several = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    assert [one.communicate(timeout=100)[1] for one in several] == [b""] * 4
    assert list(tmp_path.iterdir()) == []
