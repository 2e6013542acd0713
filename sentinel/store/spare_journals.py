"""A second place for writes that the state does not accept: a journal.

While the state works, no journal is written. Several one-shots share it. The first process that can
write the state again reads the journal back."""

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.silences import Orders
from sentinel.core.clock import Instant
from sentinel.core.digests import blake2b
from sentinel.core.errors import StoreBusy, StoreError
from sentinel.core.text import visible
from sentinel.homes import get_user_name
from sentinel.proc.mounts import find_mount
from sentinel.proc.threads import BoundedWorker
from sentinel.store.backlog import PendingWrite
from sentinel.store.errors import StateRefused
from sentinel.store.journal import MAX_JOURNAL_BYTES, Journal
from sentinel.store.lease import DirectoryLock, Lease
from sentinel.store.rows import (
    StateSnapshot,
    StoredOrder,
    UnreadableRow,
    collect_orders,
    decode_stored,
    encode_stored,
)

REPEAT_AFTER_S = 3600.0
"""Seconds until the same notice is given again: a timer or systemd starts passes far more often."""

INLINE_WORKER = BoundedWorker(0, "here")
"""Runs work directly, for directories that cannot hang."""

MERGED_JOURNAL_KEY = "sentinel/journal"
"""Key under which the state remembers the last journal that was merged into it."""


class JournalHead(Struct, frozen=True, kw_only=True):
    """The first record: the facts known when the state could not be written any more.

    token: The leader's number then; 0: not known.
    complete: The snapshot has all that the state had.
    whole: The journal has every write since; else the earlier ones are in the snapshot alone.
    alone: No other sentinel was seen on this state for a day.
    order: Counts the journals of one outage.
    """

    at: Instant  # When the journal was begun.
    snapshot: StateSnapshot  # The data that must never be lost, at that time.
    orders: tuple[StoredOrder, ...] = ()  # The orders of people at that time.
    token: int = 0
    complete: bool = True
    whole: bool = True
    alone: bool = True
    shadow: bool = False  # Whether it is only a copy of the open alerts, while the state works.
    order: int = 0


class JournalContents(Struct, frozen=True):
    """The contents of a journal; `token` is that of the last leader who took it up."""

    id: str  # Unique name of the journal.
    begin: JournalHead  # Its first record.
    writes: tuple[PendingWrite, ...]  # The writes since, the oldest first.
    token: int

    @property
    def known_orders(self) -> Orders:
        """The orders that people had given when the journal was begun."""
        return collect_orders(self.begin.orders)

    @property
    def last_written_at(self) -> Instant:
        """When the journal was last written."""
        return max((w.at for w in self.writes if w.at), default=self.begin.at, key=lambda i: i.wall)

    def is_newer_than(self, there: StateSnapshot | None) -> bool:
        """Whether the journal knows more than the state `there` (None: it cannot be read)."""
        return there is None or (not self.begin.shadow and self.has_no_later_leader(there))

    def has_no_later_leader(self, there: StateSnapshot) -> bool:
        """Whether nobody else led since the journal was written.

        The number is noted in the journal before its process leads, so the state may have that
        number or not yet. Without a known number, any later run counts as a later leader."""
        if self.token:
            return self.token in (there.token, there.token + 1)
        return all(run.at.wall <= self.last_written_at.wall for run in there.runs)


class JournalDir:
    """A directory for a journal. `shared`: others put files there too, so the journal is in a
    subdirectory of this user, under another name if somebody has taken the usual one.
    `patience`: the worker for slow mounts."""

    def __init__(
        self,
        folder: str,
        name: str,
        *,
        shared: bool,
        patience: BoundedWorker = INLINE_WORKER,
    ) -> None:
        self.shared, self._parent, self._name = shared, folder if shared else "", name
        self._usual = os.path.join(folder, f"sentinel-{os.geteuid()}") if shared else folder
        self.squatter = ""
        """The user who has taken the usual name, and the name that is used instead, for people.
        Empty if nobody has."""
        self._use_folder(self._usual)
        self.do = patience.do_within

    def _use_folder(self, folder: str) -> None:
        self.folder = folder
        self.journal = Journal(os.path.join(folder, self._name))
        self.lock = DirectoryLock(self.journal.path + ".lock")  # beside the journal

    def find_earlier_folder(self) -> None:
        """Use the directory that an earlier process made, if somebody else has taken the usual
        name."""
        if self._parent and _find_squatter(self._usual) and (others := self._list_own_folders()):
            self._use_folder(others[0])

    def require_folder(self) -> None:
        """Make the directory if it is missing. Raises StateRefused for one that others can change:
        they could put a link there, or take the journal away. Raises OSError."""
        if self._parent and (not os.path.isdir(self._parent) or _is_private_tmp(self._parent)):
            raise FileNotFoundError(f"no directory {self._parent} that stays")
        with suppress(FileExistsError):
            os.mkdir(self._usual, 0o700)
        if self._parent and (who := _find_squatter(self._usual)):
            self._use_other_folder(who)
        seen = os.lstat(self.folder)
        if not stat.S_ISDIR(seen.st_mode):
            raise StateRefused(f"{visible(self.folder)}: is no directory; remove it")
        if seen.st_uid != os.geteuid():
            raise StateRefused(f"{visible(self.folder)}: belongs to uid {seen.st_uid}; remove it")
        if self._parent and seen.st_mode & 0o022:
            raise StateRefused(f"{visible(self.folder)}: others can write there; chmod go-w")

    def _use_other_folder(self, who: str) -> None:
        """Use a directory with a random name, which nobody can take in advance. A later process
        uses the one that was made first."""
        if not self._list_own_folders():
            fresh = f"{self._usual}.{time.time_ns():020d}-{os.urandom(8).hex()}"
            os.mkdir(fresh, 0o700)
        self._use_folder(self._list_own_folders()[0])
        self.squatter = f"{visible(self._usual)} belongs to {visible(who)}; {self.folder} is used"

    def _list_own_folders(self) -> list[str]:
        """Directories of this user that were made in place of the usual one, the oldest first."""
        start = os.path.basename(self._usual) + "."
        with os.scandir(self._parent) as found:
            named = [entry.path for entry in found if entry.name.startswith(start)]
        return sorted(path for path in named if not _find_squatter(path))


