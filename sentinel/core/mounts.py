"""The mount table, from the text of /proc/self/mountinfo (proc_pid_mountinfo(5)). Pure."""

import os
import re
from collections.abc import Callable, Collection, Iterable

from msgspec import Struct

# Types whose blocks lie on this machine's own disks; everything else is memory, a view of
# something else, or somebody else's disk (a network mount has to be named to be probed).
LOCAL_DISK_TYPES = frozenset(
    {"bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "fuseblk", "hfsplus", "jfs"}
    | {"nilfs2", "ntfs", "ntfs3", "reiserfs", "ufs", "vfat", "xfs", "zfs"}
)

GAVE_UP_OPTIONS = frozenset({"emergency_ro", "shutdown"})
"""Options that ext4 shows beside `rw` when it writes nothing any more: after an error (Linux 6.15 on)
and after a forced shutdown (_ext4_show_options in fs/ext4/super.c)."""

READ_ONLY_OPTIONS = GAVE_UP_OPTIONS | {"ro"}


class Mount(Struct, frozen=True, kw_only=True):
    """One mounted file system. Names that are in no encoding keep their bytes as surrogates."""

    id: int
    parent: int
    device: str
    root: str
    point: str
    type: str
    source: str = ""
    options: frozenset[str]
    super_options: frozenset[str]

    @property
    def writable_layers(self) -> frozenset[str]:
        """Which of its two layers may be written: `mount`, `superblock`.

        The kernel remounts the superblock read-only after an error, a person mostly the mount.
        """
        layers = {"mount": self.options, "superblock": self.super_options}
        return frozenset(
            name for name, options in layers.items() if not options & READ_ONLY_OPTIONS
        )

    @property
    def gave_up_option(self) -> str:
        """The option by which the kernel says that it stopped writing after an error; or empty."""
        return next(iter(sorted(self.super_options & GAVE_UP_OPTIONS)), "")


class MountTable:
    """The table; answers as the kernel's own walk through a path would."""

    def __init__(self, mounts: Iterable[Mount]) -> None:
        self._all = tuple(mounts)
        ids = {m.id for m in self._all}
        self._below: dict[int, list[Mount]] = {}
        for mount in self._all:
            top = mount.parent not in ids or mount.parent == mount.id
            self._below.setdefault(-1 if top else mount.parent, []).append(mount)

    def find_mount(self, path: str) -> Mount | None:
        """The mount that an absolute path without symbolic links leads into."""
        found, at = None, -1
        while inside := [m for m in self._below.get(at, ()) if _is_within(path, m.point)]:
            found = min(inside, key=lambda m: len(m.point))
            at = found.id
        return found

    def is_mount_point(self, path: str) -> bool:
        """Whether that very name is a mount point; such names hold no symbolic link."""
        found = self.find_mount(path)
        return found is not None and found.point == path

    def list_mount_points(self, device: str) -> list[str]:
        """Every place where that file system is mounted, by its `major:minor`."""
        return [m.point for m in self._all if m.device == device]

    def list_device_mounts(self, device: int) -> list[Mount]:
        """Every mount of that file system, by its number as stat(2) has it."""
        number = f"{os.major(device)}:{os.minor(device)}"
        return [m for m in self._all if m.device == number]

    def find_main_mount(self, mount: Mount) -> Mount:
        """The mount of the same file system with the best name: binds of it are not another one."""
        same = [m for m in self._all if m.device == mount.device and self.find_mount(m.point) is m]
        return min(same, key=_plainness_key, default=mount)

    def list_local_mounts(self) -> list[Mount]:
        """Every reachable file system on this machine's disks, each once, by its best name."""
        return self._list_best_mounts(_is_local_mount)

    def list_mounts_of_types(self, types: Collection[str]) -> list[Mount]:
        """The same of those types."""
        return self._list_best_mounts(lambda mount: mount.type in types)

    def _list_best_mounts(self, meant: Callable[[Mount], bool]) -> list[Mount]:
        best: dict[str, Mount] = {}
        for mount in sorted(self._all, key=_plainness_key):
            if meant(mount) and self.find_mount(mount.point) is mount:
                best.setdefault(mount.device, mount)
        return sorted(best.values(), key=lambda m: m.point)


def parse_mount_table(table: bytes) -> MountTable:
    """Raises ValueError for a line that is not of the documented form."""
    lines = table.split(b"\n")  # any other control may be part of a name
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
    """A name of fstab(5) or of the mount table, where blanks and the like are `\\040`."""
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
    """Whole file systems before binds of a part, short names before long ones."""
    return mount.root != "/", len(mount.point), mount.point
