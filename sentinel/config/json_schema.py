"""Settings classes -> JSON Schema (draft 2020-12), so that editors complete and check files."""

import re
from typing import Any, get_args

from sentinel.config.display import ShownSettings
from sentinel.config.loader import PRIVATE_PREFIX, SECTIONS
from sentinel.config.registry import KindRegistry, UnknownKind
from sentinel.config.sentences import field_sentences
from sentinel.config.settings import Settings
from sentinel.config.shapes import (
    LeafShape,
    ListShape,
    RecordShape,
    TableShape,
    UnionShape,
    allowed_words,
    field_default,
    hint_constraints,
    is_required,
    settings_fields,
    type_shape,
)
from sentinel.config.sources import HOWS
from sentinel.config.wording import describe_expected
from sentinel.core.settings import ChannelCommon, CheckCommon, FilePath, Secret
from sentinel.core.values import Duration, Share, Size

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_NUMBER = r"[0-9]+(\.[0-9]+)?"
_TEXTS: dict[Any, dict[str, Any]] = {
    Duration: {"pattern": rf"^({_NUMBER}\s*(w|d|h|m|s|ms)\s*)+$"},
    Size: {"pattern": rf"^{_NUMBER}\s*([kKMGTPE]?B|[KMGTPE]iB)$"},
    Share: {"pattern": rf"^{_NUMBER}\s*%$"},
    re.Pattern: {"format": "regex"},
}
_JSON = {bool: "boolean", int: "integer", float: "number", type(None): "null"}
_LIMITS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "pattern": "pattern",
    "description": "description",
}
_EMPTY = {"type": "null"}
_SHOWN = ShownSettings({})


def build_schema(checks: KindRegistry, channels: KindRegistry) -> dict[str, Any]:
    """The whole file; each kind that the registries can load brings its own keys.

    A third-party kind that does not load is known by its name alone.
    """
    sections = {
        key: type_schema(info.type)
        for key, info in settings_fields(Settings).items()
        if key in SECTIONS
    }
    sections["checks"] = _named_entries_schema(checks, "check")
    sections["channels"] = _named_entries_schema(channels, "channel")
    return {
        "$schema": DIALECT,
        "title": "Configuration of sentinel",
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {key: {"anyOf": [value, _EMPTY]} for key, value in sections.items()},
        "patternProperties": {f"^{PRIVATE_PREFIX}": True},
        "$defs": {
            "reference": _reference_schema(),
            **_kind_schemas(checks, "check", CheckCommon),
            **_kind_schemas(channels, "channel", ChannelCommon),
        },
    }


def type_schema(hint: Any) -> dict[str, Any]:
    """The schema for a value of this type in the file."""
    found = type_shape(hint)
    if isinstance(found, UnionShape):
        return {"anyOf": [type_schema(t) for t in found.types]}
    if isinstance(found, RecordShape):
        return _record_schema(found.cls)
    if isinstance(found, TableShape):
        return {
            "type": "object",
            "additionalProperties": type_schema(found.value),
            **_length_limits(hint, "Properties"),
        }
    if isinstance(found, ListShape):
        many = {"type": "array", "items": type_schema(found.item), **_length_limits(hint, "Items")}
        return (
            {"anyOf": [many, _single_item_schema(found.item)]}
            if isinstance(type_shape(found.item), LeafShape)
            else many
        )
    return {**_leaf_schema(found, hint), **_number_limits(hint)}


def _single_item_schema(item: Any) -> dict[str, Any]:
    """The schema for a single value in place of a list. A text must be one word, because several
    words may be several items."""
    plain = type_shape(item) in (LeafShape(str), LeafShape(FilePath), LeafShape(Secret))
    word = r"^\S+$" if type_shape(item) == LeafShape(str) else "."
    return {"type": "string", "pattern": word} if plain else type_schema(item)


def _leaf_schema(found: LeafShape, hint: Any) -> dict[str, Any]:
    if found.type in (str, Secret, FilePath):
        return {
            "anyOf": [
                {"type": "string", **_length_limits(hint, "Length")},
                {"$ref": "#/$defs/reference"},
            ]
        }
    if allowed_words(hint):
        return {"enum": list(get_args(found.type) or allowed_words(hint))}
    if found.type in _JSON:
        return {"type": _JSON[found.type]}
    if found.type is Any:
        return {}
    description = describe_expected(found.type)
    if found.type in _TEXTS:
        return {"type": "string", "description": description, **_TEXTS[found.type]}
    return {"type": ["string", "number"], "description": description}


def _number_limits(hint: Any) -> dict[str, Any]:
    return {
        name: getattr(meta, key)
        for meta in hint_constraints(hint)
        for key, name in _LIMITS.items()
        if getattr(meta, key) is not None
    }


def _length_limits(hint: Any, what: str) -> dict[str, Any]:
    return {
        f"{side}{what}": getattr(meta, f"{side}_length")
        for meta in hint_constraints(hint)
        for side in ("min", "max")
        if getattr(meta, f"{side}_length") is not None
    }


def _record_schema(cls: Any, *shared: Any) -> dict[str, Any]:
    """The schema of a settings class. Keys of `shared` come first, and take precedence."""
    classes = (*shared, cls, *shared)
    keys = {key: info for one in classes for key, info in settings_fields(one).items()}
    said = {key: text for one in classes for key, text in field_sentences(one).items()}
    return {
        "type": "object",
        "description": (cls.__doc__ or "").split("\n")[0],
        "additionalProperties": False,
        "required": [key for key, info in keys.items() if is_required(info)],
        "properties": {
            key: _property_schema(info, said.get(key, "")) for key, info in keys.items()
        },
    }


def _property_schema(info: Any, sentence: str) -> dict[str, Any]:
    found = type_schema(info.type)
    if sentence:
        form = found.get("description", "") if isinstance(type_shape(info.type), LeafShape) else ""
        found["description"] = f"{sentence} ({form})" if form else sentence
    if is_required(info) or field_default(info) is None:
        return found
    return {**found, "default": _SHOWN.plain_value(field_default(info), ())}


def _named_entries_schema(registry: KindRegistry, what: str) -> dict[str, Any]:
    """A schema for entries with any names. The keys of each entry depend on its `kind`."""
    choices = [
        {
            "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
            "then": {"$ref": f"#/$defs/{what}.{kind}"},
        }
        for kind in registry.kind_names()
    ]
    value = {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"enum": registry.kind_names()}},
        "allOf": choices,
    }
    return {"type": "object", "additionalProperties": value}


def _kind_schemas(registry: KindRegistry, what: str, shared: Any) -> dict[str, Any]:
    return {
        f"{what}.{kind}": _kind_schema(registry, kind, shared) for kind in registry.kind_names()
    }


def _kind_schema(registry: KindRegistry, kind: str, shared: Any) -> dict[str, Any]:
    try:
        cls = registry.load_kind(kind)
    except UnknownKind:
        return {"type": "object"}
    found = _record_schema(cls, shared)
    found["properties"]["kind"] = {"const": kind}
    return found


def _reference_schema() -> dict[str, Any]:
    one = [
        {
            "type": "object",
            "additionalProperties": False,
            "required": [how],
            "properties": {how: {"type": "string", "minLength": 1}},
        }
        for how in HOWS
    ]
    return {
        "description": "Where the text is kept, if it does not stand in this file",
        "oneOf": one,
    }
