"""What a database driver raises, as one of our errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from sqlite3 import Error as SqliteError

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    NoResultFound,
    ProgrammingError,
)

from sentinel.core.errors import StoreError
from sentinel.core.text import visible
from sentinel.store.errors import Damaged, Unavailable, Unstorable
from sentinel.store.rows import Unreadable

# sqlite3_errstr() of SQLITE_CORRUPT and SQLITE_NOTADB, and what half a schema looks like.
_SQLITE_DAMAGE = (
    "malformed",
    "not a database",
    "no such table",
    "no such column",
    "Could not decode",
)
# https://www.postgresql.org/docs/current/errcodes-appendix.html; what is corrupt inside the
# server is its administrator's to mend: Unavailable until then.
_UNDEFINED_TABLE, _INSUFFICIENT_PRIVILEGE = "42P01", "42501"


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Errors of drivers leave as StoreError, with the place and the driver's first line."""
    try:
        yield
    except (DBAPIError, SqliteError) as error:
        raise translate(error, place) from error
    except Unreadable as error:
        raise Damaged(f"{place}: damaged: {error}") from error
    except NoResultFound as error:
        raise Damaged(f"{place}: damaged: a row that is always there is missing") from error
    except (OverflowError, UnicodeEncodeError) as error:
        raise Unstorable(f"{place}: {error}") from error
    except OSError as error:
        raise Unavailable(f"{place}: {error.strerror or error}") from error


def translate(error: Exception, place: str) -> StoreError:
    """The kind follows from what a person or sentinel would do about it."""
    cause = getattr(error, "orig", None) or error
    told = visible(str(cause).strip().split("\n")[0]) or type(cause).__name__
    state = getattr(cause, "sqlstate", None)
    if state == _UNDEFINED_TABLE or (state is None and any(w in told for w in _SQLITE_DAMAGE)):
        return Damaged(f"{place}: damaged: {told}")
    refused = isinstance(error, DataError | IntegrityError | ProgrammingError)
    if refused and state != _INSUFFICIENT_PRIVILEGE:
        return Unstorable(f"{place}: {told}")
    return Unavailable(f"{place}: {told}")
