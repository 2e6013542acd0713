"""The ledger of GPUs in SQLite or PostgreSQL, for services and commands alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpu_ledger import Entry, GpuEvent, Mark, Move, Sighting, Standing, Stay
from sentinel.core.lemon_policy import USUAL_POLICY, LemonPolicy
from sentinel.gpu import ledger_update
from sentinel.store import statements
from sentinel.store.backend import Backend
from sentinel.store.database import KEY_NAMES, Connection, Statement, Values
from sentinel.store.retention import USUAL, Keep
from sentinel.store.rows import decode, digest, encode
from sentinel.store.session import Session

MANY = len(KEY_NAMES)
"""Keys in one question; beyond ten such questions the whole table is read once."""
_ANY: Values = {}


class SqlGpus:
    """core.gpus.Gpus. It opens at its first use; safe to use from several threads."""

    def __init__(
        self, backend: Backend, policy: LemonPolicy = USUAL_POLICY, keep: Keep = USUAL
    ) -> None:
        self.policy = policy
        self._session = Session(backend)
        self._keep = keep

    def close(self) -> None:
        self._session.close()

    # Writing

    def see(self, sightings: Sequence[Sighting], now: Instant) -> Sequence[Move]:
        latest = {s.uuid: s for s in sightings}
        with self._alone() as connection:
            known = _entries(connection, latest)
            new = [s for uuid, s in latest.items() if uuid not in known]
            there = [known[uuid] for uuid, s in latest.items() if uuid in known and _same(known, s)]
            self._begin(connection, new, now)
            connection.run_many(statements.NOTE_GPU_SEEN, _seen(there, now))
            moves = []
            for uuid, sighting in latest.items():
                if uuid in known and not _same(known, sighting):
                    moves += self._place(connection, known[uuid], sighting, now)
            return moves

    def record(self, events: Sequence[GpuEvent]) -> Sequence[GpuEvent]:
        with self._alone() as connection:
            return _record(connection, events, self.policy)

    def mark(self, subject: str, mark: Mark, reason: str, by: str, now: Instant) -> None:
        with self._alone() as connection:
            entry = _entries(connection, [subject]).get(subject)
            if entry is None:
                entry = Entry(subject=subject, first=now, seen=now)
                connection.run(statements.ADD_GPU, _row(entry))
            event = ledger_update.marking(entry, mark, reason, by, now)
            connection.run(statements.ADD_EVENT, _event(event))
            _change(connection, [ledger_update.marked(entry, mark, reason, by, now)])

    def forget(
        self, subject: str, kinds: Collection[str], since: int, reason: str, by: str, now: Instant
    ) -> int:
        with self._alone() as connection:
            entry = _entries(connection, [subject]).get(subject)
            if entry is None:
                return 0
            about = {"gpu": digest(subject)}
            found = connection.column(statements.EVENTS_OF, about)
            events = [decode(body, GpuEvent) for body in found]
            wrong = ledger_update.mistaken(events, kinds, since)
            names = [{"id": digest(event.id)} for event in wrong]
            connection.run_many(statements.FORGET_EVENT, names)
            left = [event for event in events if event not in wrong]
            stays = connection.column(statements.STAYS_OF, about)
            if wrong and ledger_update.is_unfounded(entry, left, stays):
                connection.run(statements.FORGET_GPU, {"key": digest(subject)})
            elif wrong:
                notes = ledger_update.forgetting(entry, wrong, reason, by, now)
                connection.run_many(statements.ADD_EVENT, [_event(note) for note in notes])
                _recount(connection, [entry], self.policy)
            return len(wrong)

    def prune(self, now: Instant) -> None:
        with self._alone() as connection:
            before = {"before": now.wall - self._keep.actions * SECOND}
            connection.run(statements.FORGET_EVENTS, before)
            connection.run(statements.FORGET_STAYS, before)

    # Reading

    def entry(self, subject: str) -> Entry | None:
        with self._session.reading() as connection:
            return _entries(connection, [subject]).get(subject)

    def entries(self, node: str = "") -> Sequence[Entry]:
        with self._session.reading() as connection:
            if not node:
                return _read(connection, statements.GPUS)
            return _read(connection, statements.GPUS_OF_NODE, {"node": digest(node)})

    def events(self, subject: str, limit: int = 1000) -> Sequence[GpuEvent]:
        wanted = {"gpu": digest(subject), "limit": limit}
        with self._session.reading() as connection:
            found = connection.column(statements.NEWEST_EVENTS_OF, wanted)
            return [decode(body, GpuEvent) for body in found]

    def stays(self, uuid: str) -> Sequence[Stay]:
        with self._session.reading() as connection:
            found = connection.column(statements.STAYS_OF, {"gpu": digest(uuid)})
            stays = [decode(body, Stay) for body in found]
            entry = _entries(connection, [uuid]).get(uuid)
            if stays and entry:
                stays[-1] = replace(stays[-1], ended=entry.seen)
            return stays

    def standings(self, now: Instant) -> Mapping[str, Standing]:
        recipe = {"recipe": digest(self.policy.recipe)}
        telling, outdated = statements.GPUS_WITH_SCORE_OR_MARK, statements.GPUS_OF_OTHER_RECIPE
        with self._session.reading() as connection:
            stale = connection.first(statements.ANY_GPU_OF_OTHER_RECIPE, recipe) is not None
            found = [] if stale else _read(connection, telling)
        if stale:
            with self._alone() as connection:
                _recount(connection, _read(connection, outdated, recipe), self.policy)
                found = _read(connection, telling)
        return {entry.subject: ledger_update.standing(entry, now, self.policy) for entry in found}

    # Places

    def _begin(self, connection: Connection, new: Sequence[Sighting], now: Instant) -> None:
        rows = [_row(ledger_update.first_seen(sighting, now)) for sighting in new]
        connection.run_many(statements.ADD_GPU, rows)
        connection.run_many(statements.ADD_STAY, [_stay(sighting, now) for sighting in new])

    def _place(
        self, connection: Connection, entry: Entry, sighting: Sighting, now: Instant
    ) -> list[Move]:
        """One that is elsewhere, or of which more is known now."""
        _change(connection, [ledger_update.placed(entry, sighting, now)])
        last = connection.first(statements.LAST_STAY, {"gpu": digest(entry.subject)})
        if last is None:
            connection.run(statements.ADD_STAY, _stay(sighting, now))
        if not ledger_update.has_moved(entry, sighting):
            return []
        began = entry.first
        if last is not None:
            seq, body = last
            stay = decode(body, Stay)
            began = stay.began
            ended = encode(replace(stay, ended=entry.seen))
            connection.run(statements.END_STAY, {"seq": seq, "body": ended})
            connection.run(statements.ADD_STAY, _stay(sighting, now))
        return [ledger_update.move(entry, sighting, began, now, self.policy)]

    @contextmanager
    def _alone(self) -> Iterator[Connection]:
        """A writing transaction that no other one overlaps, from its first read on."""
        with self._session.writing() as connection:
            if connection.dialect == "postgresql":
                connection.run(statements.LOCK_GPUS)
            yield connection


def _record(
    connection: Connection, events: Sequence[GpuEvent], policy: LemonPolicy
) -> list[GpuEvent]:
    named: dict[str, GpuEvent] = {}
    for event in events:
        named.setdefault(digest(event.id), event)
    names, old = list(named), set[str]()
    for keys in _key_sets(names):
        old |= set(connection.column(statements.KNOWN_EVENTS, keys))
    fresh = [event for name, event in named.items() if name not in old]
    connection.run_many(statements.ADD_EVENT, [_event(event) for event in fresh])
    heard = {event.subject: event for event in fresh}
    known = _entries(connection, heard)
    new = [ledger_update.first_heard(event) for name, event in heard.items() if name not in known]
    connection.run_many(statements.ADD_GPU, [_row(entry) for entry in new])
    _recount(connection, [*known.values(), *new], policy)
    return fresh


def _recount(connection: Connection, entries: Iterable[Entry], policy: LemonPolicy) -> None:
    changed = []
    for entry in entries:
        found = connection.column(statements.EVENTS_OF, {"gpu": digest(entry.subject)})
        events = [decode(body, GpuEvent) for body in found]
        changed.append(ledger_update.counted(entry, events, policy))
    _change(connection, changed)


def _change(connection: Connection, entries: Sequence[Entry]) -> None:
    connection.run_many(statements.CHANGE_GPU, [_row(entry) for entry in entries])


def _key_sets(keys: Sequence[str]) -> Iterator[Values]:
    """As many as one question has names for; the last is repeated where there are fewer."""
    for start in range(0, len(keys), MANY):
        some = keys[start : start + MANY]
        padded = [*some, *[some[-1]] * (MANY - len(some))]
        yield dict(zip(KEY_NAMES, padded, strict=True))


def _entries(connection: Connection, subjects: Iterable[str]) -> dict[str, Entry]:
    keys = [digest(subject) for subject in subjects]
    if len(keys) > 10 * MANY:
        wanted = set(keys)
        rows = connection.rows(statements.GPUS)
        found = [_entry(seen, body) for key, seen, body in rows if key in wanted]
    else:
        found = []
        for names in _key_sets(keys):
            found += _read(connection, statements.GPUS_BY_KEY, names)
    return {entry.subject: entry for entry in found}


def _read(connection: Connection, statement: Statement, wanted: Values = _ANY) -> list[Entry]:
    return [_entry(seen, body) for _, seen, body in connection.rows(statement, wanted)]


def _entry(seen: int, body: str) -> Entry:
    """The body's own `seen` is of its last change; a later pass moved only the column."""
    entry = decode(body, Entry)
    return entry if seen == entry.seen.wall else replace(entry, seen=Instant(wall=seen))


def _same(known: Mapping[str, Entry], sighting: Sighting) -> bool:
    return ledger_update.settled(known[sighting.uuid], sighting)


def _seen(entries: Iterable[Entry], now: Instant) -> list[Values]:
    return [{"key": digest(entry.subject), "at": now.wall} for entry in entries]


def _row(entry: Entry) -> Values:
    return {
        "key": digest(entry.subject),
        "node": digest(entry.node),
        "seen": entry.seen.wall,
        "heat": entry.heat,
        "recipe": digest(entry.recipe) if entry.recipe else "",
        "marked": int(bool(entry.mark)),
        "body": encode(entry),
    }


def _stay(sighting: Sighting, now: Instant) -> Values:
    stay = Stay(node=sighting.node, slot=sighting.slot, began=now, ended=now)
    return {"gpu": digest(sighting.uuid), "at": now.wall, "body": encode(stay)}


def _event(event: GpuEvent) -> Values:
    return {
        "id": digest(event.id),
        "gpu": digest(event.subject),
        "at": event.at.wall,
        "body": encode(event),
    }
