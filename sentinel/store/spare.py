"""A second place for what cannot be written to the state: a journal, beside it or elsewhere.

Nothing is written there while the state works. One-shots share it, and whoever can write the state
again reads it back.
"""

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
from sentinel.proc.mounts import holding
from sentinel.proc.threads import Patience
from sentinel.store.backlog import Write
from sentinel.store.errors import Refused
from sentinel.store.journal import SIZE, Journal
from sentinel.store.lease import DirectoryLock, Lease
from sentinel.store.rows import Order, Snapshot, Unreadable, decode, encode, together
from sentinel.trust import user_name

AGAIN = 3600.0
"""Seconds until the same is said again: a timer or systemd starts a pass far more often."""

HERE = Patience(0, "here")
"""For what no mount can hold up."""

MERGED = "sentinel/journal"
"""Under this name the state remembers which journal it has taken over last."""


class Begin(Struct, frozen=True, kw_only=True):
    """The first record: what was known when the state could not be written any more.

    `token`: the leader's number by then, 0 if not known. `complete`: the snapshot has all that the
    state had. `whole`: the journal has every write since; else what came before is in the snapshot
    alone. `alone`: no other sentinel was seen on this state for a day. `order` counts the journals
    of one outage.
    """

    at: Instant
    snapshot: Snapshot
    orders: tuple[Order, ...] = ()
    token: int = 0
    complete: bool = True
    whole: bool = True
    alone: bool = True
    shadow: bool = False
    order: int = 0


class Kept(Struct, frozen=True):
    """What a journal holds; `token` that of the last leader who took it up."""

    id: str
    begin: Begin
    writes: tuple[Write, ...]
    token: int

    @property
    def orders(self) -> Orders:
        """What people had said."""
        return together(self.begin.orders)

    @property
    def last(self) -> Instant:
        """When it was written last."""
        return max((w.at for w in self.writes if w.at), default=self.begin.at, key=lambda i: i.wall)

    def newer_than(self, there: Snapshot | None) -> bool:
        """Whether it knows more than the state that can still be read."""
        return there is None or (not self.begin.shadow and self.follows(there))

    def follows(self, there: Snapshot) -> bool:
        """Whether nobody else led since it was written. It is noted before leading under which
        number that will be: so the state may have that number or not yet. A number that was never
        known gives way to any later run."""
        if self.token:
            return self.token in (there.token, there.token + 1)
        return all(run.at.wall <= self.last.wall for run in there.runs)


class Place:
    """A directory for a journal. `shared`: others put files there too, so it is one in it of this
    user's own, under another name where somebody has taken the usual one. `patience`: who looks
    there, where it may lie on a mount that hangs."""

    def __init__(
        self,
        folder: str,
        name: str,
        *,
        shared: bool,
        patience: Patience = HERE,
    ) -> None:
        self.shared, self._parent, self._name = shared, folder if shared else "", name
        self._usual = os.path.join(folder, f"sentinel-{os.geteuid()}") if shared else folder
        self.squatter = ""
        """Who has taken the usual name and what is used in its place, for people; empty for nobody."""
        self._use(self._usual)
        self.do = patience.do

    def _use(self, folder: str) -> None:
        self.folder = folder
        self.journal = Journal(os.path.join(folder, self._name))
        self.lock = DirectoryLock(self.journal.path + ".lock")  # beside the journal

    def settle(self) -> None:
        """Find the directory of an earlier process, where somebody has taken the usual name."""
        if self._parent and _sits(self._usual) and (others := self._others()):
            self._use(others[0])

    def require(self) -> None:
        """Make the directory where it is missing. Raises Refused for one that others can change:
        they could put a link there, or take the journal away."""
        if self._parent and (not os.path.isdir(self._parent) or _private(self._parent)):
            raise FileNotFoundError(f"no directory {self._parent} that stays")
        with suppress(FileExistsError):
            os.mkdir(self._usual, 0o700)
        if self._parent and (who := _sits(self._usual)):
            self._move(who)
        seen = os.lstat(self.folder)
        if not stat.S_ISDIR(seen.st_mode):
            raise Refused(f"{visible(self.folder)}: is no directory; remove it")
        if seen.st_uid != os.geteuid():
            raise Refused(f"{visible(self.folder)}: belongs to uid {seen.st_uid}; remove it")
        if self._parent and seen.st_mode & 0o022:
            raise Refused(f"{visible(self.folder)}: others can write there; chmod go-w")

    def _move(self, who: str) -> None:
        """To another name, at random, so that nobody can take that as well. Whoever comes later uses
        the one that was made first."""
        if not self._others():
            fresh = f"{self._usual}.{time.time_ns():020d}-{os.urandom(8).hex()}"
            os.mkdir(fresh, 0o700)
        self._use(self._others()[0])
        self.squatter = f"{visible(self._usual)} belongs to {visible(who)}; {self.folder} is used"

    def _others(self) -> list[str]:
        """Directories of this user's own that were made in place of the usual one, the oldest first."""
        start = os.path.basename(self._usual) + "."
        with os.scandir(self._parent) as found:
            named = [entry.path for entry in found if entry.name.startswith(start)]
        return sorted(path for path in named if not _sits(path))


