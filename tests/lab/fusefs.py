"""A file system whose answers can be withheld; speaks the kernel's FUSE protocol itself.

Runs as a program, `fusefs.py MOUNTPOINT`, standard library only. Its stdin takes one command a
line, each answered by the number of withheld calls: `hold OPERATION...` (open, statfs, getattr, lookup,
read, opendir; `statfs-1`: of the root alone), `release`, `count`, `quota FOLDER` (as `space`, of that
directory), `fail ERRNO OPERATION...` (answered so from now on, `fail 0` ends it), `space TOTAL FREE
AVAILABLE FILES FREE_FILES` (bytes and inodes), `endless` (the root lists names without end, of which none
is there), `reset` (all as at the begin). The end of stdin unmounts,
so it never outlives whoever started it; withheld calls then end with an error.

Layouts and numbers: include/uapi/linux/fuse.h of Linux, protocol 7.31.
"""

import ctypes
import errno
import os
import select
import stat
import struct
import sys
from contextlib import suppress

FILES = {2: (b"data", b"data\n"), 3: (b"more", b"more\n")}
FOLDERS = {4: b"project-1", 5: b"project-2", 6: b"plain"}
ROOT = 1
MNT_DETACH = 2
HEADER = struct.Struct("<IIQQIIIHH")
OPERATIONS = {1: "lookup", 3: "getattr", 14: "open", 15: "read", 17: "statfs", 26: "init"}
OPERATIONS |= {27: "opendir", 28: "readdir", 2: "forget", 42: "forget", 36: "interrupt"}
EMPTY = {18, 25, 29, 34}
"""release, flush, releasedir, access: answered by a bare success."""
BLOCK = 4096


