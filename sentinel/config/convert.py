"""Nodes -> settings, type by type; everything that is wrong is collected, nothing is guessed.

The one place that takes type hints apart: a leaf, a record, a list, a table, or one of several.
Converter, command line and JSON Schema all ask here.
"""

import math
import os
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import FieldInfo

from sentinel.config.nodes import Items, Node, Scalar, Table, line_at, resolve
from sentinel.config.problems import Collector, Path, did_you_mean, near
from sentinel.config.sources import HOWS, Reference, Sources, expanded, reference, resolved
from sentinel.core import patterns
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath, Secret
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration, Share, Size

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


class Failed:
    """Stands for a value that could not be had; why is with the collector."""


FAILED = Failed()


class Converter:
    """Converts any number of nodes of one file.

    `references` maps the path of every text that is kept elsewhere to where that is;
    `exposed` are the paths and lines of secrets that stand in the file itself, `guarded` those of
    patterns that may search without an end.
    """

    def __init__(self, collector: Collector, sources: Sources) -> None:
        self._collector = collector
        self._sources = sources
        self.references: dict[Path, Reference] = {}
        self.exposed: list[tuple[Path, int]] = []
        self.guarded: list[tuple[Path, int]] = []

    def convert(self, node: Node, hint: Any, path: Path) -> Any:
        """The value, or FAILED."""
        found = shape(hint)
        if isinstance(found, OneOf):
            return self._one_of(node, hint, found, path)
        if isinstance(found, Leaf):
            return self._leaf(node, hint, found, path)
        value = self._container(node, hint, found, path)
        return value if value is FAILED else self._constrained(node, hint, value, path)

    def record(self, table: Table, cls: Any, path: Path, others: Collection[str] = ()) -> Any:
        """An object of the settings class; `others` are keys that belong beside its own."""
        for entry in table.entries.values():
            if entry.key not in fields(cls):
                hint = did_you_mean(entry.key, {*fields(cls), *others})
                self._collector.error(entry.line, (*path, entry.key), f"unknown key{hint}")
        values = {key: self._field(table, key, info, path) for key, info in fields(cls).items()}
        if _any_failed(values.values()):
            return FAILED
        given = {fields(cls)[k].name: v for k, v in values.items() if v is not msgspec.UNSET}
        return self._built(cls, given, table, path)

    def place(self, text: str) -> str:
        """Where state is kept: a database's URL as it is, a directory expanded like any path."""
        return text if "://" in text else expanded(text, self._sources.env)

    def fault(self, error: Exception, node: Node, path: Path) -> Failed:
        """Collect what an object or a leaf said about itself, at the key that it names."""
        below = error.path if isinstance(error, Invalid) else ()
        self._collector.error(line_at(node, below), (*path, *below), str(error))
        return FAILED

    def _field(self, table: Table, key: str, info: Any, path: Path) -> Any:
        entry = table.entries.get(key)
        if entry is not None:
            return self.convert(entry.value, info.type, (*path, key))
        if not required(info):
            return msgspec.UNSET
        message = f"this key is missing; expected {expected(info.type)}"
        self._collector.error(table.line, (*path, key), message)
        return FAILED

    def _built(self, cls: Any, given: dict[str, Any], table: Table, path: Path) -> Any:
        try:
            built = cls(**given)
        except (ValueError, TypeError) as error:
            return self.fault(error, table, path)
        unused = getattr(built, "unused", tuple)
        idle = [(key, why) for key, why in unused() if key in given]
        for key, why in idle:
            self.fault(Invalid(f"changes nothing: {why}", key), table, path)
        return FAILED if idle else built

    def _container(self, node: Node, hint: Any, found: Any, path: Path) -> Any:
        if isinstance(found, ListOf) and isinstance(node, Scalar) and _one_item(node, found):
            node = Items((node,), node.line)
        if isinstance(found, ListOf) and isinstance(node, Items):
            return self._list(node, found, path)
        if isinstance(found, Record) and isinstance(node, Table):
            return self.record(node, found.cls, path)
        if isinstance(found, TableOf) and isinstance(node, Table):
            return self._table(node, found, path)
        return self._mismatch(node, hint, path)

    def _list(self, node: Items, found: ListOf, path: Path) -> Any:
        values = [self.convert(n, found.item, (*path, i)) for i, n in enumerate(node.items)]
        return FAILED if _any_failed(values) else found.build(values)

    def _table(self, node: Table, found: TableOf, path: Path) -> Any:
        values = {
            entry.key: self.convert(entry.value, found.value, (*path, entry.key))
            for entry in node.entries.values()
        }
        return FAILED if _any_failed(values.values()) else values

    def _constrained(self, node: Node, hint: Any, value: Any, path: Path) -> Any:
        """Lengths that Annotated demands of a list or mapping."""
        for meta in constraints(hint):
            try:
                msgspec.convert(value, Annotated[(type(value), meta)])
            except msgspec.ValidationError as error:
                what = str(error).replace("`array`", "a list").replace("`object`", "a mapping")
                return self.fault(Invalid(what.lower()), node, path)
        return value

    def _one_of(self, node: Node, hint: Any, found: OneOf, path: Path) -> Any:
        fitting = _fitting(node, found.types) or _lists(node, found.types)
        if len(fitting) == 1:
            return self.convert(node, fitting[0], path)
        for candidate in fitting:
            mark = self._collector.mark()
            value = self.convert(node, candidate, path)
            if value is not FAILED:
                return value
            self._collector.rewind(mark)
        return self._mismatch(node, hint, path)

    def _leaf(self, node: Node, hint: Any, found: Leaf, path: Path) -> Any:
        if isinstance(node, Table) and is_text(hint):
            return self._elsewhere(node, found, path)
        if not isinstance(node, Scalar):
            return self._mismatch(node, hint, path)
        try:
            value = leaf(node, hint, self._sources.env, self._collector.file)
        except ValueError as error:
            return self.fault(error, node, path)
        if isinstance(value, Secret):
            self.exposed.append((path, node.line))
            self._collector.hide(value.reveal())
        if isinstance(value, patterns.Guarded):
            self.guarded.append((path, node.line))
        return value

    def _elsewhere(self, node: Table, found: Leaf, path: Path) -> Any:
        try:
            kept = reference(node)
            text, warning = resolved(kept, self._sources)
        except Invalid as error:
            return self.fault(error, node, path)
        self._collector.hide(text)
        self.references[path] = kept
        if warning and found.type is Secret:
            self._collector.warn(node.line, path, warning)
        return found.type(text) if found.type in (Secret, FilePath) else text

    def _mismatch(self, node: Node, hint: Any, path: Path) -> Failed:
        secret, found = secretive(hint), shape(hint)
        remedy = ""
        if isinstance(node, Scalar) and isinstance(found, ListOf) and node.text:
            remedy = f"; write {'it in [ ]' if secret else as_list(node)}"
        elif isinstance(node, Scalar) and (close := near(node.text, words(hint))):
            remedy = f" (did you mean '{close}'?)"
        message = f"expected {expected(hint)}, got {got(node, secret)}{remedy}"
        self._collector.error(node.line, path, message)
        return FAILED