class Spare:
    """The places for one state, in the order in which they are tried: `beside` it, in its own
    directory, and `elsewhere`. For one thread."""

    def __init__(self, beside: Place | None = None, elsewhere: Sequence[Place] = ()) -> None:
        self._beside, self._elsewhere = beside, list(elsewhere)
        self._places = [beside, *elsewhere] if beside else list(elsewhere)
        self._open: Place | None = None
        self._locked: Place | None = None
        self._ended: Place | None = None
        self._order = 0
        self.refused: list[str] = []
        """Why a place is not used although something is there, for people."""

    @property
    def id(self) -> str:
        """Names the journal that is written just now."""
        return self._open.journal.id if self._open else ""

    @property
    def path(self) -> str:
        """Where writes are kept just now; empty where nowhere."""
        return self._open.journal.path if self._open else ""

    def read(self) -> Kept | None:
        """The newest journal of an earlier outage."""
        self.refused = []
        found = [(place, kept) for place in self._places if (kept := self._read(place))]
        if not found:
            return None
        place, kept = max(found, key=lambda f: (f[1].begin.order, f[1].last.wall))
        self._open = None if kept.begin.shadow else place
        self._order = kept.begin.order
        return kept

    def begin(self, begin: Begin) -> bool:
        """Go on in a new journal, in the first place that takes it: where the last one is, which
        holds all there is, only if no other does."""
        self._order += 1
        places = sorted(self._places, key=lambda place: place is self._ended)
        self._open = self._first_that_takes(places, replace(begin, order=self._order))
        return self._open is not None

    def shadow(self, begin: Begin) -> None:
        """Leave this elsewhere, in one place."""
        self._first_that_takes(self._elsewhere, begin)

    def leave(self) -> None:
        """Write no further into the journal that was read."""
        self._open = None

    def _first_that_takes(self, places: Sequence[Place], begin: Begin) -> Place | None:
        record = _first(begin)
        for place in places:
            try:
                self._require(place)
                place.do(lambda place=place: place.journal.begin(record))  # type: ignore[misc]
            except OSError:
                continue
            except Refused as error:
                self._refuse(str(error))
                continue
            return place
        return None

    def keep(self, write: Write) -> bool:
        """Whether it was written; after a False only `begin` helps."""
        return self._append(write.encoded())

    def note(self, token: int) -> bool:
        """The state is led under this number from now on, and takes what is kept here; as `keep`."""
        return self._append(Write(method="lead", token=token).encoded())

    def clear(self) -> None:
        """The state has it all."""
        for place in self._places:
            with suppress(OSError):
                place.do(place.journal.remove)
        self._open, self._ended, self._order = None, None, 0
        if self._beside is not None:
            with suppress(OSError):
                self._beside.do(self._beside.journal.reserve)

    def lock(self, lease: Lease) -> None:
        """Lead where the lock of the state cannot be had. Raises StoreBusy where another does, and
        StoreError where there is no place for a lock."""
        for place in self._elsewhere:
            try:
                self._require(place)
                if not place.do(lambda place=place: place.lock.take(lease)):  # type: ignore[misc]
                    raise StoreBusy(f"another sentinel leads: {place.lock.lease()}")
            except StoreBusy:
                raise
            except (OSError, StoreError) as error:
                if isinstance(error, Refused):
                    self._refuse(str(error))
                continue
            self._locked = place
            return
        raise StoreError("there is no second place for what cannot be written; set spare_state:")

    def unlock(self) -> None:
        """Harmless where it is not locked."""
        if self._locked is not None:
            with suppress(OSError):
                os.unlink(self._locked.journal.path + ".lock")
            self._locked.lock.drop()
            self._locked = None

    def _append(self, record: str) -> bool:
        place = self._open
        if place is None:
            return False
        try:
            place.do(lambda: place.journal.append(record.encode()))
        except (OSError, Refused):
            self._open, self._ended = None, place
            return False
        return True

    def _read(self, place: Place) -> Kept | None:
        try:
            place.do(place.settle)
            records = place.do(lambda: self._records(place))
            return _understood(place.journal.id, records) if records else None
        except (Refused, Unreadable) as error:
            if not place.shared:  # what others plant is named when it is in the way, and not before
                self._refuse(f"{visible(place.journal.path)}: not read: {error}")
        except OSError:
            pass
        return None

    def _records(self, place: Place) -> list[bytes]:
        """Of an ordinary pass there are none; then there is room for some, if there is any."""
        records = place.journal.read()
        if not records and place is self._beside:
            place.journal.reserve()
        return records

    def _require(self, place: Place) -> None:
        place.do(place.require)
        if place.squatter:
            self._refuse(place.squatter)

    def _refuse(self, why: str) -> None:
        if why not in self.refused:
            self.refused.append(why)


