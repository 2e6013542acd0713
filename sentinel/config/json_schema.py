"""Settings classes -> JSON Schema (draft 2020-12), so that editors complete and check files."""

import re
from typing import Any, get_args

from sentinel.config.display import Shown
from sentinel.config.loader import PRIVATE, SECTIONS
from sentinel.config.registry import Registry, UnknownKind
from sentinel.config.sentences import sentences
from sentinel.config.settings import Settings
from sentinel.config.shapes import (
    Leaf,
    ListOf,
    OneOf,
    Record,
    TableOf,
    constraints,
    default,
    fields,
    required,
    shape,
    words,
)
from sentinel.config.sources import HOWS
from sentinel.config.wording import expected
from sentinel.core.settings import ChannelCommon, Common, FilePath, Secret
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
_SHOWN = Shown({})


def schema(checks: Registry, channels: Registry) -> dict[str, Any]:
    """The whole file; each kind that the registries can load brings its own keys.

    A third-party kind that does not load is known by its name alone.
    """
    sections = {key: of(info.type) for key, info in fields(Settings).items() if key in SECTIONS}
    sections["checks"] = _named(checks, "check")
    sections["channels"] = _named(channels, "channel")
    return {
        "$schema": DIALECT,
        "title": "Configuration of sentinel",
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {key: {"anyOf": [value, _EMPTY]} for key, value in sections.items()},
        "patternProperties": {f"^{PRIVATE}": True},
        "$defs": {
            "reference": _reference(),
            **_kinds(checks, "check", Common),
            **_kinds(channels, "channel", ChannelCommon),
        },
    }


def of(hint: Any) -> dict[str, Any]:
    """What a value of this type looks like in the file."""
    found = shape(hint)
    if isinstance(found, OneOf):
        return {"anyOf": [of(t) for t in found.types]}
    if isinstance(found, Record):
        return _record(found.cls)
    if isinstance(found, TableOf):
        return {
            "type": "object",
            "additionalProperties": of(found.value),
            **_lengths(hint, "Properties"),
        }
    if isinstance(found, ListOf):
        many = {"type": "array", "items": of(found.item), **_lengths(hint, "Items")}
        return (
            {"anyOf": [many, _alone(found.item)]} if isinstance(shape(found.item), Leaf) else many
        )
    return {**_leaf(found, hint), **_limits(hint)}


def _alone(item: Any) -> dict[str, Any]:
    """What stands for a list of one: a value; of text one word, since several may be meant."""
    plain = shape(item) in (Leaf(str), Leaf(FilePath), Leaf(Secret))
    word = r"^\S+$" if shape(item) == Leaf(str) else "."
    return {"type": "string", "pattern": word} if plain else of(item)


def _leaf(found: Leaf, hint: Any) -> dict[str, Any]:
    if found.type in (str, Secret, FilePath):
        return {
            "anyOf": [{"type": "string", **_lengths(hint, "Length")}, {"$ref": "#/$defs/reference"}]
        }
    if words(hint):
        return {"enum": list(get_args(found.type) or words(hint))}
    if found.type in _JSON:
        return {"type": _JSON[found.type]}
    if found.type is Any:
        return {}
    description = expected(found.type)
    if found.type in _TEXTS:
        return {"type": "string", "description": description, **_TEXTS[found.type]}
    return {"type": ["string", "number"], "description": description}


def _limits(hint: Any) -> dict[str, Any]:
    return {
        name: getattr(meta, key)
        for meta in constraints(hint)
        for key, name in _LIMITS.items()
        if getattr(meta, key) is not None
    }


def _lengths(hint: Any, what: str) -> dict[str, Any]:
    return {
        f"{side}{what}": getattr(meta, f"{side}_length")
        for meta in constraints(hint)
        for side in ("min", "max")
        if getattr(meta, f"{side}_length") is not None
    }


def _record(cls: Any, *shared: Any) -> dict[str, Any]:
    """Of a settings class; keys of `shared` stand first, and win."""
    classes = (*shared, cls, *shared)
    keys = {key: info for one in classes for key, info in fields(one).items()}
    said = {key: text for one in classes for key, text in sentences(one).items()}
    return {
        "type": "object",
        "description": (cls.__doc__ or "").split("\n")[0],
        "additionalProperties": False,
        "required": [key for key, info in keys.items() if required(info)],
        "properties": {key: _property(info, said.get(key, "")) for key, info in keys.items()},
    }


def _property(info: Any, sentence: str) -> dict[str, Any]:
    found = of(info.type)
    if sentence:
        form = found.get("description", "") if isinstance(shape(info.type), Leaf) else ""
        found["description"] = f"{sentence} ({form})" if form else sentence
    if required(info) or default(info) is None:
        return found
    return {**found, "default": _SHOWN.plain(default(info), ())}


def _named(registry: Registry, what: str) -> dict[str, Any]:
    """Any names; which keys there are below one depends on its `kind`."""
    choices = [
        {
            "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
            "then": {"$ref": f"#/$defs/{what}.{kind}"},
        }
        for kind in registry.names()
    ]
    value = {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"enum": registry.names()}},
        "allOf": choices,
    }
    return {"type": "object", "additionalProperties": value}


def _kinds(registry: Registry, what: str, shared: Any) -> dict[str, Any]:
    return {f"{what}.{kind}": _kind(registry, kind, shared) for kind in registry.names()}


def _kind(registry: Registry, kind: str, shared: Any) -> dict[str, Any]:
    try:
        cls = registry.load(kind)
    except UnknownKind:
        return {"type": "object"}
    found = _record(cls, shared)
    found["properties"]["kind"] = {"const": kind}
    return found


def _reference() -> dict[str, Any]:
    one = [
        {
            "type": "object",
            "additionalProperties": False,
            "required": [how],
            "properties": {how: {"type": "string", "minLength": 1}},
        }
        for how in HOWS
    ]
    return {"description": "A text that is kept elsewhere", "oneOf": one}
