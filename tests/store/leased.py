"""A state that is led by a lease, by a clock that moves when told."""

from pathlib import Path

from sentinel.core.clock import SECOND
from sentinel.store.database import Connection, Statement
from sentinel.store.lease import Lease
from sentinel.store.sqlite import SqliteBackend
from tests.store.ticking import Ticking

TERM = 10.0
EXPIRES = Statement("SELECT expires FROM leader")


class LeasedBackend(SqliteBackend):
    """A state with a lease; its lock ends with its session. `slow`: seconds that the database
    needs for each lease."""

    term = TERM
    needs_session = True

    def __init__(self, directory: Path, clock: Ticking) -> None:
        super().__init__(str(directory))
        self.clock, self.slow = clock, 0.0
        self.locked: list[str] = []
        self.is_free = True
        self.ended = self.dropped = 0

    def get_lease_expiry(self, connection: Connection) -> tuple[int, bool]:
        self.clock.advance(self.slow)
        now, stored = int(self.clock() * SECOND), connection.fetch_one(EXPIRES)[0]
        return now + int(TERM * SECOND), stored <= now

    def take_lock(self, connection: Connection | None, lease: Lease) -> bool:
        assert connection is not None
        self.locked += [lease.holder] if self.is_free else []
        return self.is_free

    def drop_lock(self) -> None:
        self.dropped += 1

    def end_expired_leader(self, connection: Connection) -> None:
        self.ended += 1

    def find_holder(self, connection: Connection | None, stored: Lease) -> Lease:
        return stored
