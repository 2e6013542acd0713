"""Reads words in the state that a newer sentinel wrote and this one does not know.

Such a word is read as a known word that is never milder. A value without such a known word cannot
be read. A test covers all stored words, so that a new kind of word is found before any state
contains it.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from sentinel.core.actions import ActionOutcome, ActionRecord
from sentinel.core.holds import HeldKind
from sentinel.core.model import Status
from sentinel.core.struct_types import convert_value

Kind = TypeVar("Kind")

WORDS_BY_ENUM: Mapping[type[Enum], str] = {
    Status: Status.CRITICAL.value,
    ActionOutcome: ActionOutcome.UNKNOWN.value,
    HeldKind: HeldKind.CHECKS_AT_WORK.value,
}
"""The known word that stands for an unknown one, by type. An alert counts as critical. An action
may still happen, so nothing else is done to its target. What holds a message back is examined again
at once."""

WORDS_BY_FIELD: Mapping[tuple[str, str], str] = {
    ("LastNotified", "severity"): Status.WARNING.value,
    ("CheckRun", "status"): Status.UNKNOWN.value,
    ("Remark", "deed"): "comment",
    ("LedgerEntry", "mark"): "",
    ("PassingNode", "kind"): "completing",
    ("LedgerRow", "kind"): "blind",
    ("LedgerRow", "cause"): "unknown",
}
"""The known word that stands for an unknown one, by class and field. People who were notified with
an unknown word are notified again; a run counts as unknown; a remark is only text; a GPU counts by
its score, without the mark; a node that does something unknown is not booting; time whose
use is unknown was not seen."""


def convert_leniently(value: Any, kind: type[Kind]) -> Kind:
    """The value as that type, with unknown words replaced. Raises msgspec.ValidationError if it
    does not have that type for another reason, and RecursionError if it is nested too deep."""
    found = convert_value(_replace_words(value, inspect.type_info(kind), ""), kind)
    if isinstance(found, ActionRecord) and found.outcome is ActionOutcome.UNKNOWN and found.ended:
        return msgspec.structs.replace(found, outcome=ActionOutcome.UNCLEAR)
    return found


def _replace_words(value: Any, info: inspect.Type, word: str) -> Any:
    if isinstance(info, inspect.Metadata):
        return _replace_words(value, info.type, word)
    if isinstance(info, inspect.UnionType):
        return _replace_in_union(value, info, word)
    if isinstance(value, dict):
        return _replace_in_mapping(value, info)
    if isinstance(value, list):
        return _replace_in_sequence(value, info, word)
    if isinstance(info, inspect.EnumType) and isinstance(value, str):
        known = {member.value for member in info.cls}
        return value if value in known else word or WORDS_BY_ENUM.get(info.cls, value)
    if (
        isinstance(info, inspect.LiteralType)
        and isinstance(value, str)
        and value not in info.values
    ):
        return word if word in info.values else value
    return value


def _replace_in_union(value: Any, info: inspect.UnionType, word: str) -> Any:
    members = [member for member in info.types if not isinstance(member, inspect.NoneType)]
    if value is None or len(members) != 1:
        return value
    return _replace_words(value, members[0], word)


def _replace_in_mapping(value: dict[str, Any], info: inspect.Type) -> dict[str, Any]:
    if isinstance(info, inspect.StructType):
        fields = {field.encode_name: field for field in info.fields}
        return {
            name: _replace_words(
                part, fields[name].type, WORDS_BY_FIELD.get((info.cls.__name__, name), "")
            )
            if name in fields
            else part
            for name, part in value.items()
        }
    if isinstance(info, inspect.DictType):
        return {name: _replace_words(part, info.value_type, "") for name, part in value.items()}
    return value


def _replace_in_sequence(value: list[Any], info: inspect.Type, word: str) -> list[Any]:
    if isinstance(info, inspect.CollectionType):
        return [_replace_words(part, info.item_type, word) for part in value]
    if isinstance(info, inspect.TupleType) and len(info.item_types) == len(value):
        return [
            _replace_words(part, item, word)
            for part, item in zip(value, info.item_types, strict=True)
        ]
    return value
