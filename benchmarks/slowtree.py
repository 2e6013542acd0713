"""A tree through FUSE that answers each call a moment late, however many wait: a far file system.

Runs as a program, `slowtree.py MOUNTPOINT FOLDERS FILES SECONDS`; the end of stdin unmounts. It
speaks the protocol itself (include/uapi/linux/fuse.h, 7.31), since a library's ten threads would
be what is measured.
"""

import ctypes
import errno
import os
import select
import stat
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.fusefs import HEADER, MNT_DETACH, mount

ROOT, WIDTH = 1, 20
"""A folder is number 2 and up; a file is its folder's number shifted, and its own from 1 on."""
LOOKUP, FORGET, GETATTR, INIT, READDIR, INTERRUPT, BATCH_FORGET = 1, 2, 3, 26, 28, 36, 42
PARALLEL_DIROPS = 1 << 18
BARE, OPENED = {25, 29}, {27}
"""flush and releasedir are answered by a bare success, opendir by a handle of zeros."""


class Tree:
    """Folders of equally many empty files, the folders in the root."""

    def __init__(self, folders: int, files: int) -> None:
        self._folders, self._files = folders, files

    def answer(self, code: int, node: int, body: bytes) -> bytes | int:
        """The reply's body, or an errno."""
        if code == INIT:
            return struct.pack(
                "<IIIIHHIIHHII24x", 7, 31, 0, PARALLEL_DIROPS, 64, 48, 65536, *[0] * 5
            )
        if code == GETATTR:
            return struct.pack("<QII", 1, 0, 0) + _attributes(node)
        if code == LOOKUP:
            number = self._number(node, body.split(b"\0")[0])
            return (
                struct.pack("<QQQQII", number, 0, 1, 1, 0, 0) + _attributes(number) if number else 2
            )
        if code == READDIR:
            _, offset, size = struct.unpack_from("<QQI", body)
            return self._list(node, offset, size)
        return (
            struct.pack("<QII", 0, 0, 0)
            if code in OPENED
            else b""
            if code in BARE
            else errno.ENOSYS
        )

    def _number(self, node: int, name: bytes) -> int:
        at = int(name[1:]) if name[1:].isdigit() else 1 << WIDTH
        if node == ROOT:
            return at + 2 if at < self._folders else 0
        return (node << WIDTH) + at + 1 if at < self._files else 0

    def _list(self, node: int, offset: int, size: int) -> bytes:
        letter, count = (b"d", self._folders) if node == ROOT else (b"f", self._files)
        said = b""
        for at in range(offset, count):
            name = b"%s%06d" % (letter, at)
            said += struct.pack("<QQII", at + 2, at + 1, len(name), 0) + name + b"\0"
            if len(said) + 32 > size:
                break
        return said


def _attributes(node: int) -> bytes:
    mode = stat.S_IFDIR | 0o755 if node < 1 << WIDTH else stat.S_IFREG | 0o644
    return struct.pack("<QQQQQQIIIIIIIIII", node, 0, 8, *[0] * 6, mode, 1, 0, 0, 0, 4096, 0)


def serve(point: str, tree: Tree, delay: float) -> None:
    """Until stdin ends. Answers leave in the order in which calls came, each `delay` later."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
    mount(device, point, "0")
    waiting: deque[tuple[float, bytes]] = deque()
    try:
        while True:
            left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
            ready, _, _ = select.select([device, sys.stdin], [], [], left)
            if sys.stdin in ready:
                return
            if device in ready:
                _take(device, tree, waiting, delay)
            while waiting and waiting[0][0] <= time.monotonic():
                os.write(device, waiting.popleft()[1])
    finally:
        ctypes.CDLL(None).umount2(point.encode(), MNT_DETACH)


def _take(device: int, tree: Tree, waiting: deque[tuple[float, bytes]], delay: float) -> None:
    data = os.read(device, 1 << 18)
    _, code, unique, node, *_ = HEADER.unpack_from(data)
    if code in (FORGET, BATCH_FORGET, INTERRUPT):
        return
    said = tree.answer(code, node, data[HEADER.size :])
    error, body = (-said, b"") if isinstance(said, int) else (0, said)
    reply = struct.pack("<IiQ", 16 + len(body), error, unique) + body
    waiting.append((time.monotonic() + delay, reply))


@contextmanager
def mounted(point: Path, folders: int, files: int, delay: float) -> Iterator[Path]:
    """The tree, freshly mounted: nothing of it is in the kernel's caches. Needs root."""
    point.mkdir(exist_ok=True)
    sizes = [str(point), str(folders), str(files), str(delay)]
    argv = [sys.executable, "-m", "benchmarks.slowtree", *sizes]
    server = subprocess.Popen(argv, cwd=Path(__file__).parent.parent, stdin=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 10
        while not os.path.ismount(point):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{point} is not mounted")
            time.sleep(0.02)
        yield point
    finally:
        server.communicate(timeout=10)


if __name__ == "__main__":
    serve(sys.argv[1], Tree(int(sys.argv[2]), int(sys.argv[3])), float(sys.argv[4]))
