"""Nodes -> settings, type by type; everything that is wrong is collected, nothing is guessed."""

import re
from collections.abc import Collection, Iterable
from typing import Annotated, Any

import msgspec

from sentinel.config.nodes import Items, Node, Scalar, Table, line_at
from sentinel.config.problems import Collector, Path, did_you_mean, dotted, near
from sentinel.config.scalars import leaf
from sentinel.config.shapes import (
    Leaf,
    ListOf,
    OneOf,
    Record,
    TableOf,
    constraints,
    fields,
    is_text,
    required,
    secretive,
    shape,
    words,
)
from sentinel.config.sources import HOWS, Reference, Sources, expanded, reference, resolved
from sentinel.config.wording import as_list, expected, got
from sentinel.core import patterns
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath, Secret


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
            where = self._place(node, path) if found.type is re.Pattern else ""
            value = leaf(node, hint, self._sources.env, where)
        except ValueError as error:
            return self.fault(error, node, path)
        if isinstance(value, Secret):
            self.exposed.append((path, node.line))
            self._collector.hide(value.reveal())
        if isinstance(value, patterns.Guarded):
            self.guarded.append((path, node.line))
        return value

    def _place(self, node: Scalar, path: Path) -> str:
        file = self._collector.file
        return f"{file}:{node.line}: {dotted(path)}" if file and node.line else ""

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
