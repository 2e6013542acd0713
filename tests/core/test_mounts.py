"""Rules of the mount table, on text as the kernel writes it."""

import os

import pytest

from sentinel.core.mounts import MountTable, parse_mount_table

TABLE = b"""\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 27 8:1 / /data rw shared:1 master:2 - xfs /dev/sda1 rw
31 30 8:2 / /data/inner ro,nosuid - ext4 /dev/sdb1 rw,errors=remount-ro
32 27 8:1 /part /srv/part rw - xfs /dev/sda1 rw
33 27 0:40 / /gpfs rw - gpfs gpfs0 rw
34 27 0:41 / /mnt/a\\040b\\011c\\134d rw - tmpfs tmpfs rw
35 27 0:42 / /mnt/\\377 rw - tmpfs tmpfs rw
36 27 7:1 / /snap ro - squashfs /dev/loop1 ro
"""


def point(table: MountTable, path: str) -> str | None:
    mount = table.find_mount(path)
    return mount.point if mount else None


@pytest.mark.parametrize(
    ("path", "mounted"),
    [
        pytest.param("/etc", "/", id="the root holds what nothing else does"),
        pytest.param("/data", "/data", id="a mount point holds itself"),
        pytest.param("/data/x", "/data", id="and what is below"),
        pytest.param("/data/inner/y", "/data/inner", id="the innermost decides"),
        pytest.param("/database", "/", id="a longer name is another folder"),
        pytest.param("/mnt/a b\tc\\d/e", "/mnt/a b\tc\\d", id="octal escapes are names"),
        pytest.param(os.fsdecode(b"/mnt/\xff/e"), os.fsdecode(b"/mnt/\xff"), id="no encoding"),
    ],
)
def test_a_path_leads_into_the_mount_the_kernel_would_take(path: str, mounted: str) -> None:
    """The longest chain of mounts wins, byte for byte."""
    assert point(parse_mount_table(TABLE), path) == mounted


def test_a_later_mount_on_top_hides_what_lies_below() -> None:
    """An over-mounted folder takes its old inner mounts out of sight."""
    table = parse_mount_table(TABLE + b"40 30 8:3 / /data rw - ext4 /dev/sdc1 rw\n")
    assert [point(table, p) for p in ("/data", "/data/inner")] == ["/data", "/data"]
    holding = table.find_mount("/data/inner")
    assert holding is not None
    assert holding.device == "8:3"
    assert "/data/inner" not in [m.point for m in table.list_local_mounts()]


def test_a_root_moved_there_after_its_mounts_hides_nothing() -> None:
    """The order of lines says nothing: /proc stands above / here, as after an initramfs."""
    assert point(parse_mount_table(TABLE), "/proc/1") == "/proc"


def test_local_file_systems_are_those_on_own_disks_each_once() -> None:
    """Binds of a part, images, memory and network file systems are left out."""
    assert [m.point for m in parse_mount_table(TABLE).list_local_mounts()] == [
        "/",
        "/data",
        "/data/inner",
    ]


def test_a_bind_stands_for_its_file_system_when_nothing_else_does() -> None:
    """In a container the disk may be visible only in part."""
    table = parse_mount_table(TABLE.replace(b"8:1 / /data ", b"8:1 /x /data "))
    assert [m.point for m in table.list_local_mounts()] == ["/", "/data", "/data/inner"]


def test_a_bind_of_a_part_belongs_to_the_whole_file_system() -> None:
    """By the number of the device, whatever the points are called."""
    table = parse_mount_table(TABLE)
    part, own = table.find_mount("/srv/part/x"), table.find_mount("/gpfs")
    assert part
    assert own
    assert [table.find_main_mount(m).point for m in (part, own)] == ["/data", "/gpfs"]


def test_an_overlay_counts_as_local_only_as_the_root() -> None:
    """A container's own root is its disk; other overlays are views."""
    overlay = b"27 1 0:50 / / rw - overlay overlay rw\n30 27 0:51 / /merged rw - overlay o rw\n"
    assert [m.point for m in parse_mount_table(overlay).list_local_mounts()] == ["/"]


@pytest.mark.parametrize(
    ("mount", "super_", "writable"),
    [
        pytest.param(b"rw", b"rw", {"mount", "superblock"}, id="writable"),
        pytest.param(b"ro,nosuid", b"rw", {"superblock"}, id="mounted read-only"),
        pytest.param(b"rw", b"ro,errors=remount-ro", {"mount"}, id="superblock after an error"),
        pytest.param(b"ro", b"ro", set(), id="both"),
        pytest.param(b"rw,errors=ro", b"rw,prod", {"mount", "superblock"}, id="whole words only"),
    ],
)
def test_both_layers_say_whether_one_may_write(
    mount: bytes, super_: bytes, writable: set[str]
) -> None:
    """An error of the file system shows in the superblock's options alone."""
    table = parse_mount_table(b"27 1 254:0 / / %s - ext4 /dev/vda %s\n" % (mount, super_))
    holding = table.find_mount("/")
    assert holding is not None
    assert holding.writable_layers == writable


def test_a_table_of_another_form_is_refused() -> None:
    """Nothing is guessed from half a line."""
    with pytest.raises(ValueError):
        parse_mount_table(b"what is this\n")


def test_an_empty_table_holds_nothing() -> None:
    """The answer is none, not an error."""
    assert parse_mount_table(b"").find_mount("/") is None
    assert parse_mount_table(b"").list_local_mounts() == []