def secretive(hint: Any) -> bool:
    """Whether what stands there by mistake may be a secret."""
    found = shape(hint)
    inner = {ListOf: "item", TableOf: "value"}.get(type(found))
    if isinstance(found, OneOf):
        return any(map(secretive, found.types))
    return secretive(getattr(found, inner)) if inner else found == Leaf(Secret)


def _one_item(node: Scalar, found: ListOf) -> bool:
    """Whether a value stands for a list of one. Of words it cannot be told whether they are one."""
    words = shape(found.item) == Leaf(str) and len(node.text.split()) > 1
    return node.loose or bool(node.text and node.value is not None and not words)


def _any_failed(values: Iterable[Any]) -> bool:
    return any(value is FAILED for value in values)


def _fitting(node: Node, hints: Iterable[Any]) -> list[Any]:
    """The types that the node may be; a mapping is a reference only where no class has its key."""
    fitting = [hint for hint in hints if _may_be(node, hint)]
    if not isinstance(node, Table) or len(fitting) < 2:
        return fitting
    classes = [found.cls for found in map(shape, fitting) if isinstance(found, Record)]
    own = {key for cls in classes for key in fields(cls)}
    kept_elsewhere = node.entries.keys() <= {*HOWS} - own
    return [hint for hint in fitting if is_text(hint) == kept_elsewhere]