class SpareJournals:
    """The directories for the journals of one state, in the order in which they are tried: `beside`
    the state, in its own directory, and `elsewhere`. Only one thread may use it."""

    def __init__(
        self, beside: JournalDir | None = None, elsewhere: Sequence[JournalDir] = ()
    ) -> None:
        self._beside, self._elsewhere = beside, list(elsewhere)
        self._places = [beside, *elsewhere] if beside else list(elsewhere)
        self._open: JournalDir | None = None
        self._locked: JournalDir | None = None
        self._ended: JournalDir | None = None
        self._order = 0
        self.refused: list[str] = []
        """Why an existing directory is not used, for people."""

    @property
    def journal_id(self) -> str:
        """The id of the journal that is written now; empty if none is."""
        return self._open.journal.id if self._open else ""

    @property
    def journal_path(self) -> str:
        """The path of the journal that is written now; empty if none is."""
        return self._open.journal.path if self._open else ""

    def read_newest(self) -> JournalContents | None:
        """The newest journal of an earlier outage; None if there is none."""
        self.refused = []
        found = [(place, kept) for place in self._places if (kept := self._read_folder(place))]
        if not found:
            return None
        place, kept = max(found, key=lambda f: (f[1].begin.order, f[1].last_written_at.wall))
        self._open = None if kept.begin.shadow else place
        self._order = kept.begin.order
        return kept

    def begin_journal(self, begin: JournalHead) -> bool:
        """Begin a new journal in the first directory that accepts it; that of the last journal,
        which holds everything so far, is tried last. Returns whether one was begun."""
        self._order += 1
        places = sorted(self._places, key=lambda place: place is self._ended)
        self._open = self._begin_in_first(places, replace(begin, order=self._order))
        return self._open is not None

    def write_standby_copy(self, begin: JournalHead) -> None:
        """Write this record into one directory elsewhere."""
        self._begin_in_first(self._elsewhere, begin)

    def leave_journal(self) -> None:
        """Stop writing to the journal that was read."""
        self._open = None

    def _begin_in_first(
        self, places: Sequence[JournalDir], begin: JournalHead
    ) -> JournalDir | None:
        record = _encode_head(begin)
        for place in places:
            try:
                self._prepare_folder(place)
                place.do(lambda place=place: place.journal.restart_with(record))  # type: ignore[misc]
            except OSError:
                continue
            except StateRefused as error:
                self._note_refusal(str(error))
                continue
            return place
        return None

    def append_write(self, write: PendingWrite) -> bool:
        """Append the write. Returns whether it was written; if not, only `begin_journal` helps."""
        return self._append_to_open(write.encode_record())

    def append_token(self, token: int) -> bool:
        """Note that the state is led under this number from now on. Returns as `append_write`."""
        return self._append_to_open(PendingWrite(method="lead", token=token).encode_record())

    def remove_journals(self) -> None:
        """Remove all journals, since the state has their contents."""
        for place in self._places:
            with suppress(OSError):
                place.do(place.journal.remove_files)
        self._open, self._ended, self._order = None, None, 0
        if self._beside is not None:
            with suppress(OSError):
                self._beside.do(self._beside.journal.reserve_space)

    def lock_spare(self, lease: Lease) -> None:
        """Take a lock elsewhere, to lead although the lock of the state cannot be had. Raises
        StoreBusy if another process leads, and StoreError if there is no place for a lock."""
        for place in self._elsewhere:
            try:
                self._prepare_folder(place)
                if not place.do(lambda place=place: place.lock.take_file_lock(lease)):  # type: ignore[misc]
                    raise StoreBusy(f"another sentinel leads: {place.lock.read_lease()}")
            except StoreBusy:
                raise
            except (OSError, StoreError) as error:
                if isinstance(error, StateRefused):
                    self._note_refusal(str(error))
                continue
            self._locked = place
            return
        raise StoreError("the state cannot be written and spare_state: is not set")

    def unlock_spare(self) -> None:
        """Release that lock; harmless if it is not held."""
        if self._locked is not None:
            with suppress(OSError):
                os.unlink(self._locked.journal.path + ".lock")
            self._locked.lock.drop_file_lock()
            self._locked = None

    def _append_to_open(self, record: str) -> bool:
        place = self._open
        if place is None:
            return False
        try:
            place.do(lambda: place.journal.append_record(record.encode()))
        except (OSError, StateRefused):
            self._open, self._ended = None, place
            return False
        return True

    def _read_folder(self, place: JournalDir) -> JournalContents | None:
        try:
            place.do(place.find_earlier_folder)
            records = place.do(lambda: self._read_or_reserve(place))
            return _decode_journal(place.journal.id, records) if records else None
        except (StateRefused, UnreadableRow) as error:
            if not place.shared:  # foreign files are reported only if they are in the way
                self._note_refusal(f"{visible(place.journal.path)}: not read: {error}")
        except OSError:
            pass
        return None

    def _read_or_reserve(self, place: JournalDir) -> list[bytes]:
        """The records in the directory. If it is beside the state, room for some is reserved where
        none is yet."""
        records = place.journal.read_records()
        if place is self._beside:
            place.journal.reserve_space()
        return records

    def _prepare_folder(self, place: JournalDir) -> None:
        place.do(place.require_folder)
        if place.squatter:
            self._note_refusal(place.squatter)

    def _note_refusal(self, why: str) -> None:
        if why not in self.refused:
            self.refused.append(why)


