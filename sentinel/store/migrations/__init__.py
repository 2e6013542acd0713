"""How a state of an earlier sentinel becomes one of today, by itself, when it is opened.

Step number n leads from version n to n + 1 and is one function in one small file. It is
never changed once released: it must not use store.schema, which moves on.
"""

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, inspect, text

from sentinel.store.errors import TooNew
from sentinel.store.migrations import books, gpus, orders, thinned

Step = Callable[[Connection], None]

STEPS: tuple[Step, ...] = (books.step, orders.step, gpus.step, thinned.step)


def version_of(connection: Connection) -> int:
    """The version of the stored schema; 0 where nothing is stored yet."""
    if not inspect(connection).has_table("schema_version"):
        return 0
    return int(connection.execute(text("SELECT version FROM schema_version")).scalar() or 0)


def newest(steps: Sequence[Step] = STEPS) -> int:
    """The version that this sentinel writes."""
    return len(steps) + 1


def refuse_newer(version: int, place: str, steps: Sequence[Step] = STEPS) -> None:
    """Raises TooNew for a schema that only a later sentinel knows."""
    if version > newest(steps):
        raise TooNew(
            f"{place}: written by a newer sentinel: schema {version}, this one knows "
            f"{newest(steps)}; install that one again or set another state:"
        )


def upgrade(connection: Connection, version: int, steps: Sequence[Step] = STEPS) -> None:
    """From `version` (1 or more) to the newest, within the caller's transaction."""
    for step in steps[version - 1 :]:
        step(connection)
    connection.execute(text("UPDATE schema_version SET version = :v"), {"v": newest(steps)})
