"""The ledger of GPUs in SQLite or PostgreSQL, for services and commands alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace
from sqlalchemy import (
    Connection,
    Delete,
    Update,
    bindparam,
    delete,
    insert,
    or_,
    select,
    text,
    update,
)

from sentinel.core.clock import SECOND, Instant
from sentinel.core.lemon_policy import USUAL_POLICY, LemonPolicy
from sentinel.gpu import ledger_update
from sentinel.gpu.ledger import Entry, GpuEvent, Mark, Move, Sighting, Stay
from sentinel.gpu.lemon_score import Standing
from sentinel.store.backend import Backend
from sentinel.store.retention import USUAL, Keep
from sentinel.store.rows import decode, digest, encode
from sentinel.store.schema import gpu_events, gpu_stays, gpus
from sentinel.store.session import Session

_whole = select(gpus.c.key, gpus.c.seen, gpus.c.body)
everything = _whole.order_by(gpus.c.key)
of_node = _whole.where(gpus.c.node == bindparam("n")).order_by(gpus.c.key)
some = _whole.where(gpus.c.key.in_(bindparam("keys", expanding=True)))
telling = _whole.where(or_(gpus.c.heat > 0, gpus.c.marked == 1))
outdated = _whole.where(gpus.c.recipe.not_in(["", bindparam("r")]))

add_entry = insert(gpus)
still_there: Update = update(gpus).where(gpus.c.key == bindparam("k")).values(seen=bindparam("at"))
change_entry: Update = (
    update(gpus)
    .where(gpus.c.key == bindparam("k"))
    .values(
        {c: bindparam(f"new_{c}") for c in ("node", "seen", "heat", "recipe", "marked", "body")}
    )
)

add_stay = insert(gpu_stays)
stays_of = (
    select(gpu_stays.c.body).where(gpu_stays.c.gpu == bindparam("g")).order_by(gpu_stays.c.seq)
)
last_stay = (
    select(gpu_stays.c.seq, gpu_stays.c.body)
    .where(gpu_stays.c.gpu == bindparam("g"))
    .order_by(gpu_stays.c.seq.desc())
    .limit(1)
)
end_stay: Update = (
    update(gpu_stays).where(gpu_stays.c.seq == bindparam("s")).values(body=bindparam("b"))
)

add_event = insert(gpu_events)
known_events = select(gpu_events.c.id).where(gpu_events.c.id.in_(bindparam("ids", expanding=True)))
all_events_of = (
    select(gpu_events.c.body).where(gpu_events.c.gpu == bindparam("g")).order_by(gpu_events.c.at)
)
newest_events_of = (
    select(gpu_events.c.body)
    .where(gpu_events.c.gpu == bindparam("g"))
    .order_by(gpu_events.c.at.desc(), gpu_events.c.seq.desc())
    .limit(bindparam("n"))
)

forget_event: Delete = delete(gpu_events).where(gpu_events.c.id == bindparam("i"))
forget_entry: Delete = delete(gpus).where(gpus.c.key == bindparam("k"))
forget_events: Delete = delete(gpu_events).where(gpu_events.c.at < bindparam("before"))
_later = gpu_stays.alias("later")
forget_stays: Delete = delete(gpu_stays).where(
    gpu_stays.c.at < bindparam("before"),
    select(_later.c.seq)
    .where(_later.c.gpu == gpu_stays.c.gpu, _later.c.seq > gpu_stays.c.seq)
    .exists(),
)
"""The stay that lasts is kept, however old."""


Row = dict[str, Any]
MANY = 500
"""Keys in one question; beyond ten such questions the whole table is read once."""


class SqlGpus:
    """core.gpus.Gpus. It opens at its first use; safe to use from several threads."""

    def __init__(
        self, backend: Backend, policy: LemonPolicy = USUAL_POLICY, keep: Keep = USUAL
    ) -> None:
        self.policy = policy
        self._session = Session(backend)
        self._dialect, self._keep = backend.dialect, keep

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
            _many(connection, still_there, _seen(there, now))
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
                connection.execute(add_entry, _row(entry))
            event = ledger_update.marking(entry, mark, reason, by, now)
            connection.execute(add_event, _event(event))
            _change(connection, [ledger_update.marked(entry, mark, reason, by, now)])

    def forget(
        self, subject: str, kinds: Collection[str], since: int, reason: str, by: str, now: Instant
    ) -> int:
        with self._alone() as connection:
            entry = _entries(connection, [subject]).get(subject)
            if entry is None:
                return 0
            found = connection.execute(all_events_of, {"g": digest(subject)}).scalars()
            events = [decode(body, GpuEvent) for body in found]
            wrong = ledger_update.mistaken(events, kinds, since)
            _many(connection, forget_event, [{"i": digest(event.id)} for event in wrong])
            left = [event for event in events if event not in wrong]
            stays = connection.execute(stays_of, {"g": digest(subject)}).scalars().all()
            if wrong and ledger_update.is_unfounded(entry, left, stays):
                connection.execute(forget_entry, {"k": digest(subject)})
            elif wrong:
                notes = ledger_update.forgetting(entry, wrong, reason, by, now)
                _many(connection, add_event, [_event(note) for note in notes])
                _recount(connection, [entry], self.policy)
            return len(wrong)

    def prune(self, now: Instant) -> None:
        with self._alone() as connection:
            before = {"before": now.wall - self._keep.actions * SECOND}
            connection.execute(forget_events, before)
            connection.execute(forget_stays, before)

    # Reading

    def entry(self, subject: str) -> Entry | None:
        with self._session.reading() as connection:
            return _entries(connection, [subject]).get(subject)

    def entries(self, node: str = "") -> Sequence[Entry]:
        with self._session.reading() as connection:
            if not node:
                return _read(connection, everything)
            return _read(connection, of_node, {"n": digest(node)})

    def events(self, subject: str, limit: int = 1000) -> Sequence[GpuEvent]:
        wanted = {"g": digest(subject), "n": limit}
        with self._session.reading() as connection:
            found = connection.execute(newest_events_of, wanted).scalars()
            return [decode(body, GpuEvent) for body in found]

    def stays(self, uuid: str) -> Sequence[Stay]:
        with self._session.reading() as connection:
            found = connection.execute(stays_of, {"g": digest(uuid)}).scalars()
            stays = [decode(body, Stay) for body in found]
            entry = _entries(connection, [uuid]).get(uuid)
            if stays and entry:
                stays[-1] = replace(stays[-1], ended=entry.seen)
            return stays

    def standings(self, now: Instant) -> Mapping[str, Standing]:
        recipe = {"r": digest(self.policy.recipe)}
        with self._session.reading() as connection:
            stale = bool(_read(connection, outdated.limit(1), recipe))
            found = [] if stale else _read(connection, telling)
        if stale:
            with self._alone() as connection:
                _recount(connection, _read(connection, outdated, recipe), self.policy)
                found = _read(connection, telling)
        return {entry.subject: ledger_update.standing(entry, now, self.policy) for entry in found}

    # Places

    def _begin(self, connection: Connection, new: Sequence[Sighting], now: Instant) -> None:
        rows = [_row(ledger_update.first_seen(sighting, now)) for sighting in new]
        _many(connection, add_entry, rows)
        _many(connection, add_stay, [_stay(sighting, now) for sighting in new])

    def _place(
        self, connection: Connection, entry: Entry, sighting: Sighting, now: Instant
    ) -> list[Move]:
        """One that is elsewhere, or of which more is known now."""
        _change(connection, [ledger_update.placed(entry, sighting, now)])
        last = connection.execute(last_stay, {"g": digest(entry.subject)}).first()
        if last is None:
            connection.execute(add_stay, _stay(sighting, now))
        if not ledger_update.has_moved(entry, sighting):
            return []
        began = entry.first
        if last is not None:
            stay = decode(last.body, Stay)
            began = stay.began
            ended = encode(replace(stay, ended=entry.seen))
            connection.execute(end_stay, {"s": last.seq, "b": ended})
            connection.execute(add_stay, _stay(sighting, now))
        return [ledger_update.move(entry, sighting, began, now, self.policy)]

    @contextmanager
    def _alone(self) -> Iterator[Connection]:
        """A writing transaction that no other one overlaps, from its first read on."""
        with self._session.writing() as connection:
            if self._dialect == "postgresql":
                connection.execute(text("LOCK TABLE gpus IN SHARE ROW EXCLUSIVE MODE"))
            yield connection


def _record(
    connection: Connection, events: Sequence[GpuEvent], policy: LemonPolicy
) -> list[GpuEvent]:
    named: dict[str, GpuEvent] = {}
    for event in events:
        named.setdefault(digest(event.id), event)
    names, old = list(named), set[str]()
    for start in range(0, len(names), MANY):
        ids = {"ids": names[start : start + MANY]}
        old |= set(connection.execute(known_events, ids).scalars())
    fresh = [event for name, event in named.items() if name not in old]
    _many(connection, add_event, [_event(event) for event in fresh])
    heard = {event.subject: event for event in fresh}
    known = _entries(connection, heard)
    new = [ledger_update.first_heard(event) for name, event in heard.items() if name not in known]
    _many(connection, add_entry, [_row(entry) for entry in new])
    _recount(connection, [*known.values(), *new], policy)
    return fresh


def _recount(connection: Connection, entries: Iterable[Entry], policy: LemonPolicy) -> None:
    changed = []
    for entry in entries:
        found = connection.execute(all_events_of, {"g": digest(entry.subject)})
        events = [decode(body, GpuEvent) for body in found.scalars()]
        changed.append(ledger_update.counted(entry, events, policy))
    _change(connection, changed)


def _change(connection: Connection, entries: Sequence[Entry]) -> None:
    rows = []
    for entry in entries:
        row = {f"new_{name}": value for name, value in _row(entry).items()}
        rows.append({**row, "k": row.pop("new_key")})
    _many(connection, change_entry, rows)


def _many(connection: Connection, statement: Any, rows: Sequence[Row]) -> None:
    if rows:
        connection.execute(statement, rows)


def _entries(connection: Connection, subjects: Iterable[str]) -> dict[str, Entry]:
    keys = [digest(subject) for subject in subjects]
    if len(keys) > 10 * MANY:
        wanted = set(keys)
        rows = connection.execute(everything)
        found = [_entry(row.seen, row.body) for row in rows if row.key in wanted]
    else:
        found = []
        for start in range(0, len(keys), MANY):
            found += _read(connection, some, {"keys": keys[start : start + MANY]})
    return {entry.subject: entry for entry in found}


def _read(connection: Connection, query: Any, wanted: Row | None = None) -> list[Entry]:
    return [_entry(row.seen, row.body) for row in connection.execute(query, wanted or {})]


def _entry(seen: int, body: str) -> Entry:
    """The body's own `seen` is of its last change; a later pass moved only the column."""
    entry = decode(body, Entry)
    return entry if seen == entry.seen.wall else replace(entry, seen=Instant(wall=seen))


def _same(known: Mapping[str, Entry], sighting: Sighting) -> bool:
    return ledger_update.settled(known[sighting.uuid], sighting)


def _seen(entries: Iterable[Entry], now: Instant) -> list[Row]:
    return [{"k": digest(entry.subject), "at": now.wall} for entry in entries]


def _row(entry: Entry) -> Row:
    return {
        "key": digest(entry.subject),
        "node": digest(entry.node),
        "seen": entry.seen.wall,
        "heat": entry.heat,
        "recipe": digest(entry.recipe) if entry.recipe else "",
        "marked": int(bool(entry.mark)),
        "body": encode(entry),
    }


def _stay(sighting: Sighting, now: Instant) -> Row:
    stay = Stay(node=sighting.node, slot=sighting.slot, began=now, ended=now)
    return {"gpu": digest(sighting.uuid), "at": now.wall, "body": encode(stay)}


def _event(event: GpuEvent) -> Row:
    return {
        "id": digest(event.id),
        "gpu": digest(event.subject),
        "at": event.at.wall,
        "body": encode(event),
    }