def _lists(node: Node, hints: Iterable[Any]) -> list[Any]:
    """Where nothing else fits, a value may be a list of one."""
    return [h for h in hints if isinstance(node, Scalar) and isinstance(shape(h), ListOf)]


def _may_be(node: Node, hint: Any) -> bool:
    """Whether a node of this form can be such a value at all."""
    found = shape(hint)
    if isinstance(node, Items):
        return isinstance(found, ListOf)
    if isinstance(node, Table):
        return isinstance(found, Record | TableOf) or is_text(hint)
    if isinstance(found, Leaf) and found.type is type(None):
        return node.value is None
    return isinstance(found, Leaf) and (node.value is not None or node.loose)


_BOOLEAN_ONCE = ("yes", "no", "on", "off", "y", "n")
_PATTERN_MOST = 10_000


def leaf(node: Scalar, hint: Any, env: Mapping[str, str], file: str = "") -> Any:
    """The value as the type wants it; raises Invalid, which never holds a Secret's text."""
    found = shape(hint)
    assert isinstance(found, Leaf)
    if found.type is Any:
        return node.value
    if found.type is type(None) and node.value is None:
        return None
    if node.value is None and not node.loose:
        remedy = '; a bare ~ is YAML for nothing, write "~"' if node.text == "~" else ""
        raise Invalid(f"it has no value; expected {expected(hint)}{remedy}")
    if found.type is re.Pattern:
        return _pattern(_text(node, hint), f"{file}:{node.line}" if file and node.line else "")
    return _typed(node, hint, found.type, env)


def _typed(node: Scalar, hint: Any, kind: Any, env: Mapping[str, str]) -> Any:
    if kind is bool:
        return _boolean(node)
    if kind is Secret:
        return Secret(_text(node, hint, secret=True))
    if kind is FilePath:
        return _path(_text(node, hint), env, here=node.loose)
    if isinstance(kind, type) and hasattr(kind, "parse"):
        return _parsed(node, kind, hint)
    if kind is str or (node.loose and node.text in words(hint)):
        return _checked(_text(node, hint), hint, node)
    return _checked(node.value, hint, node)


def _text(node: Scalar, hint: Any, secret: bool = False) -> str:
    if isinstance(node.value, str):
        return node.value
    if node.loose:
        return node.text
    remedy = "put it in quotes" if secret else f'write "{node.text}" in quotes'
    raise Invalid(f"expected {expected(hint)}, got {got(node, secret)}; {remedy}")


def _boolean(node: Scalar) -> bool:
    if isinstance(node.value, bool):
        return node.value
    if node.loose and not node.text:
        return True
    problem = f"expected true or false, got {got(node)}{_unquote(node, bool)}"
    if isinstance(node.value, str) and node.value.lower() in _BOOLEAN_ONCE:
        meant = "true" if node.value.lower() in ("yes", "on", "y") else "false"
        problem += f"; in YAML 1.2 that is text, write {meant}"
    raise Invalid(problem)


def _path(text: str, env: Mapping[str, str], here: bool) -> FilePath:
    """What people type on a command line (`here`) is meant from where they are."""
    path = expanded(text, env)
    if not path or "\0" in path:
        raise Invalid("the path is empty" if not path else "the path holds a NUL byte")
    return FilePath(os.path.abspath(path) if here and not path.startswith("/") else path)


