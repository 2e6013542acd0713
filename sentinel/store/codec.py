"""Values to stored text and back: every column is a number, a digest or JSON.

So no text of a user ever meets a database's own idea of text (NUL, lone surrogates,
index rows of at most 2704 bytes in PostgreSQL).
"""

import hashlib
import json
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from sentinel.store.errors import Unstorable

Kind = TypeVar("Kind")


class Unreadable(ValueError):
    """Stored text is not what was stored."""


def encode(value: object) -> str:
    """JSON; raises Unstorable. Tuples and sets come back as lists, NaN as None.

    A noun with a field of another type than it says is refused here: one row that cannot be read
    is met at the next start, and then costs the whole state.
    """
    try:
        text = _encoded(value)
        if isinstance(value, Struct):
            decode(text, type(value))
        return text
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unstorable(f"a {type(value).__name__} cannot be stored: {error}") from error


def _encoded(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # lone surrogates: only escapes can carry them
        return json.dumps(msgspec.to_builtins(value))


def decode(text: str, kind: type[Kind]) -> Kind:
    """The value that was encoded; raises Unreadable where it is not of that kind."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError:
        return _decoded_escapes(text, kind)


def _decoded_escapes(text: str, kind: type[Kind]) -> Kind:
    try:
        value: Any = json.loads(text)
        return msgspec.convert(value, kind)
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        raise Unreadable(f"a stored {kind.__name__} is unreadable: {error}") from error


def digest(*parts: str) -> str:
    """A fixed-length name for texts of any length and content, to find rows by."""
    return hashlib.blake2b(_encoded(parts).encode(), digest_size=16).hexdigest()
