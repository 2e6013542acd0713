"""A program for `append_line`: appends its input to a file.

It is a program of its own because opening or writing a file on a mount that hangs cannot be
cancelled, only abandoned. Standard library only; exit code 2 says that no retry will help."""

import os
import stat
import sys
import time

PAUSE, LOOKS = 0.05, 20
"""Another writer may be about to complete the last line. So it is read again after this many
seconds, and at most this often."""

MAX_LINKS = 40
"""Links on one path: path_resolution(7)."""

_OPEN_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
_LOOK_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class NotAppendable(OSError):
    """The path does not lead to a regular file, or leads there by a link of another user."""


def append_to_file(path: str, line: bytes) -> None:
    """Append the line and its end by one write(2). If the last line is incomplete, it is ended
    first."""
    fd = _open_file(path)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise NotAppendable("is not a regular file")
        data = b"\n" * _is_torn(fd) + line + b"\n"
        if os.write(fd, data) != len(data):
            raise OSError("only part of the line could be written; is the file system full?")
    finally:
        os.close(fd)


def _open_file(path: str) -> int:
    """Open the file, or create it. A link of another user is not followed, wherever it is on the way:
    it could lead to any file that this process may write."""
    folder, links = os.open("/", _LOOK_FLAGS), 0
    steps = _split_path(os.path.join(os.getcwd(), path))
    while steps:
        step = steps.pop(0)
        try:
            found = _look_at_step(step, folder)
        except FileNotFoundError:
            if steps:
                raise
            try:
                return os.open(step, _OPEN_FLAGS | os.O_CREAT | os.O_EXCL, 0o640, dir_fd=folder)
            except FileExistsError:  # another writer was faster
                steps = [step]
                continue
        seen = os.fstat(found)
        if stat.S_ISLNK(seen.st_mode):
            links += 1
            if links > MAX_LINKS:
                raise NotAppendable("leads through too many links")
            _refuse_foreign_link(seen)
            target = os.readlink("", dir_fd=found)
            steps = _split_path(target) + steps
            folder = os.open("/", _LOOK_FLAGS) if target.startswith("/") else folder
        elif steps:
            folder = found
        elif stat.S_ISREG(seen.st_mode) or stat.S_ISDIR(seen.st_mode):  # which is refused in words
            _refuse_second_name(seen, os.fstat(folder))
            return os.open(step, _OPEN_FLAGS, dir_fd=folder)
    raise NotAppendable("is not a regular file")


def _look_at_step(step: str, folder: int) -> int:
    """Look at an entry, without rights. A directory that is mounted on demand is mounted: O_PATH
    alone does not do it (open(2))."""
    try:
        return os.open(step, _LOOK_FLAGS | os.O_DIRECTORY, dir_fd=folder)
    except NotADirectoryError:
        return os.open(step, _LOOK_FLAGS, dir_fd=folder)


def _refuse_second_name(file: os.stat_result, folder: os.stat_result) -> None:
    """A hard link that others made leads to another file as a symbolic one does, where the kernel
    lets them (fs.protected_hardlinks of proc_sys_fs(5))."""
    is_others = folder.st_uid not in (0, os.geteuid()) or folder.st_mode & 0o022
    if is_others and stat.S_ISREG(file.st_mode) and file.st_nlink > 1:
        raise NotAppendable("has a second name, in a folder that others may write: remove it")


def _split_path(path: str) -> "list[str]":
    return [step for step in path.split("/") if step not in ("", ".")]


def _refuse_foreign_link(link: os.stat_result) -> None:
    """Links of root, of whoever has the root folder in root's place (user_namespaces(7)), and of this
    user are followed. The server of a FUSE mount makes up the owners of its links."""
    trusted = {0, os.geteuid(), os.stat("/").st_uid}
    foreign = {link.st_uid, *_list_mount_users(link.st_dev)} - trusted
    if foreign:
        raise NotAppendable(
            f"leads through a link of uid {min(foreign)}, which is not followed: name the file itself"
        )


def _list_mount_users(device: int) -> "set[int]":
    """The users who run the FUSE server of that device (proc_pid_mountinfo(5)); empty for others."""
    number, users = f"{os.major(device)}:{os.minor(device)}".encode(), set()
    with open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            fields = line.rstrip(b"\n").split(b" ")
            for option in fields[-1].split(b",") if fields[2:3] == [number] else ():
                name, _, value = option.partition(b"=")
                if name == b"user_id" and value.isdigit():
                    users.add(int(value))
    return users


def _is_torn(fd: int) -> bool:
    """Whether the last line has no end, and no other process is writing it now."""
    for _ in range(LOOKS):
        size = os.fstat(fd).st_size
        if not size or os.pread(fd, 1, size - 1) == b"\n":
            return False
        time.sleep(PAUSE)
        if os.fstat(fd).st_size == size:
            return True
    return False


def main() -> int:
    """Append the line. Returns 0: written, 1: not now, 2: never; the reason goes to stderr.

    The length of the line is an argument: if sentinel is killed while it sends the line, only a
    part of it arrives, which must not be written."""
    path, length, line = sys.argv[1], int(sys.argv[2]), sys.stdin.buffer.read()
    if len(line) != length:
        print("the line did not arrive whole", file=sys.stderr)  # noqa: T201
        return 1
    try:
        append_to_file(path, line)
    except OSError as error:
        print(error.strerror or error, file=sys.stderr)  # noqa: T201
        return 2 if isinstance(error, NotAppendable | IsADirectoryError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
