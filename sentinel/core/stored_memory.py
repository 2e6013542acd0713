"""What was remembered in the state, as the type that it was: by this version or by another."""

from collections.abc import Mapping
from typing import TypeVar

from msgspec import ValidationError, convert

Kind = TypeVar("Kind")


def decode_memory(stored: object, kind: type[Kind]) -> Kind | None:
    """None where nothing is stored, or what is damaged or of another version: begin anew."""
    try:
        return convert(dict(stored) if isinstance(stored, Mapping) else stored, kind)
    except ValidationError:
        return None
