"""The ledger of GPUs in SQLite or PostgreSQL, for services and commands alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpu_ledger import (
    GpuEvent,
    GpuMove,
    GpuSighting,
    GpuStanding,
    LedgerEntry,
    Mark,
    Stay,
)
from sentinel.core.lemon_policy import DEFAULT_POLICY, LemonPolicy
from sentinel.gpu import ledger_update
from sentinel.store import statements
from sentinel.store.backend import Backend
from sentinel.store.database import KEY_NAMES, Connection, Statement, Values
from sentinel.store.retention import DEFAULT_RETENTION, Retention
from sentinel.store.rows import digest_parts, encode_stored
from sentinel.store.session import DatabaseSession
from sentinel.store.unreadable import decode_readable

MAX_KEYS_PER_QUERY = len(KEY_NAMES)
"""Keys in one query. For more than ten such queries the whole table is read once instead."""
_NO_VALUES: Values = {}


class SqlGpuLedger:
    """Implements core.gpu_ledger.GpuLedger. The database is opened at the first use; several
    threads may use it."""

    def __init__(
        self,
        backend: Backend,
        policy: LemonPolicy = DEFAULT_POLICY,
        keep: Retention = DEFAULT_RETENTION,
    ) -> None:
        self.policy = policy
        self._session = DatabaseSession(backend)
        self._keep = keep

    def close(self) -> None:
        self._session.close()

    # Writing

    def record_sightings(self, sightings: Sequence[GpuSighting], now: Instant) -> Sequence[GpuMove]:
        latest = {s.uuid: s for s in sightings}
        with self._lock_gpus_table() as connection:
            known = _find_entries(connection, latest)
            new = [s for uuid, s in latest.items() if uuid not in known]
            there = [
                known[uuid]
                for uuid, s in latest.items()
                if uuid in known and _is_unchanged(known, s)
            ]
            self._add_gpus(connection, new, now)
            connection.run_many(statements.NOTE_GPU_SEEN, _make_seen_rows(there, now))
            moves = []
            for uuid, sighting in latest.items():
                if uuid in known and not _is_unchanged(known, sighting):
                    moves += self._update_place(connection, known[uuid], sighting, now)
            return moves

    def add_events(self, events: Sequence[GpuEvent]) -> Sequence[GpuEvent]:
        with self._lock_gpus_table() as connection:
            return _record_events(connection, events, self.policy)

    def set_mark(self, subject: str, mark: Mark, reason: str, by: str, now: Instant) -> None:
        with self._lock_gpus_table() as connection:
            entry = _find_entries(connection, [subject]).get(subject)
            if entry is None:
                entry = LedgerEntry(subject=subject, first=now, seen=now)
                connection.run(statements.ADD_GPU, _encode_entry(entry))
            event = ledger_update.marking(entry, mark, reason, by, now)
            connection.run(statements.ADD_EVENT, _encode_event(event))
            _write_entries(connection, [ledger_update.marked(entry, mark, reason, by, now)])

    def forget_events(
        self, subject: str, kinds: Collection[str], since: int, reason: str, by: str, now: Instant
    ) -> int:
        with self._lock_gpus_table() as connection:
            entry = _find_entries(connection, [subject]).get(subject)
            if entry is None:
                return 0
            about = {"gpu": digest_parts(subject)}
            found = connection.fetch_column(statements.EVENTS_OF, about)
            events = decode_readable(found, GpuEvent)
            wrong = ledger_update.mistaken(events, kinds, since)
            names = [{"id": digest_parts(event.id)} for event in wrong]
            connection.run_many(statements.FORGET_EVENT, names)
            left = [event for event in events if event not in wrong]
            stays = connection.fetch_column(statements.STAYS_OF, about)
            if wrong and ledger_update.is_unfounded(entry, left, stays):
                connection.run(statements.FORGET_GPU, {"key": digest_parts(subject)})
            elif wrong:
                notes = ledger_update.forgetting(entry, wrong, reason, by, now)
                connection.run_many(statements.ADD_EVENT, [_encode_event(note) for note in notes])
                _recount_scores(connection, [entry], self.policy)
            return len(wrong)

    def prune(self, now: Instant) -> None:
        with self._lock_gpus_table() as connection:
            before = {"before": now.wall - self._keep.actions * SECOND}
            connection.run(statements.FORGET_EVENTS, before)
            connection.run(statements.FORGET_STAYS, before)

    # Reading

    def read_entry(self, subject: str) -> LedgerEntry | None:
        with self._session.read_transaction() as connection:
            return _find_entries(connection, [subject]).get(subject)

    def read_entries(self, node: str = "") -> Sequence[LedgerEntry]:
        with self._session.read_transaction() as connection:
            if not node:
                return _read_entries(connection, statements.GPUS)
            return _read_entries(connection, statements.GPUS_OF_NODE, {"node": digest_parts(node)})

    def read_events(self, subject: str, limit: int = 1000) -> Sequence[GpuEvent]:
        wanted = {"gpu": digest_parts(subject), "limit": limit}
        with self._session.read_transaction() as connection:
            found = connection.fetch_column(statements.NEWEST_EVENTS_OF, wanted)
            return decode_readable(found, GpuEvent)

    def read_stays(self, uuid: str) -> Sequence[Stay]:
        with self._session.read_transaction() as connection:
            found = connection.fetch_column(statements.STAYS_OF, {"gpu": digest_parts(uuid)})
            stays = decode_readable(found, Stay)
            entry = _find_entries(connection, [uuid]).get(uuid)
            if stays and entry:
                stays[-1] = replace(stays[-1], ended=entry.seen)
            return stays

    def read_standings(self, now: Instant) -> Mapping[str, GpuStanding]:
        recipe = {"recipe": digest_parts(self.policy.counting_recipe)}
        telling, outdated = statements.GPUS_WITH_SCORE_OR_MARK, statements.GPUS_OF_OTHER_RECIPE
        with self._session.read_transaction() as connection:
            stale = connection.fetch_first(statements.ANY_GPU_OF_OTHER_RECIPE, recipe) is not None
            found = [] if stale else _read_entries(connection, telling)
        if stale:
            with self._lock_gpus_table() as connection:
                _recount_scores(
                    connection, _read_entries(connection, outdated, recipe), self.policy
                )
                found = _read_entries(connection, telling)
        return {entry.subject: ledger_update.standing(entry, now, self.policy) for entry in found}

    # Places

    def _add_gpus(self, connection: Connection, new: Sequence[GpuSighting], now: Instant) -> None:
        rows = [_encode_entry(ledger_update.first_seen(sighting, now)) for sighting in new]
        connection.run_many(statements.ADD_GPU, rows)
        connection.run_many(statements.ADD_STAY, [_encode_stay(sighting, now) for sighting in new])

    def _update_place(
        self, connection: Connection, entry: LedgerEntry, sighting: GpuSighting, now: Instant
    ) -> list[GpuMove]:
        """Store a GPU that is in another place, or of which more is known now. Returns the move, if
        it moved."""
        _write_entries(connection, [ledger_update.placed(entry, sighting, now)])
        last = connection.fetch_first(statements.LAST_STAY, {"gpu": digest_parts(entry.subject)})
        if last is None:
            connection.run(statements.ADD_STAY, _encode_stay(sighting, now))
        if not ledger_update.has_moved(entry, sighting):
            return []
        began = entry.first
        if last is not None:
            seq, body = last
            for stay in decode_readable([body], Stay):
                began = stay.began
                ended = encode_stored(replace(stay, ended=entry.seen))
                connection.run(statements.END_STAY, {"seq": seq, "body": ended})
            connection.run(statements.ADD_STAY, _encode_stay(sighting, now))
        return [ledger_update.move(entry, sighting, began, now, self.policy)]

    @contextmanager
    def _lock_gpus_table(self) -> Iterator[Connection]:
        """A writing transaction that overlaps with no other, from its first read on."""
        with self._session.write_transaction() as connection:
            if connection.dialect == "postgresql":
                connection.run(statements.LOCK_GPUS)
            yield connection


def _record_events(
    connection: Connection, events: Sequence[GpuEvent], policy: LemonPolicy
) -> list[GpuEvent]:
    named: dict[str, GpuEvent] = {}
    for event in events:
        named.setdefault(digest_parts(event.id), event)
    names, old = list(named), set[str]()
    for keys in _batch_keys(names):
        old |= set(connection.fetch_column(statements.KNOWN_EVENTS, keys))
    fresh = [event for name, event in named.items() if name not in old]
    connection.run_many(statements.ADD_EVENT, [_encode_event(event) for event in fresh])
    heard = {event.subject: event for event in fresh}
    known = _find_entries(connection, heard)
    new = [ledger_update.first_heard(event) for name, event in heard.items() if name not in known]
    connection.run_many(statements.ADD_GPU, [_encode_entry(entry) for entry in new])
    _recount_scores(connection, [*known.values(), *new], policy)
    return fresh


def _recount_scores(
    connection: Connection, entries: Iterable[LedgerEntry], policy: LemonPolicy
) -> None:
    changed = []
    for entry in entries:
        found = connection.fetch_column(statements.EVENTS_OF, {"gpu": digest_parts(entry.subject)})
        events = decode_readable(found, GpuEvent)
        changed.append(ledger_update.counted(entry, events, policy))
    _write_entries(connection, changed)


def _write_entries(connection: Connection, entries: Sequence[LedgerEntry]) -> None:
    connection.run_many(statements.CHANGE_GPU, [_encode_entry(entry) for entry in entries])


def _batch_keys(keys: Sequence[str]) -> Iterator[Values]:
    """The keys in batches of MAX_KEYS_PER_QUERY; the last batch is filled up with its last key."""
    for start in range(0, len(keys), MAX_KEYS_PER_QUERY):
        some = keys[start : start + MAX_KEYS_PER_QUERY]
        padded = [*some, *[some[-1]] * (MAX_KEYS_PER_QUERY - len(some))]
        yield dict(zip(KEY_NAMES, padded, strict=True))


def _find_entries(connection: Connection, subjects: Iterable[str]) -> dict[str, LedgerEntry]:
    keys = [digest_parts(subject) for subject in subjects]
    if len(keys) > 10 * MAX_KEYS_PER_QUERY:
        wanted = set(keys)
        rows = connection.fetch_rows(statements.GPUS)
        found = _decode_entries(row for row in rows if row[0] in wanted)
    else:
        found = []
        for names in _batch_keys(keys):
            found += _read_entries(connection, statements.GPUS_BY_KEY, names)
    return {entry.subject: entry for entry in found}


def _read_entries(
    connection: Connection, statement: Statement, wanted: Values = _NO_VALUES
) -> list[LedgerEntry]:
    return _decode_entries(connection.fetch_rows(statement, wanted))


def _decode_entries(rows: Iterable[tuple[str, int, str]]) -> list[LedgerEntry]:
    """Entries of rows (key, seen, body). The `seen` inside a body is the time of its last change;
    a later pass updates only the column, so the column counts."""
    return [
        entry if seen == entry.seen.wall else replace(entry, seen=Instant(wall=seen))
        for _, seen, body in rows
        for entry in decode_readable([body], LedgerEntry)
    ]


def _is_unchanged(known: Mapping[str, LedgerEntry], sighting: GpuSighting) -> bool:
    return ledger_update.settled(known[sighting.uuid], sighting)


def _make_seen_rows(entries: Iterable[LedgerEntry], now: Instant) -> list[Values]:
    return [{"key": digest_parts(entry.subject), "at": now.wall} for entry in entries]


def _encode_entry(entry: LedgerEntry) -> Values:
    return {
        "key": digest_parts(entry.subject),
        "node": digest_parts(entry.node),
        "seen": entry.seen.wall,
        "heat": entry.heat,
        "recipe": digest_parts(entry.recipe) if entry.recipe else "",
        "marked": int(bool(entry.mark)),
        "body": encode_stored(entry),
    }


def _encode_stay(sighting: GpuSighting, now: Instant) -> Values:
    stay = Stay(node=sighting.node, slot=sighting.slot, began=now, ended=now)
    return {"gpu": digest_parts(sighting.uuid), "at": now.wall, "body": encode_stored(stay)}


def _encode_event(event: GpuEvent) -> Values:
    return {
        "id": digest_parts(event.id),
        "gpu": digest_parts(event.subject),
        "at": event.at.wall,
        "body": encode_stored(event),
    }
