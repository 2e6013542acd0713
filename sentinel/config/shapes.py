"""What a type hint asks for: a leaf, a record, a list, a table, or one of several.

The one place that takes type hints apart: converter, command line and JSON Schema all ask here.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import FieldInfo

from sentinel.core.settings import FilePath, Secret

_LISTS: dict[Any, Any] = {
    list: list,
    tuple: tuple,
    Sequence: tuple,
    set: set,
    frozenset: frozenset,
    AbstractSet: frozenset,
}
_TABLES = (dict, Mapping, MutableMapping)


class Leaf(Struct, frozen=True):
    """A single value of this type."""

    type: Any


class Record(Struct, frozen=True):
    """A mapping with the known keys of a settings class."""

    cls: Any


class ListOf(Struct, frozen=True):
    """Any number of `item`, put together by `build`."""

    item: Any
    build: Any


class TableOf(Struct, frozen=True):
    """A mapping from any names to `value`."""

    value: Any


class OneOf(Struct, frozen=True):
    """Whatever fits one of the types; the order of the hint decides."""

    types: tuple[Any, ...]


Shape = Leaf | Record | ListOf | TableOf | OneOf


def shape(hint: Any) -> Shape:
    """What the hint asks for; constraints of Annotated are left to `constraints`."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return shape(args[0])
    if origin in (Union, UnionType):
        return OneOf(args)
    if (origin or hint) in _LISTS:
        return ListOf(args[0] if args else Any, _LISTS[origin or hint])
    if (origin or hint) in _TABLES:
        return TableOf(args[1] if args else Any)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return Record(hint)
    return Leaf(hint if origin is None or origin is Literal else origin)


def alternatives(hint: Any) -> list[Shape]:
    """The shapes a value may have; one, unless the hint is a union."""
    found = shape(hint)
    return [shape(t) for t in found.types] if isinstance(found, OneOf) else [found]


def is_list(hint: Any) -> bool:
    """Whether a list may stand there."""
    return any(isinstance(found, ListOf) for found in alternatives(hint))


def lists(cls: Any) -> list[str]:
    """The keys of a settings class that take lists."""
    return [key for key, info in fields(cls).items() if is_list(info.type)]


def item_of(hint: Any) -> Any:
    """What the items of such a list are; the hint itself where there is no list."""
    return next((f.item for f in alternatives(hint) if isinstance(f, ListOf)), hint)


def constraints(hint: Any) -> tuple[Meta, ...]:
    """The msgspec.Meta of an Annotated hint."""
    return tuple(m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Meta))


@lru_cache(maxsize=256)
def fields(cls: Any) -> dict[str, FieldInfo]:
    """The keys of a settings class as users write them."""
    return {info.encode_name: info for info in msgspec.structs.fields(cls)}


def required(info: FieldInfo) -> bool:
    """Whether the key must be given."""
    return info.default is NODEFAULT and info.default_factory is NODEFAULT


def default(info: FieldInfo) -> Any:
    """The value where the key is not given; None where it must be."""
    if info.default is not NODEFAULT:
        return info.default
    return None if info.default_factory is NODEFAULT else info.default_factory()


def words(hint: Any) -> tuple[str, ...]:
    """The texts that a Literal or an Enum allows, those of its alternatives included."""
    found = shape(hint)
    if isinstance(found, OneOf):
        return tuple(word for t in found.types for word in words(t))
    if not isinstance(found, Leaf):
        return ()
    if get_origin(found.type) is Literal:
        return tuple(str(a) for a in get_args(found.type))
    if isinstance(found.type, type) and issubclass(found.type, Enum):
        return tuple(str(member.value) for member in found.type)
    return ()


def is_text(hint: Any) -> bool:
    """Whether a reference to a text kept elsewhere may stand there."""
    found = shape(hint)
    return isinstance(found, Leaf) and found.type in (str, Secret, FilePath)


def secretive(hint: Any) -> bool:
    """Whether what stands there by mistake may be a secret."""
    found = shape(hint)
    inner = {ListOf: "item", TableOf: "value"}.get(type(found))
    if isinstance(found, OneOf):
        return any(map(secretive, found.types))
    return secretive(getattr(found, inner)) if inner else found == Leaf(Secret)