def places(identity: str, spare: str = "", *, beside: Patience | None, patience: float) -> Spare:
    """Those of the state of that name: its directory (`beside`: who asks there), or its server's
    address. `spare`: the directory of `spare_state:`."""
    name = "journal-" + blake2b(identity.encode(), digest_size=6).hexdigest()
    elsewhere = (
        [Place(spare, name, shared=False, patience=Patience(patience, "journal"))] if spare else []
    )
    elsewhere += volatile_places(name)
    own = Place(identity, "journal", shared=False, patience=beside) if beside else None
    return Spare(own, elsewhere)


def volatile_places(name: str) -> list[Place]:
    """Those of this host that need no configuration."""
    return [Place(folder, name, shared=True) for folder in _volatile()]


def said_lately(what: str, now: float) -> bool:
    """Whether the same was asked within the last hour (`now`: seconds UTC), by any process of this
    user on this host. False too where nothing can be kept."""
    name = "said-" + blake2b(what.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    for place in volatile_places(name):
        with suppress(OSError, ValueError, Refused):
            place.require()
            last = place.journal.read()
            if last and 0 <= now - float(last[-1]) < AGAIN:
                return True
            place.journal.begin(str(now).encode())
            return False
    return False


def _first(begin: Begin) -> bytes:
    record = encode(begin)
    if len(record) > SIZE // 2:  # what checks remember is learnt again, alerts are not
        record = encode(replace(begin, snapshot=replace(begin.snapshot, memory={})))
    return record.encode()


def _understood(name: str, records: list[bytes]) -> Kept:
    begin = decode(records[0].decode(), Begin)
    writes = tuple(decode(record.decode(), Write) for record in records[1:])
    tokens = [begin.token, *(w.token for w in writes if w.method == "lead")]
    return Kept(name, begin, writes, tokens[-1])


def _volatile() -> Iterator[str]:
    """Directories of this host that are not on its disk, or on another part of it."""
    if own := os.environ.get("XDG_RUNTIME_DIR", ""):
        yield own
    if os.geteuid() == 0:
        yield "/run"
    yield from ("/dev/shm", "/tmp")  # noqa: S108


def _sits(folder: str) -> str:
    """Who has taken that name; empty where it is free, or a directory of this user's own."""
    try:
        seen = os.lstat(folder)
    except FileNotFoundError:
        return ""
    if seen.st_uid == os.geteuid():
        return "" if stat.S_ISDIR(seen.st_mode) else f"{user_name(seen.st_uid)} and is no directory"
    return user_name(seen.st_uid)


def _private(folder: str) -> bool:
    """Whether it ends with the service: PrivateTmp= of systemd.exec(5)."""
    with suppress(OSError, ValueError):
        mount = holding(folder)
        return mount is not None and "systemd-private-" in mount.root
    return True