def make_spare_journals(
    identity: str, spare: str = "", *, beside: BoundedWorker | None, patience: float
) -> SpareJournals:
    """The journals of the state with this name (`identity`): its directory or its server's address.

    `beside`: the worker that looks into the state's directory; None: the state has none. `spare`:
    the directory of `spare_state:`."""
    name = "journal-" + blake2b(identity.encode(), digest_size=6).hexdigest()
    elsewhere = (
        [JournalDir(spare, name, shared=False, patience=BoundedWorker(patience, "journal"))]
        if spare
        else []
    )
    elsewhere += make_volatile_dirs(name)
    own = JournalDir(identity, "journal", shared=False, patience=beside) if beside else None
    return SpareJournals(own, elsewhere)


def make_volatile_dirs(name: str) -> list[JournalDir]:
    """Directories of this host that need no configuration."""
    return [JournalDir(folder, name, shared=True) for folder in _find_volatile_folders()]


def is_recent_repeat(what: str, now: float) -> bool:
    """Whether any process of this user on this host asked with the same text within the last hour
    (`now`: seconds UTC). False if nothing can be stored."""
    name = "said-" + blake2b(what.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    for place in make_volatile_dirs(name):
        with suppress(OSError, ValueError, StateRefused):
            place.require_folder()
            last = place.journal.read_records()
            if last and 0 <= now - float(last[-1]) < REPEAT_AFTER_S:
                return True
            place.journal.restart_with(str(now).encode())
            return False
    return False


def _encode_head(begin: JournalHead) -> bytes:
    record = encode_stored(begin)
    if len(record) > MAX_JOURNAL_BYTES // 2:  # memory of checks can be learned again, alerts cannot
        record = encode_stored(replace(begin, snapshot=replace(begin.snapshot, memory={})))
    return record.encode()


def _decode_journal(name: str, records: list[bytes]) -> JournalContents:
    begin = decode_stored(records[0].decode(), JournalHead)
    writes = tuple(decode_stored(record.decode(), PendingWrite) for record in records[1:])
    tokens = [begin.token, *(w.token for w in writes if w.method == "lead")]
    return JournalContents(name, begin, writes, tokens[-1])


def _find_volatile_folders() -> Iterator[str]:
    """Directories of this host that are in memory, or in another part of its disk."""
    if own := os.environ.get("XDG_RUNTIME_DIR", ""):
        yield own
    if os.geteuid() == 0:
        yield "/run"
    yield from ("/dev/shm", "/tmp")  # noqa: S108


def _find_squatter(folder: str) -> str:
    """The user who has taken that name. Empty if it is free, or is this user's directory."""
    try:
        seen = os.lstat(folder)
    except FileNotFoundError:
        return ""
    if seen.st_uid == os.geteuid():
        return (
            ""
            if stat.S_ISDIR(seen.st_mode)
            else f"{get_user_name(seen.st_uid)} and is no directory"
        )
    return get_user_name(seen.st_uid)


def _is_private_tmp(folder: str) -> bool:
    """Whether the directory ends with the service: PrivateTmp= of systemd.exec(5)."""
    with suppress(OSError, ValueError):
        mount = find_mount(folder)
        return mount is not None and "systemd-private-" in mount.root
    return True
