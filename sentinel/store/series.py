"""The history of numbers: series named once, moments told once, values beside them."""

from itertools import groupby

from sqlalchemy import Connection

from sentinel.core.clock import Instant
from sentinel.store import statements
from sentinel.store.retention import HOUR
from sentinel.store.rows import Series, decode, digest, encode
from sentinel.store.statements import Inserts

_ALL = 1 << 62  # above every row id
AT_ONCE = 48 * HOUR
"""What one pass thins at most: a pass a day catches up, and no transaction is long."""


class History:
    """Reads and writes samples within the caller's transaction; remembers ids of series."""

    def __init__(self, inserts: Inserts) -> None:
        self._inserts = inserts
        self._ids: dict[Series, int] = {}

    def forget_ids(self) -> None:
        """After a transaction that failed or removed series."""
        self._ids.clear()

    def write(self, connection: Connection, at: Instant, values: dict[Series, float]) -> None:
        """One value per series at that moment; the same again replaces it."""
        if not values:
            return
        self._learn(connection, [s for s in values if s not in self._ids])
        moment = self._moment(connection, at)
        rows = [
            {"series": self._ids[s], "moment": moment, "value": value}
            for s, value in values.items()
        ]
        connection.execute(self._inserts.samples, rows)

    def read(
        self, connection: Connection, which: Series, since: int
    ) -> list[tuple[Instant, float]]:
        """In the order of commits, which a wall clock that jumps does not change."""
        found = connection.execute(statements.series_id, {"k": digest(*which)}).scalar()
        wanted = {"series": found, "since": since}
        rows = connection.execute(statements.values_of, wanted) if found else ()
        return [(decode(body, Instant), value) for body, value in rows]

    def prune(self, connection: Connection, before: int) -> None:
        """Forget what was taken before (µs UTC), and series of which nothing is left."""
        first = connection.execute(statements.first_kept, {"t": before}).scalar()
        limit = {"m": _ALL if first is None else first}
        connection.execute(statements.forget_samples, limit)
        connection.execute(statements.forget_moments, limit)
        connection.execute(statements.forget_series)
        self.forget_ids()

    def thin(self, connection: Connection, before: int) -> None:
        """Keep of each series and hour (UTC) only the last sample, of what was taken before (µs
        UTC) and was not thinned yet; at most AT_ONCE of it."""
        done = int(connection.execute(statements.thinned).scalar_one())
        first = connection.execute(statements.next_moment, {"t": done}).scalar()
        end = before - before % HOUR
        if first is None or first >= end:
            return
        begin = first - first % HOUR
        end = min(end, begin + AT_ONCE)
        span = {"since": begin, "until": end}
        found = connection.execute(statements.moments_of, span).all()
        for _, hour in groupby(found, key=lambda row: row.at // HOUR):
            ids = [row.id for row in hour]
            limits = {"first": ids[0], "last": ids[-1]}
            connection.execute(statements.keep_last, limits)
            connection.execute(statements.forget_empty, limits)
        connection.execute(statements.thin_until, {"t": end})

    def _learn(self, connection: Connection, new: list[Series]) -> None:
        if not new:
            return
        names = {digest(*series): series for series in new}
        rows = [{"key": key, "body": encode(series)} for key, series in names.items()]
        connection.execute(self._inserts.series, rows)
        for key, number in connection.execute(statements.series_ids):
            if key in names:
                self._ids[names[key]] = number

    def _moment(self, connection: Connection, at: Instant) -> int:
        body = encode(at)
        key = digest(body)
        row = {"key": key, "at": at.wall, "body": body}
        connection.execute(self._inserts.moments, row)
        return int(connection.execute(statements.moment_id, {"k": key}).scalar_one())
