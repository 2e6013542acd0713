"""The history of numbers in the state."""

from itertools import groupby

from sentinel.core.clock import Instant
from sentinel.store import statements
from sentinel.store.database import Connection
from sentinel.store.retention import HOUR_US
from sentinel.store.rows import Series, decode_stored, digest_parts, encode_stored

_MAX_ROW_ID = 1 << 62  # above every row id
MAX_THINNED_SPAN_US = 48 * HOUR_US
"""What one pass thins at most: a pass a day catches up, and no transaction is long."""


class SampleHistory:
    """Reads and writes samples within the caller's transaction; remembers ids of series."""

    def __init__(self) -> None:
        self._ids: dict[Series, int] = {}

    def forget_series_ids(self) -> None:
        """After a transaction that failed or removed series."""
        self._ids.clear()

    def write_values(
        self, connection: Connection, at: Instant, values: dict[Series, float]
    ) -> None:
        """One value per series at that moment; the same again replaces it."""
        if not values:
            return
        self._learn_series_ids(connection, [s for s in values if s not in self._ids])
        moment = self._add_moment(connection, at)
        rows = [
            {"series": self._ids[s], "moment": moment, "value": value}
            for s, value in values.items()
        ]
        connection.run_many(statements.PUT_SAMPLE, rows)

    def read_series(
        self, connection: Connection, which: Series, since: int
    ) -> list[tuple[Instant, float]]:
        """In the order of commits, which a wall clock that jumps does not change."""
        found = connection.fetch_value(statements.SERIES_ID, {"key": digest_parts(*which)})
        wanted = {"series": found, "since": since}
        rows = connection.fetch_rows(statements.SAMPLES_OF, wanted) if found else ()
        return [(decode_stored(body, Instant), value) for body, value in rows]

    def prune_samples(self, connection: Connection, before: int) -> None:
        """Forget what was taken before (µs UTC), and series of which nothing is left."""
        first = connection.fetch_value(statements.FIRST_MOMENT_KEPT, {"since": before})
        limit = {"moment": _MAX_ROW_ID if first is None else first}
        connection.run(statements.FORGET_SAMPLES, limit)
        connection.run(statements.FORGET_MOMENTS, limit)
        connection.run(statements.FORGET_SERIES)
        self.forget_series_ids()

    def thin_samples(self, connection: Connection, before: int) -> None:
        """Keep of each series and hour (UTC) only the last sample, of what was taken before (µs
        UTC) and was not thinned yet; at most AT_ONCE of it."""
        done = int(connection.fetch_one(statements.THINNED_UNTIL)[0])
        first = connection.fetch_value(statements.NEXT_MOMENT, {"since": done})
        end = before - before % HOUR_US
        if first is None or first >= end:
            return
        begin = first - first % HOUR_US
        end = min(end, begin + MAX_THINNED_SPAN_US)
        span = {"since": begin, "until": end}
        found = connection.fetch_rows(statements.MOMENTS_BETWEEN, span)
        for _, hour in groupby(found, key=lambda moment: moment[1] // HOUR_US):
            ids = [number for number, _ in hour]
            limits = {"first": ids[0], "last": ids[-1]}
            connection.run(statements.KEEP_LAST_SAMPLES, limits)
            connection.run(statements.FORGET_EMPTY_MOMENTS, limits)
        connection.run(statements.NOTE_THINNED, {"until": end})

    def _learn_series_ids(self, connection: Connection, new: list[Series]) -> None:
        if not new:
            return
        names = {digest_parts(*series): series for series in new}
        rows = [{"key": key, "body": encode_stored(series)} for key, series in names.items()]
        connection.run_many(statements.ADD_SERIES, rows)
        for key, number in connection.fetch_rows(statements.SERIES_IDS):
            if key in names:
                self._ids[names[key]] = number

    def _add_moment(self, connection: Connection, at: Instant) -> int:
        body = encode_stored(at)
        key = digest_parts(body)
        row = {"key": key, "at": at.wall, "body": body}
        connection.run(statements.ADD_MOMENT, row)
        return int(connection.fetch_one(statements.MOMENT_ID, {"key": key})[0])
