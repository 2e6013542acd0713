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


class LeafShape(Struct, frozen=True):
    """A single value of this type."""

    type: Any  # The type.


class RecordShape(Struct, frozen=True):
    """A mapping with the known keys of a settings class."""

    cls: Any  # The class.


class ListShape(Struct, frozen=True):
    """Any number of `item`, put together by `build`."""

    item: Any
    build: Any


class TableShape(Struct, frozen=True):
    """A mapping from any names to `value`."""

    value: Any


class UnionShape(Struct, frozen=True):
    """Whatever fits one of the types; the order of the hint decides."""

    types: tuple[Any, ...]  # The types, in the order of the hint.


TypeShape = LeafShape | RecordShape | ListShape | TableShape | UnionShape


def type_shape(hint: Any) -> TypeShape:
    """What the hint asks for; constraints of Annotated are left to `hint_constraints`."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return type_shape(args[0])
    if origin in (Union, UnionType):
        return UnionShape(args)
    if (origin or hint) in _LISTS:
        return ListShape(args[0] if args else Any, _LISTS[origin or hint])
    if (origin or hint) in _TABLES:
        return TableShape(args[1] if args else Any)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return RecordShape(hint)
    return LeafShape(hint if origin is None or origin is Literal else origin)


def possible_shapes(hint: Any) -> list[TypeShape]:
    """The shapes a value may have; one, unless the hint is a union."""
    found = type_shape(hint)
    return [type_shape(t) for t in found.types] if isinstance(found, UnionShape) else [found]


def is_list(hint: Any) -> bool:
    """Whether the type accepts a list."""
    return any(isinstance(found, ListShape) for found in possible_shapes(hint))


def list_keys(cls: Any) -> list[str]:
    """The keys of a settings class that take lists."""
    return [key for key, info in settings_fields(cls).items() if is_list(info.type)]


def list_item_type(hint: Any) -> Any:
    """What the items of such a list are; the hint itself where there is no list."""
    return next((f.item for f in possible_shapes(hint) if isinstance(f, ListShape)), hint)


def hint_constraints(hint: Any) -> tuple[Meta, ...]:
    """The msgspec.Meta of an Annotated hint."""
    return tuple(m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Meta))


@lru_cache(maxsize=256)
def settings_fields(cls: Any) -> dict[str, FieldInfo]:
    """The keys of a settings class as users write them."""
    return {info.encode_name: info for info in msgspec.structs.fields(cls)}


def is_required(info: FieldInfo) -> bool:
    """Whether the key must be given."""
    return info.default is NODEFAULT and info.default_factory is NODEFAULT


def field_default(info: FieldInfo) -> Any:
    """The value if the key is missing. None if the key is required."""
    if info.default is not NODEFAULT:
        return info.default
    return None if info.default_factory is NODEFAULT else info.default_factory()


def allowed_words(hint: Any) -> tuple[str, ...]:
    """The texts that a Literal or an Enum allows, those of its alternatives included."""
    found = type_shape(hint)
    if isinstance(found, UnionShape):
        return tuple(word for t in found.types for word in allowed_words(t))
    if not isinstance(found, LeafShape):
        return ()
    if get_origin(found.type) is Literal:
        return tuple(str(a) for a in get_args(found.type))
    if isinstance(found.type, type) and issubclass(found.type, Enum):
        return tuple(str(member.value) for member in found.type)
    return ()


def is_text(hint: Any) -> bool:
    """Whether the type accepts a reference to a text that is stored elsewhere."""
    found = type_shape(hint)
    return isinstance(found, LeafShape) and found.type in (str, Secret, FilePath)


def may_be_secret(hint: Any) -> bool:
    """Whether a wrong value here may be a secret."""
    found = type_shape(hint)
    inner = {ListShape: "item", TableShape: "value"}.get(type(found))
    if isinstance(found, UnionShape):
        return any(map(may_be_secret, found.types))
    return may_be_secret(getattr(found, inner)) if inner else found == LeafShape(Secret)