def _pattern(text: str, where: str) -> re.Pattern[str]:
    if len(text) > _PATTERN_MOST:
        raise Invalid(f"the regular expression is longer than {_PATTERN_MOST} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return patterns.compiled(text, where=where)
    except (re.error, OverflowError, RecursionError) as error:
        raise Invalid(f"{text!r} is no regular expression: {error}") from None


def _parsed(node: Scalar, kind: Any, hint: Any) -> Any:
    """A type that brings its own `parse`: Duration, Size, Share and those of plugins."""
    if isinstance(node.value, bool):
        raise Invalid(f"expected {expected(hint)}, got {got(node)}")
    return kind.parse(node.text)


def _checked(value: Any, hint: Any, node: Scalar) -> Any:
    try:
        converted = msgspec.convert(value, hint)
    except (msgspec.ValidationError, OverflowError):
        raise Invalid(_mismatch(node, hint)) from None
    if isinstance(converted, float) and not math.isfinite(converted):
        raise Invalid(f"expected a finite number, got {node.text}")
    return converted


def _mismatch(node: Scalar, hint: Any) -> str:
    known = words(hint)
    if known and near(node.text, known):
        return f"{quoted(node)} is not one of {', '.join(known)}{did_you_mean(node.text, known)}"
    return f"expected {expected(hint)}, got {got(node)}{_unquote(node, hint)}"


def _unquote(node: Scalar, hint: Any) -> str:
    """The remedy where only the quotes are too much."""
    kind = getattr(shape(hint), "type", None)
    fitting: dict[Any, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float)}
    too_much = isinstance(node.value, str) and type(resolve(node.text)) in fitting.get(kind, ())
    return "; remove the quotes" if too_much else ""


def is_text(hint: Any) -> bool:
    """Whether a reference to a text kept elsewhere may stand there."""
    found = shape(hint)
    return isinstance(found, Leaf) and found.type in (str, Secret, FilePath)


_NAMES: dict[Any, str] = {
    str: "text",
    Secret: "text",
    FilePath: "a path",
    re.Pattern: "a regular expression",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    Duration: "a duration like 15m",
    Size: "a size like 40TB",
    Share: "a share like 85%",
    type(None): "nothing",
    Any: "anything",
}
_LONGEST = 60  # characters of a value that are worth repeating
_CONTAINERS = {Record: "a mapping", TableOf: "a mapping", ListOf: "a list"}


def expected(hint: Any) -> str:
    """`a duration like 15m or auto`."""
    found = shape(hint)
    if isinstance(found, OneOf):
        return _joined(dict.fromkeys(expected(t) for t in found.types if t is not type(None)))
    if not isinstance(found, Leaf):
        return _CONTAINERS[type(found)]
    text = _joined(words(hint)) or _NAMES.get(found.type, "") or f"a {found.type.__name__}"
    return text + "".join(_bounds(meta) for meta in constraints(hint))


def got(node: Node, secret: bool = False) -> str:
    """`the number 90`, `text 'abc'`, `a list`; of a secret only the type."""
    if isinstance(node, Items | Table):
        return "a list" if isinstance(node, Items) else "a mapping"
    if node.value is None:
        return "nothing"
    if isinstance(node.value, bool):
        return "a truth value" if secret else node.text
    name = "text" if isinstance(node.value, str) else "the number"
    return f"a {name.split()[-1]}" if secret else f"{name} {quoted(node)}"


def quoted(node: Scalar) -> str:
    """The value as it was written, in one line and not too much of it."""
    text = shortened(visible(node.text), _LONGEST)
    return f"'{text}'" if isinstance(node.value, str) else text


def as_list(node: Scalar) -> str:
    """The YAML of the list that words were probably meant for: `[ssh, login1]`."""
    from sentinel.config.yamltext import flow

    if len(node.text) > _LONGEST:
        return "it in [ ]"
    return f"{flow(node.text.split())}, or {flow([node.text])} if it is one item"


def _joined(names: Iterable[str]) -> str:
    *most, last = [*names] or [""]
    return f"{', '.join(most)} or {last}" if most else last


def _bounds(meta: Any) -> str:
    signs = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = [f"{sign} {getattr(meta, k)}" for k, sign in signs.items() if _has(meta, k)]
    limits += [f"that matches {meta.pattern}"] if meta.pattern else []
    return f" {' and '.join(limits)}" if limits else ""


def _has(meta: Any, name: str) -> bool:
    return getattr(meta, name) is not None