class Answers:
    """What the file system says: a root directory with two files and three directories, of which
    each may have a quota as its size, as an XFS project has."""

    def __init__(self) -> None:
        self.space: tuple[int, ...] = (1 << 40, 1 << 39, 1 << 39, 1 << 20, 1 << 19)
        self.quotas: dict[int, tuple[int, ...]] = {}
        self.is_endless = False

    def answer(self, operation: str, node: int, body: bytes) -> bytes | int:
        """The reply's body, or an errno."""
        reply: bytes | int = getattr(self, f"_{operation}")(node, body)
        return reply

    def _init(self, node: int, body: bytes) -> bytes:
        return struct.pack("<IIIIHHIIHHII24x", 7, 31, 65536, 0, 12, 9, 65536, 1, 0, 0, 0, 0)

    def _lookup(self, node: int, body: bytes) -> bytes | int:
        wanted = body.split(b"\0")[0]
        for number, name in {**{n: f[0] for n, f in FILES.items()}, **FOLDERS}.items():
            if name == wanted:
                return struct.pack("<QQQQII", number, 0, 0, 0, 0, 0) + attributes(number)
        return errno.ENOENT

    def _getattr(self, node: int, body: bytes) -> bytes:
        return struct.pack("<QII", 0, 0, 0) + attributes(node)

    def _open(self, node: int, body: bytes) -> bytes:
        return struct.pack("<QII", 0, 0, 0)

    _opendir = _open

    def _read(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        return FILES[node][1][offset : offset + size]

    def _readdir(self, node: int, body: bytes) -> bytes:
        _, offset, _ = struct.unpack_from("<QQI", body)
        if self.is_endless:
            return b"".join(
                make_record(9, n, b"%0240d" % n) for n in range(offset + 1, offset + 15)
            )
        return b"".join(entries()[offset:])

    def _statfs(self, node: int, body: bytes) -> bytes:
        total, free, available, files, free_files = self.quotas.get(node, self.space)
        blocks = (total // BLOCK, free // BLOCK, available // BLOCK, files, free_files)
        return struct.pack("<QQQQQIIII24x", *blocks, BLOCK, 255, BLOCK, 0)


def attributes(node: int) -> bytes:
    size = len(FILES[node][1]) if node in FILES else 0
    mode = stat.S_IFREG | 0o644 if node in FILES else stat.S_IFDIR | 0o755
    return struct.pack(
        "<QQQQQQIIIIIIIIII", node, size, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, BLOCK, 0
    )


def entries() -> list[bytes]:
    """fuse_dirent records, each padded to 8 bytes."""
    names = [(ROOT, b".", stat.S_IFDIR), (ROOT, b"..", stat.S_IFDIR)]
    names += [(number, name, stat.S_IFREG) for number, (name, _) in FILES.items()]
    names += [(number, name, stat.S_IFDIR) for number, name in FOLDERS.items()]
    return [make_record(n, at, name, kind) for at, (n, name, kind) in enumerate(names, start=1)]


def make_record(number: int, offset: int, name: bytes, kind: int = stat.S_IFREG) -> bytes:
    """One fuse_dirent."""
    record = struct.pack("<QQII", number, offset, len(name), kind >> 12) + name
    return record + b"\0" * (-len(record) % 8)


class Server:
    """Requests in, answers out, except the ones withheld."""

    def __init__(self, device: int) -> None:
        self._device, self._answers = device, Answers()
        self._held: set[str] = set()
        self._failing: dict[str, int] = {}
        self._withheld: list[tuple[int, int, int, bytes]] = []

    def command(self, words: list[str]) -> int:
        """Do it; how many calls are withheld now."""
        if words[0] == "hold":
            self._held = set(words[1:])
        elif words[0] == "fail":
            self._failing = dict.fromkeys(words[2:], int(words[1]))
        elif words[0] == "space":
            self._answers.space = tuple(map(int, words[1:]))
        elif words[0] == "quota":
            node = next(n for n, name in FOLDERS.items() if name == words[1].encode())
            self._answers.quotas[node] = tuple(map(int, words[2:]))
        elif words[0] == "endless":
            self._answers.is_endless = True
        elif words[0] == "reset":
            self._answers, self._failing = Answers(), {}
            return self.command(["release"])
        elif words[0] == "release":
            self._held = set()
            for request in self._withheld:
                self._reply(*request)
            self._withheld.clear()
        return len(self._withheld)

    def request(self) -> None:
        """Read one request and answer it, unless its operation is withheld."""
        data = os.read(self._device, 1 << 18)
        _, code, unique, node, *_ = HEADER.unpack_from(data)
        request = (code, unique, node, data[HEADER.size :])
        if self._held & {OPERATIONS.get(code), f"{OPERATIONS.get(code)}-{node}"}:
            self._withheld.append(request)
        elif OPERATIONS.get(code) not in ("forget", "interrupt"):
            self._reply(*request)

    def _reply(self, code: int, unique: int, node: int, body: bytes) -> None:
        reply: bytes | int = b"" if code in EMPTY else errno.ENOSYS
        if code in OPERATIONS:
            operation = OPERATIONS[code]
            failing = self._failing.get(operation)
            reply = failing or self._answers.answer(operation, node, body)
        error, payload = (-reply, b"") if isinstance(reply, int) else (0, reply)
        try:
            os.write(self._device, struct.pack("<IiQ", 16 + len(payload), error, unique) + payload)
        except OSError as problem:  # the caller was killed meanwhile: nobody waits for it
            if problem.errno not in (errno.ENOENT, errno.EINVAL):
                raise


def mount(device: int, point: str, user: str) -> None:
    """mount(2): fusermount would start a program of its own that waits."""
    options = f"fd={device},rootmode=40000,user_id={user},group_id=0,allow_other".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"lab", point.encode(), b"fuse.lab", 0, options) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), point)


def serve(point: str, user: str) -> None:
    device = os.open("/dev/fuse", os.O_RDWR)
    mount(device, point, user)
    server = Server(device)
    server.request()  # init
    # Whoever asked may be killed between select and read: a read that waits would hear no command.
    os.set_blocking(device, False)
    print(0, flush=True)
    try:
        while True:
            ready, _, _ = select.select([device, sys.stdin], [], [])
            if device in ready:
                with suppress(BlockingIOError):
                    server.request()
            if sys.stdin in ready:
                line = sys.stdin.readline()
                if not line:
                    return
                print(server.command(line.split()), flush=True)
    finally:
        ctypes.CDLL(None).umount2(point.encode(), MNT_DETACH)


if __name__ == "__main__":
    serve(*sys.argv[1:])
