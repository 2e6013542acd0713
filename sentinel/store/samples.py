"""Stores the history of numbers."""

from itertools import groupby

from sentinel.core.clock import Instant
from sentinel.store import statements
from sentinel.store.database import Connection
from sentinel.store.retention import HOUR_US
from sentinel.store.rows import Series, digest_parts, encode_stored
from sentinel.store.unreadable import decode_readable

_MAX_ROW_ID = 1 << 62  # larger than every row id
MAX_THINNED_SPAN_US = 48 * HOUR_US
"""Span of samples that one pass thins at most, in µs: one pass a day keeps up, and no transaction
is long."""
MAX_UNSORTED_SPAN_US = 24 * HOUR_US
"""Age of a sample, in µs, at which all recent ones are moved. Sorted samples of a series have pages
of their own, so fewer pages are written if many samples of a series are moved at once."""
MAX_UNSORTED_ROWS = 2_000_000
"""Number of recent samples above which they are moved earlier. Moving them takes a few seconds."""
PASS_SPAN = 1 << 32  # the row ids of recent samples that one pass uses; ids of series are smaller
MAX_MOVED_ROWS = 100_000  # how many samples are sorted in memory at once


class SampleHistory:
    """Reads and writes samples within the caller's transaction, and remembers the ids of series.

    Recent samples are stored in order of time, older ones in order of series. So a pass writes
    few pages, and whoever reads one series reads few pages."""

    def __init__(self) -> None:
        self._ids: dict[Series, int] = {}

    def forget_series_ids(self) -> None:
        """Forget the known ids, after a transaction that failed or removed series."""
        self._ids.clear()

    def write_values(
        self, connection: Connection, at: Instant, values: dict[Series, float]
    ) -> None:
        """Write one value per series at that moment; a value for the same moment is replaced."""
        if not values:
            return
        self._learn_series_ids(connection, [s for s in values if s not in self._ids])
        newest = connection.fetch_value(statements.NEWEST_PLACE) or 0
        base = (newest // PASS_SPAN + 1) * PASS_SPAN
        body = encode_stored(at)
        taken = {"base": base, "key": digest_parts(body), "at": at.wall, "body": body}
        checks = {check for check, _, _ in values}
        passes = [{"source": digest_parts(check), **taken} for check in checks]
        connection.run_many(statements.ADD_PASS, passes)
        rows = [{"place": base + self._ids[s], "value": value} for s, value in values.items()]
        connection.run_many(statements.ADD_RECENT_SAMPLE, rows)

    def read_series(
        self, connection: Connection, which: Series, since: int
    ) -> list[tuple[Instant, float]]:
        """Samples of a series since `since` (µs UTC), in the order of commits, which a clock that
        jumps does not change. If a moment has several values, the last counts."""
        found = connection.fetch_value(statements.SERIES_ID, {"key": digest_parts(*which)})
        if not found:
            return []
        wanted = {"series": found, "since": since}
        rows = dict(connection.fetch_rows(statements.SAMPLES_OF, wanted))
        recent = {"source": digest_parts(which[0]), **wanted}
        rows.update(connection.fetch_rows(statements.RECENT_SAMPLES_OF, recent))
        return [
            (at, value) for body, value in rows.items() for at in decode_readable([body], Instant)
        ]

    def sort_samples(self, connection: Connection, now: int, before: int) -> None:
        """Move all recent samples into the order of series, if one is older than a day, was taken
        before `before` or after `now` (µs UTC), or there are many."""
        oldest, newest, rows = connection.fetch_one(statements.RECENT_EXTENT)
        first = max(before, now - MAX_UNSORTED_SPAN_US)
        if not rows or (first <= oldest and newest <= now and rows <= MAX_UNSORTED_ROWS):
            return
        connection.run(statements.ADD_RECENT_MOMENTS)
        highest = int(connection.fetch_value(statements.SERIES_COUNT) or 0)
        step = max(1, highest * MAX_MOVED_ROWS // rows)
        for low in range(1, highest + 1, step):
            span = {"first": low, "last": low + step - 1}
            connection.run(statements.MOVE_RECENT_SAMPLES, span)
        connection.run(statements.EMPTY_RECENT_SAMPLES)
        connection.run(statements.EMPTY_RECENT_PASSES)

    def prune_samples(self, connection: Connection, before: int) -> None:
        """Forget samples that were taken before `before` (µs UTC), and series without any sample
        left."""
        first = connection.fetch_value(statements.FIRST_MOMENT_KEPT, {"since": before})
        limit = {"moment": _MAX_ROW_ID if first is None else first}
        connection.run(statements.FORGET_SAMPLES, limit)
        connection.run(statements.FORGET_MOMENTS, limit)
        if (
            connection.fetch_value(statements.NEWEST_PLACE) is None
        ):  # otherwise some series would have only recent samples
            connection.run(statements.FORGET_SERIES)
        self.forget_series_ids()

    def thin_samples(self, connection: Connection, before: int) -> None:
        """Keep only the last sample of each series and hour (UTC), among samples that were taken
        before `before` (µs UTC) and are not thinned yet; at most MAX_THINNED_SPAN_US of them."""
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
