"""Decodes values as structs, in any thread.

msgspec describes a struct when a value is first decoded as one. Two threads that do this at once
read a half-made description, and the process dies (SIGSEGV). So one thread at a time does it."""

from _thread import allocate_lock
from typing import Any, TypeVar

import msgspec

Kind = TypeVar("Kind")

_LOCK = allocate_lock()
_described: set[object] = set()


def convert_value(value: Any, kind: type[Kind]) -> Kind:
    """The value as that type. Raises msgspec.ValidationError."""
    _describe_type(kind)
    return msgspec.convert(value, kind)


def decode_json(text: str | bytes, kind: type[Kind]) -> Kind:
    """The JSON text as that type. Raises msgspec.DecodeError."""
    _describe_type(kind)
    return msgspec.json.decode(text, type=kind)


def decode_msgpack(data: bytes, kind: type[Kind]) -> Kind:
    """The MessagePack data as that type. Raises msgspec.DecodeError."""
    _describe_type(kind)
    return msgspec.msgpack.decode(data, type=kind)


def _describe_type(kind: object) -> None:
    """Let msgspec describe the type and all structs in it."""
    if kind not in _described:
        with _LOCK:
            msgspec.msgpack.Decoder(kind)
            _described.add(kind)
