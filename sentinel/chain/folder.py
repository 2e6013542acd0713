"""The folder of a chain: its settings, its script, its journal, and the last output of its links."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import TypeVar

import msgspec

from sentinel.chain.journal import JournalEntry
from sentinel.chain.marks import LinkMark
from sentinel.chain.model import STRAND_LETTERS, Chain
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.text import visible
from sentinel.proc import threads
from sentinel.proc.whole_files import replace_whole_file
from sentinel.trust import UntrustedFile, find_site_fault

MAX_JOURNAL_LINES = 5000
"""Lines of the journal. At one slot in ten minutes this is a month."""

_Line = TypeVar("_Line", JournalEntry, LinkMark)


class ChainNotInstalled(SentinelError):
    """The folder contains no chain."""

    exit_code = 66
    """EX_NOINPUT of sysexits(3)."""


class BadChainFolder(SentinelError):
    """The folder cannot be read or written."""

    exit_code = 73
    """EX_CANTCREAT of sysexits(3)."""


class ChainFolder:
    """`DIR/chain.json`, `DIR/link.sh`, `DIR/links.jsonl`, `DIR/submitted.jsonl`,
    `DIR/proofs.json`, `DIR/link-a.log`."""

    def __init__(self, folder: str, patience: float = 0.0) -> None:
        """`patience`: seconds for one access to the folder. While one access hangs, no other is
        started."""
        self.folder = os.path.abspath(folder)
        self._do = threads.BoundedWorker(patience, "chain").do_within

    @property
    def script_path(self) -> str:
        """The path of the script that is given to sbatch."""
        return os.path.join(self.folder, "link.sh")

    @property
    def marks_path(self) -> str:
        """The path of the marks, to which the script of a link adds too."""
        return self._file_path("submitted.jsonl")

    def strand_output(self, strand: str) -> str:
        """The output file of a strand. Each link overwrites it, so there is one file per strand."""
        return os.path.join(self.folder, f"link-{strand[-1:]}.log")

    def read_chain(self) -> Chain:
        """Read the settings of the chain.

        Raises ChainNotInstalled or BadChainFolder. The settings name commands that are run. So root
        gets UntrustedFile if anybody else could have written them.
        """
        try:
            self._do(self._require_trusted)
            return msgspec.json.decode(self._read_bytes("chain.json"), type=Chain)
        except FileNotFoundError:
            raise ChainNotInstalled(
                f"no chain is installed in {visible(self.folder)}; "
                "begin with: sentinel cron install"
            ) from None
        except (msgspec.DecodeError, Invalid) as error:
            raise BadChainFolder(
                f"{visible(self._file_path('chain.json'))}: {error}; write it anew with: "
                "sentinel cron install"
            ) from error
        except OSError as error:
            raise BadChainFolder(
                f"{visible(self._file_path('chain.json'))}: {error.strerror}"
            ) from error

    def install_files(self, chain: Chain, script: str) -> None:
        """Write the settings and the script, each atomically. Raises BadChainFolder.

        A journal with another spacing is removed, because it would show gaps where none were.
        """
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            if self._installed_spacing() not in (None, chain.every):
                os.unlink(self._file_path("links.jsonl"))
            replace_whole_file(self.script_path, script.encode(), 0o700)
            replace_whole_file(
                self._file_path("chain.json"), msgspec.json.format(msgspec.json.encode(chain))
            )
        except OSError as error:
            raise BadChainFolder(
                f"{visible(self.folder)} cannot be written: {error.strerror}"
            ) from error

    def remove_files(self) -> None:
        """Remove all that `install_files` and the links wrote. Does nothing if nothing is there."""
        logs = (f"link-{letter}.log" for letter in STRAND_LETTERS)
        files = ("chain.json", "link.sh", "links.jsonl", "submitted.jsonl", "proofs.json")
        for name in (*files, "install.lock", "slot.lock", *logs):
            with suppress(FileNotFoundError):
                os.unlink(self._file_path(name))
        with suppress(OSError):
            os.rmdir(self.folder)

    def was_removed(self, mount: str) -> bool:
        """Whether somebody removed the folder, while its file system is still mounted.

        `mount` is the mount point of that file system (Chain.mount). An expired Kerberos ticket, a
        stale handle or a disk error does not count as removal.
        """
        try:
            self._do(lambda: os.lstat(self._file_path("chain.json")))
        except (FileNotFoundError, NotADirectoryError):
            return os.path.ismount(mount or "/")
        except OSError:
            return False
        return False

    def read_journal(self) -> list[JournalEntry]:
        """The journal, oldest entry first. A line that a crash cut off is left out. Raises
        BadChainFolder."""
        try:
            return _decode_lines(self._read_bytes("links.jsonl"), JournalEntry)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadChainFolder(
                f"{visible(self._file_path('links.jsonl'))}: {error.strerror}"
            ) from error

    def append_entry(self, entry: JournalEntry) -> None:
        """Append one line by a single write(2). Errors are ignored, because a pass needs no
        journal."""
        with suppress(OSError):
            self._do(lambda: self._append_line("links.jsonl", msgspec.json.encode(entry) + b"\n"))

    def read_marks(self) -> list[LinkMark]:
        """The marks, oldest first. Empty if they cannot be read: then the links are known by their
        names."""
        with suppress(OSError):
            return _decode_lines(self._read_bytes("submitted.jsonl"), LinkMark)
        return []

    def append_mark(self, mark: LinkMark) -> None:
        """Append one mark. Errors are ignored: a full disk must not end a chain."""
        with suppress(OSError):
            line = msgspec.json.encode(mark) + b"\n"
            self._do(lambda: self._append_line("submitted.jsonl", line))

    def _append_line(self, name: str, line: bytes) -> None:
        path = self._file_path(name)
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(fd).st_size
            torn = size and os.pread(fd, 1, size - 1) != b"\n"
            os.write(fd, b"\n" * bool(torn) + line)
        finally:
            os.close(fd)

    def has_proofs(self) -> bool:
        """Whether there are stored proofs. False also if this cannot be determined."""
        return os.path.exists(self._file_path("proofs.json"))

    def read_proofs(self) -> bytes:
        """The stored proofs as bytes. Raises OSError."""
        return self._read_bytes("proofs.json")

    def write_proofs(self, data: bytes) -> None:
        """Store the proofs. Raises OSError."""
        self._do(lambda: replace_whole_file(self._file_path("proofs.json"), data))

    def trim_journal(self) -> None:
        """Keep only the newest lines, also of the marks. The caller is the running link, so only one
        process does this."""
        for name in ("links.jsonl", "submitted.jsonl"):
            with suppress(OSError):
                self._trim_lines(name)

    def _trim_lines(self, name: str) -> None:
        lines = self._read_bytes(name).splitlines(keepends=True)
        if len(lines) > 2 * MAX_JOURNAL_LINES:
            kept = b"".join(lines[-MAX_JOURNAL_LINES:])
            self._do(lambda: replace_whole_file(self._file_path(name), kept))

    def lock_install(self) -> AbstractContextManager[bool]:
        """Yield whether no other process installs or mends here. The lock saves work; it is no
        guarantee."""
        return self._hold_lock(self._file_path("install.lock"), os.O_RDWR | os.O_CREAT)

    def lock_slot(self) -> AbstractContextManager[bool]:
        """Yield whether no other link runs a slot. Without working locks, the state refuses a
        second run."""
        return self._hold_lock(self._file_path("slot.lock"), os.O_RDWR | os.O_CREAT)

    @contextmanager
    def _hold_lock(self, path: str, flags: int) -> Iterator[bool]:
        try:
            fd, alone = self._do(lambda: _open_locked(path, flags))
        except OSError:
            yield True
            return
        try:
            yield alone
        finally:
            os.close(fd)

    def _read_bytes(self, name: str) -> bytes:
        path = Path(self._file_path(name))
        return self._do(path.read_bytes)

    def _installed_spacing(self) -> int | None:
        """The interval of the installed chain. None without a readable chain or without a journal."""
        if not os.path.exists(self._file_path("links.jsonl")):
            return None
        try:
            return self.read_chain().every
        except SentinelError:
            return None

    def _require_trusted(self) -> None:
        if os.geteuid() == 0 and (wrong := find_site_fault(self._file_path("chain.json"))):
            raise UntrustedFile(
                f"the chain in {visible(self.folder)} is not used by root: {visible(wrong.path)} "
                f"{wrong.why}; run this as its owner, or name another one: --dir DIR"
            )

    def _file_path(self, name: str) -> str:
        return os.path.join(self.folder, name)


def mount_point(path: str) -> str:
    """The mount point of the file system that holds the path, or would hold it."""
    path = os.path.abspath(path)
    while not os.path.ismount(path):
        path = os.path.dirname(path)
    return path


def _open_locked(path: str, flags: int) -> tuple[int, bool]:
    """The open file, and whether this process got its lock."""
    fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return fd, False
    except OSError:
        return fd, True  # no locks on this file system: the queue shows the other links
    return fd, True


def _decode_lines(text: bytes, kind: type[_Line]) -> list[_Line]:
    """The lines that can be read."""
    found: list[_Line] = []
    for line in text.splitlines():
        with suppress(msgspec.DecodeError, RecursionError):
            found.append(msgspec.json.decode(line, type=kind))
    return found
