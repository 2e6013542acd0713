"""Which directories are on this host's own disks."""

import os
import subprocess
from pathlib import Path

import pytest

from sentinel.core.mounts import parse_mount_table
from sentinel.proc import mounts
from sentinel.proc.mounts import read_mounts
from sentinel.store.mounts import LOCAL_FILE_SYSTEMS, is_on_local_disk
from tests.store.disk import Disk

MOUNTINFO = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:30 / /home rw,relatime shared:3 - nfs4 server:/home rw,vers=4.2
31 30 0:31 / /home/local rw,relatime - xfs /dev/sdb rw
32 22 0:32 / /scratch rw shared:4 master:1 - lustre 10.0.0.1@o2ib:/scratch rw
33 22 0:33 / /gpfs/my\040work rw - gpfs work rw
34 22 0:34 / /sshfs rw - fuse.sshfs host:/ rw
35 22 0:35 / /both rw - xfs /dev/sdc rw
36 35 0:36 / /both rw - beegfs beegfs_nodev rw
37 22 0:37 / /homes rw - btrfs /dev/sdd rw
""".strip()


def type_of(path: str, table: str) -> str:
    """Of the mount that holds it."""
    mount = parse_mount_table(os.fsencode(table)).find_mount(path)
    return mount.type if mount else ""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/var/lib/sentinel", "ext4"),
        ("/home", "nfs4"),
        ("/home/alice/.local/state", "nfs4"),
        ("/home/local/x", "xfs"),
        ("/homes/x", "btrfs"),
        ("/homestead", "ext4"),
        ("/scratch/x", "lustre"),
        ("/gpfs/my work/x", "gpfs"),
        ("/sshfs/x", "fuse.sshfs"),
        ("/both/x", "beegfs"),
    ],
)
def test_the_deepest_and_last_mount_decides(path: str, kind: str) -> None:
    """Blanks in mount points are escaped; a longer name is another directory."""
    assert type_of(path, MOUNTINFO) == kind


@pytest.mark.parametrize(
    "kind",
    ["nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "fuse.sshfs", "fuse", "cifs", "9p", ""],
)
def test_what_several_hosts_may_share_is_not_local(kind: str) -> None:
    """Nor is what is not known."""
    assert kind not in LOCAL_FILE_SYSTEMS


@pytest.mark.parametrize("odd", ["\f", "\r", "\x1c", "\x85", "\u2028"])
def test_a_mount_of_any_name_hides_no_other(odd: str) -> None:
    """Users mount what they like (sshfs), and the kernel escapes blanks and newlines only."""
    line = f"40 30 0:40 / /home/mal{odd}lory rw - fuse.sshfs host:/ rw"
    first, *rest = MOUNTINFO.split("\n")
    table = "\n".join([first, line, *rest, ""])
    assert type_of("/both/x", table) == "beegfs"
    assert type_of(f"/home/mal{odd}lory/x", table) == "fuse.sshfs"


@pytest.mark.root
def test_a_real_mount_of_an_odd_name(tmp_path: Path) -> None:
    """As the kernel shows it: a carriage return is no end of a line."""
    point = tmp_path / "mal\rlory"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", point], check=True)
    try:
        assert getattr(read_mounts().find_mount(str(point)), "type", "") == "tmpfs"
        assert is_on_local_disk(str(tmp_path))
    finally:
        subprocess.run(["umount", "--lazy", point], check=True)


def test_a_table_that_changes_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that stays the same is parsed once; a mount that comes and goes is seen both times."""
    table, line = tmp_path / "mountinfo", "40 22 0:40 / /new rw - xfs /dev/sde rw"
    monkeypatch.setattr(mounts, "TABLE", str(table))
    table.write_text(MOUNTINFO)
    before = read_mounts()
    assert read_mounts() is before
    table.write_text(f"{MOUNTINFO}\n{line}")
    assert read_mounts().is_mount_point("/new")
    table.write_text(MOUNTINFO)
    assert not read_mounts().is_mount_point("/new")


def test_a_real_mount(disk: Disk, tmp_path: Path) -> None:
    """A link is followed to where its directory is."""
    (tmp_path / "link").symlink_to(disk.point)
    assert is_on_local_disk(str(tmp_path / "link"))
    assert not is_on_local_disk("/proc/self")
