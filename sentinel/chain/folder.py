"""The folder of a chain: what was installed, its script, its journal, its links' last output."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import msgspec

from sentinel.chain.journal import JournalEntry
from sentinel.chain.model import STRAND_LETTERS, Chain
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.text import visible
from sentinel.proc import threads
from sentinel.trust import UntrustedFile, find_path_fault, get_trusted_uids

MAX_JOURNAL_LINES = 5000
"""Lines of the journal: a month at ten minutes."""


class ChainNotInstalled(SentinelError):
    """There is no chain here."""

    exit_code = 66
    """EX_NOINPUT of sysexits(3)."""


class BadChainFolder(SentinelError):
    """The folder cannot be read or written."""

    exit_code = 73
    """EX_CANTCREAT of sysexits(3)."""


class ChainFolder:
    """`DIR/chain.json`, `DIR/link.sh`, `DIR/links.jsonl`, `DIR/proofs.json`,
    `DIR/link-a.log`."""

    def __init__(self, folder: str, patience: float = 0.0) -> None:
        """`patience`: seconds for one look at it; while one hangs there is no other."""
        self.folder = os.path.abspath(folder)
        self._do = threads.BoundedWorker(patience, "chain").do_within

    @property
    def script_path(self) -> str:
        """What sbatch is given."""
        return os.path.join(self.folder, "link.sh")

    def strand_output(self, strand: str) -> str:
        """Where the last link of a strand wrote; one file a strand, whatever time passes."""
        return os.path.join(self.folder, f"link-{strand[-1:]}.log")

    def read_chain(self) -> Chain:
        """What was installed; raises ChainNotInstalled or BadChainFolder. Its words are run: root's only
        where nobody else could have written them (Distrusted)."""
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
        """Write both files, each at once; raises BadChainFolder. A journal of another spacing goes: it
        would show gaps where none were."""
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            if self._installed_spacing() not in (None, chain.every):
                os.unlink(self._file_path("links.jsonl"))
            replace_file(self.script_path, script.encode(), 0o700)
            replace_file(
                self._file_path("chain.json"), msgspec.json.format(msgspec.json.encode(chain))
            )
        except OSError as error:
            raise BadChainFolder(
                f"{visible(self.folder)} cannot be written: {error.strerror}"
            ) from error

    def remove_files(self) -> None:
        """Take away what `install_files` and links wrote; harmless where nothing is."""
        logs = (f"link-{letter}.log" for letter in STRAND_LETTERS)
        for name in ("chain.json", "link.sh", "links.jsonl", "proofs.json", "slot.lock", *logs):
            with suppress(FileNotFoundError):
                os.unlink(self._file_path(name))
        with suppress(OSError):
            os.rmdir(self.folder)

    def was_removed(self, mount: str) -> bool:
        """Whether somebody removed the folder, and not just its file system is out of sight:
        `mount` is where that is mounted (Chain.mount). A ticket that has run out, a stale handle
        or an error of the disk is no removal."""
        try:
            self._do(lambda: os.lstat(self._file_path("chain.json")))
        except (FileNotFoundError, NotADirectoryError):
            return os.path.ismount(mount or "/")
        except OSError:
            return False
        return False

    def read_journal(self) -> list[JournalEntry]:
        """The journal, oldest first; a line that a crash has torn is left out. Raises BadChainFolder."""
        try:
            return list(_decode_entries(self._read_bytes("links.jsonl").splitlines()))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadChainFolder(
                f"{visible(self._file_path('links.jsonl'))}: {error.strerror}"
            ) from error

    def append_entry(self, entry: JournalEntry) -> None:
        """One line more, in one write(2). A journal that cannot be written stops nothing."""
        with suppress(OSError):
            self._do(lambda: self._append_line(msgspec.json.encode(entry) + b"\n"))

    def _append_line(self, line: bytes) -> None:
        path = self._file_path("links.jsonl")
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(fd).st_size
            torn = size and os.pread(fd, 1, size - 1) != b"\n"
            os.write(fd, b"\n" * bool(torn) + line)
        finally:
            os.close(fd)

    def read_proofs(self) -> bytes:
        """What `proofs` keeps; raises OSError."""
        return self._read_bytes("proofs.json")

    def write_proofs(self, data: bytes) -> None:
        """Keep them; raises OSError."""
        self._do(lambda: replace_file(self._file_path("proofs.json"), data))

    def trim_journal(self) -> None:
        """Keep the newest lines; called by a link while it runs, so by one at a time."""
        with suppress(OSError):
            lines = self._read_bytes("links.jsonl").splitlines(keepends=True)
            if len(lines) > 2 * MAX_JOURNAL_LINES:
                kept = b"".join(lines[-MAX_JOURNAL_LINES:])
                self._do(lambda: replace_file(self._file_path("links.jsonl"), kept))

    def lock_install(self) -> AbstractContextManager[bool]:
        """Whether no other process mends or installs here; only spares work, proves nothing."""
        return self._hold_lock(self.folder, os.O_RDONLY | os.O_DIRECTORY)

    def lock_slot(self) -> AbstractContextManager[bool]:
        """Whether no other link is at a slot. Where there are no locks, the state refuses later."""
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
        """Of the chain that is installed, where there is one that can be read, and a journal."""
        if not os.path.exists(self._file_path("links.jsonl")):
            return None
        try:
            return self.read_chain().every
        except SentinelError:
            return None

    def _require_trusted(self) -> None:
        if os.geteuid() == 0 and (
            wrong := find_path_fault(self._file_path("chain.json"), get_trusted_uids())
        ):
            raise UntrustedFile(
                f"the chain in {visible(self.folder)} is not used by root: {visible(wrong.path)} "
                f"{wrong.why}; run this as its owner, or name another one: --dir DIR"
            )

    def _file_path(self, name: str) -> str:
        return os.path.join(self.folder, name)


def mount_point(path: str) -> str:
    """Where the file system is mounted that the path lies on, or would."""
    path = os.path.abspath(path)
    while not os.path.ismount(path):
        path = os.path.dirname(path)
    return path


def replace_file(path: str, data: bytes, mode: int = 0o600) -> None:
    """Readers see the old file or the new one, also after a crash; raises OSError."""
    fresh = f"{path}.{os.getpid()}.new"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh)
        raise


def _open_locked(path: str, flags: int) -> tuple[int, bool]:
    """The open file, and whether no other process has its lock."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return fd, False
    except OSError:
        return fd, True  # no locks here: the queue itself shows what is there
    return fd, True


def _decode_entries(lines: list[bytes]) -> Iterator[JournalEntry]:
    for line in lines:
        with suppress(msgspec.DecodeError, RecursionError):
            yield msgspec.json.decode(line, type=JournalEntry)
