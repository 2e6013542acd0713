"""Reads the mount table, from the text of /proc/self/mountinfo (proc_pid_mountinfo(5)). Pure."""

import os
import re
from collections.abc import Callable, Collection, Iterable

from msgspec import Struct

# Types of file systems on this machine's own disks. Other types are in memory, show another file
# system, or are on another machine. A network mount is checked only if the configuration names it.
LOCAL_DISK_TYPES = frozenset(
    {"bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "fuseblk", "hfsplus", "jfs"}
    | {"nilfs2", "ntfs", "ntfs3", "reiserfs", "ufs", "vfat", "xfs", "zfs"}
)

GAVE_UP_OPTIONS = frozenset({"emergency_ro", "shutdown"})
"""Options that ext4 shows beside `rw` when it no longer writes: after an error (Linux 6.15 on) and
after a forced shutdown (_ext4_show_options in fs/ext4/super.c)."""

READ_ONLY_OPTIONS = GAVE_UP_OPTIONS | {"ro"}


class Mount(Struct, frozen=True, kw_only=True):
    """One mounted file system. Names that are in no encoding keep their bytes as surrogates."""

    id: int  # The mount's number, as in /proc/self/mountinfo.
    parent: int  # The number of the mount that it is on.
    device: str  # Major and minor number, as `8:1`.
    root: str  # The directory of the file system that is mounted.
    point: str  # Where it is mounted.
    type: str  # The file system's type, as `nfs4`.
    source: str = ""  # The device or server.
    options: frozenset[str]  # Options of this mount.
    super_options: frozenset[str]  # Options of the whole file system.

    @property
    def writable_layers(self) -> frozenset[str]:
        """Which of the two layers are writable: `mount`, `superblock`.

        After an error the kernel remounts the superblock read-only; a person usually remounts the
        mount."""
        layers = {"mount": self.options, "superblock": self.super_options}
        return frozenset(
            name for name, options in layers.items() if not options & READ_ONLY_OPTIONS
        )

    @property
    def is_image(self) -> bool:
        """Whether nobody can write there, neither here nor on a server: a block device that is read-only
        (anonymous ones have the major number 0), the cache of CernVM-FS, or an overlay, which tells the
        numbers of its uppermost layer (composefs). Another FUSE file system may be one of a server
        (sshfs), which is full for those who write there."""
        return not self.writable_layers and (
            self.source == "cvmfs2" or self.type == "overlay" or not self.device.startswith("0:")
        )

    @property
    def lost_writing(self) -> bool:
        """Whether a disk was mounted to be written, and is not written any more: who mounts it read-only
        sets both layers (mount(8), "Read-only Setting Notes"), the kernel only that of the superblock. So
        does `zfs set readonly=on`."""
        return self.writable_layers == {"mount"} and self.type in LOCAL_DISK_TYPES - {"zfs"}

    @property
    def gave_up_option(self) -> str:
        """The option which shows that the kernel stopped writing after an error; empty if there is
        none."""
        return next(iter(sorted(self.super_options & GAVE_UP_OPTIONS)), "")


class MountTable:
    """The mount table. It resolves a path as the kernel does."""

    def __init__(self, mounts: Iterable[Mount]) -> None:
        self._all = tuple(mounts)
        ids = {m.id for m in self._all}
        self._below: dict[int, list[Mount]] = {}
        for mount in self._all:
            top = mount.parent not in ids or mount.parent == mount.id
            self._below.setdefault(-1 if top else mount.parent, []).append(mount)

    def find_mount(self, path: str) -> Mount | None:
        """The mount in which an absolute path without symbolic links lies; None if there is
        none."""
        found, at = None, -1
        while inside := [m for m in self._below.get(at, ()) if _is_within(path, m.point)]:
            found = min(inside, key=lambda m: len(m.point))
            at = found.id
        return found

    def is_mount_point(self, path: str) -> bool:
        """Whether this path, which must hold no symbolic link, is a mount point."""
        found = self.find_mount(path)
        return found is not None and found.point == path

    def list_mount_points(self, device: str) -> list[str]:
        """All places where the file system with this `major:minor` number is mounted."""
        return [m.point for m in self._all if m.device == device]

    def list_device_mounts(self, device: int) -> list[Mount]:
        """All mounts of a file system, by its device number as stat(2) reports it."""
        number = f"{os.major(device)}:{os.minor(device)}"
        return [m for m in self._all if m.device == number]

    def find_main_mount(self, mount: Mount) -> Mount:
        """The mount of the same file system with the plainest path: bind mounts are not another
        file system."""
        same = [m for m in self._all if m.device == mount.device and self.find_mount(m.point) is m]
        return min(same, key=_plainness_key, default=mount)

    def list_local_mounts(self) -> list[Mount]:
        """All reachable file systems on this machine's disks, each once, by its plainest path."""
        return self._list_best_mounts(_is_local_mount)

    def list_mounts_of_types(self, types: Collection[str]) -> list[Mount]:
        """All reachable file systems of these types, each once, by its plainest path."""
        return self._list_best_mounts(lambda mount: mount.type in types)

    def _list_best_mounts(self, meant: Callable[[Mount], bool]) -> list[Mount]:
        best: dict[str, Mount] = {}
        for mount in sorted(self._all, key=_plainness_key):
            if meant(mount) and self.find_mount(mount.point) is mount:
                best.setdefault(mount.device, mount)
        return sorted(best.values(), key=lambda m: m.point)


def parse_mount_table(table: bytes) -> MountTable:
    """The table from its text. Raises ValueError for a line that has not the documented form."""
    lines = table.split(b"\n")  # other control characters may be part of a name
    return MountTable(_parse_mount(line) for line in lines if line)


def _parse_mount(line: bytes) -> Mount:
    left, _, right = line.partition(b" - ")
    number, parent, device, root, point, options, *_ = left.split(b" ")
    kind, source, super_options = [*right.split(b" "), b"", b""][:3]
    return Mount(
        id=int(number),
        parent=int(parent),
        device=device.decode("ascii"),
        root=_decode_name(root),
        point=_decode_name(point),
        type=_decode_name(kind),
        source=_decode_name(source),
        options=frozenset(_decode_name(options).split(",")),
        super_options=frozenset(_decode_name(super_options).split(",")),
    )


def unescape_name(name: str) -> str:
    """A name of fstab(5) or of the mount table, with escapes such as `\\040` decoded."""
    return _decode_name(os.fsencode(name))


def _decode_name(raw: bytes) -> str:
    if b"\\" in raw:
        raw = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8) & 255]), raw)
    return os.fsdecode(raw)


def _is_within(path: str, point: str) -> bool:
    return path == point or point == "/" or path.startswith(point + "/")


def _is_local_mount(mount: Mount) -> bool:
    return mount.type in LOCAL_DISK_TYPES or (mount.point == "/" and mount.type == "overlay")


def _plainness_key(mount: Mount) -> tuple[bool, int, str]:
    """The sort key: whole file systems before binds of a part, short paths before long ones."""
    return mount.root != "/", len(mount.point), mount.point
