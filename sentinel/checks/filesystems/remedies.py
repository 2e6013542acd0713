"""Says what to do about a path that hangs, refuses or is full, and which commands show why. Pure."""

from __future__ import annotations

from sentinel.checks.filesystems.limits import FileSystemUsage, SpaceLimits
from sentinel.core.guidance import Guidance, LookingCommand, look, quote_command
from sentinel.core.model import Status
from sentinel.core.mounts import LOCAL_DISK_TYPES

GONE = "No such file or directory"
NOT_THERE = "does not exist"
_WALKED_TYPES = LOCAL_DISK_TYPES | {"overlay", "overlayfs", "ramfs", "tmpfs"}
"""Types of file systems that du may walk whole: no other host waits for it."""
_MEMORY_TYPES = frozenset({"ramfs", "tmpfs"})
_IN_MEMORY = " Files there are kept in memory, so jobs have that much less of it."
OTHERS_NOT_CHECKED = "Other hosts were not checked."
INODES_MEANING = (
    " (An inode is a file or directory: packing many small ones into one frees inodes, not bytes."
    " Where writes fail already, write the archive elsewhere.)"
)


def guide_hang(path: str, node: str = "") -> Guidance:
    """Guidance for a hang, which stops everybody who uses the file system."""
    where = f" on {node}" if node else ""
    jobs = f"the jobs on {node} too" if node else "jobs too, if it hangs on their nodes"
    return Guidance(
        impact=f"Programs that read or write there stand still until it answers; {jobs}.",
        todo="Do not use it meanwhile. `grep` below shows how it is mounted, `ps` which processes hang;"
        " neither command touches it. Administrators: see whether its disk or file server answers; when it"
        f" does, most processes go on by themselves. {OTHERS_NOT_CHECKED}",
        ask=f"look at {path}{where} and its file server: it does not answer",
        headline="HANGS",
    )


def guide_refusal(path: str, why: str, node: str = "") -> Guidance:
    """A path that answers with an error, as a stale handle, is of no use to anybody. One that does not
    exist may be misspelt."""
    where = f" on {node}" if node else ""
    if GONE in why or why == NOT_THERE:
        return Guidance(
            impact="Jobs that use this path fail.",
            todo="Check the path. If it has to be there, its file system may not be mounted.",
            ask=f"look why {path}{where} does not exist",
        )
    return Guidance(
        impact="Every read and write there fails until it is mounted again.",
        todo="Use another disk meanwhile. As root: unmount it and mount it again; programs that hold"
        f" files open there have to be started again. {OTHERS_NOT_CHECKED}",
        ask=f"unmount {path}{where} and mount it again: {why}",
    )


def guide_read_only(path: str, node: str = "") -> Guidance:
    """A disk that has stopped writing after an error."""
    where = f" on {node}" if node else ""
    return Guidance(
        impact="What cannot be written is lost: logs, checkpoints, results.",
        todo="Write to another disk meanwhile.",
        ask=f"look at the disk below {path}{where}: it has errors or writes nothing",
    )


def guide_lost(path: str, node: str = "") -> Guidance:
    """A path that is not mounted shows the empty directory below."""
    where = f" on {node}" if node else ""
    return Guidance(
        impact="Jobs do not find their data there, and what they write lands on another disk, which may"
        " fill.",
        todo="Do not write there until it is mounted again. As root: `ls` below lists what was written"
        " there meanwhile; nobody sees that once it is mounted, so move it to another disk. Then"
        f" `{quote_command('mount', path)}`; where `findmnt` prints nothing, /etc/fstab does not know it: ask"
        f" who mounts it. {OTHERS_NOT_CHECKED}",
        ask=f"mount {path}{where} again: it is not mounted. First move away what was written there since",
    )


def guide_full(
    path: str,
    node: str = "",
    *,
    status: Status,
    inodes: bool = False,
    walked: bool = True,
    kind: str = "",
) -> Guidance:
    """What runs full lets every write fail. `inodes`: these run out; `walked`: du may walk all of it;
    `kind`: the type of the file system."""
    where = f" on {node}" if node else ""
    largest = (
        "`du` below shows what is largest."
        if walked
        else "See with `du -xh -d 1` which of your directories there are large; a du of all of it"
        " would burden its servers."
    )
    return Guidance(
        impact="When it is full, every write there fails: jobs lose logs and checkpoints, and end."
        f"{_IN_MEMORY if kind in _MEMORY_TYPES else ''}",
        todo=f"{largest} Remove or move what is yours and not needed; ask the owners of the rest (`ls -ld`"
        f" shows them).{INODES_MEANING if inodes else ''}",
        ask=f"make room on {path}{where}: it is nearly full",
        headline="FULL" if status is Status.CRITICAL else "",
    )


def may_be_walked(kind: str) -> bool:
    """Whether a file system of this type is this host's own. stat(1) calls ext4 `ext2/ext3`."""
    return kind.partition("/")[0] in _WALKED_TYPES


def is_short_of_inodes(usage: FileSystemUsage, *limits: SpaceLimits) -> bool:
    """Whether a limit on inodes is crossed."""
    share = usage.inodes_used_percent
    set_shares = [one.inodes_used for one in limits if one.inodes_used is not None]
    return share is not None and any(share >= limit for limit in set_shares)


def list_usage_commands(path: str, *, inodes: bool) -> tuple[LookingCommand, ...]:
    """Commands that show what is largest; where inodes run out, first what has most files."""
    by_size = look("du -xah -d 1 {} | sort -h | tail | cat -v", path)
    by_count = look("du -x --inodes -d 1 {} | sort -n | tail | cat -v", path)
    return (by_count, by_size) if inodes else (by_size,)


def list_lost_commands(path: str) -> tuple[LookingCommand, ...]:
    """Commands that look before somebody mounts it again: what was written meanwhile would be hidden."""
    return look("ls -la {} | cat -v", path), look("findmnt --fstab --mountpoint {}", path)


def list_mount_commands(path: str, *, hung: bool) -> tuple[LookingCommand, ...]:
    """Commands that show how a path is mounted, and what hangs. None of them would hang on the file
    system: ps does not read the command lines, which may hang with their processes."""
    mounts = look("grep -F {} /proc/mounts | cat -v", path)
    return (mounts, look("ps -eo stat,pid,wchan:32,comm | grep ^D")) if hung else (mounts,)
