"""Memory of a check, read from the state as its type, whichever version wrote it."""

from collections.abc import Mapping
from typing import TypeVar

from msgspec import ValidationError

from sentinel.core.struct_types import convert_value

Kind = TypeVar("Kind")


def decode_memory(stored: object, kind: type[Kind]) -> Kind | None:
    """The stored memory of a check. None if there is none, or if it is damaged or of another
    version. Then the check begins without a memory. stored_words.py says how an unknown word is
    read."""
    if stored is None:
        return None
    value = dict(stored) if isinstance(stored, Mapping) else stored
    try:
        return convert_value(value, kind)
    except ValidationError:
        return _decode_unknown_words(value, kind)


def _decode_unknown_words(value: object, kind: type[Kind]) -> Kind | None:
    from sentinel.core.stored_words import convert_leniently  # rarely needed, slow to import

    try:
        return convert_leniently(value, kind)
    except (ValidationError, RecursionError):
        return None
