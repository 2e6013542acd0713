"""Nodes -> settings, type by type; everything that is wrong is collected, nothing is guessed."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any

import msgspec

from sentinel.config.near_misses import did_you_mean, nearest_word
from sentinel.config.nodes import ConfigNode, ListNode, ScalarNode, TableNode, line_at
from sentinel.config.problems import Path, ProblemCollector, dotted_path
from sentinel.config.renamed import RENAMED_KEYS, RenamedKey, rename_keys
from sentinel.config.scalars import convert_leaf
from sentinel.config.shapes import (
    LeafShape,
    ListShape,
    RecordShape,
    TableShape,
    UnionShape,
    allowed_words,
    hint_constraints,
    is_required,
    is_text,
    may_be_secret,
    settings_fields,
    type_shape,
)
from sentinel.config.sources import (
    HOWS,
    ConfigSources,
    TextReference,
    expand_path,
    parse_reference,
    resolve_reference,
)
from sentinel.config.wording import describe_expected, describe_given, suggest_list
from sentinel.core import patterns
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath, Secret


class FailedValue:
    """Stands for a value that could not be had; why is with the collector."""


FAILED = FailedValue()


class SettingsConverter:
    """Converts nodes of one file.

    `references` has the place of every text that is stored elsewhere, by path. `exposed` are the
    paths and lines of secrets in the file itself. `loose` are those of secrets in files that
    everybody can read, with the remedy. `guarded` are those of patterns whose search may not end.
    """

    def __init__(
        self,
        collector: ProblemCollector,
        sources: ConfigSources,
        renamed: Sequence[RenamedKey] = RENAMED_KEYS,
    ) -> None:
        self._collector, self._renamed = collector, renamed
        self._sources = sources
        self.references: dict[Path, TextReference] = {}
        self.exposed: list[tuple[Path, int]] = []
        self.loose: list[tuple[Path, int, str]] = []
        self.guarded: list[tuple[Path, int]] = []

    def convert_node(self, node: ConfigNode, hint: Any, path: Path) -> Any:
        """The value, or FAILED."""
        found = type_shape(hint)
        if isinstance(found, UnionShape):
            return self._convert_one_of(node, hint, found, path)
        if isinstance(found, LeafShape):
            return self._convert_leaf(node, hint, found, path)
        value = self._convert_container(node, hint, found, path)
        return value if value is FAILED else self._check_lengths(node, hint, value, path)

    def convert_record(
        self, table: TableNode, cls: Any, path: Path, others: Collection[str] = ()
    ) -> Any:
        """An object of the settings class; `others` are keys that belong beside its own."""
        table = rename_keys(table, cls.__name__, path, self._collector, self._renamed)
        for entry in table.entries.values():
            if entry.key not in settings_fields(cls):
                hint = did_you_mean(entry.key, {*settings_fields(cls), *others})
                self._collector.add_error(entry.line, (*path, entry.key), f"unknown key{hint}")
        values = {
            key: self._convert_field(cls, table, key, info, path)
            for key, info in settings_fields(cls).items()
        }
        if _any_failed(values.values()):
            return FAILED
        given = {
            settings_fields(cls)[k].name: v for k, v in values.items() if v is not msgspec.UNSET
        }
        return self._build_record(cls, given, table, path)

    def state_place(self, text: str) -> str:
        """Where state is kept: a database's URL as it is, a directory expanded like any path."""
        return text if "://" in text else expand_path(text, self._sources.env)

    def collect_fault(self, error: Exception, node: ConfigNode, path: Path) -> FailedValue:
        """Collect what an object or a leaf said about itself, at the key that it names."""
        below = error.path if isinstance(error, Invalid) else ()
        self._collector.add_error(line_at(node, below), (*path, *below), str(error))
        return FAILED

    def _convert_field(self, cls: Any, table: TableNode, key: str, info: Any, path: Path) -> Any:
        entry = table.entries.get(key)
        if entry is not None:
            return self.convert_node(entry.value, info.type, (*path, key))
        if not is_required(info):
            return msgspec.UNSET
        from sentinel.config.sentences import field_sentences  # only a wrong file needs it

        purpose = field_sentences(cls).get(key, "")
        message = f"is missing; expected {describe_expected(info.type)}"
        told = f"{message}: {purpose}" if purpose else message
        self._collector.add_error(table.line, (*path, key), told)
        return FAILED

    def _build_record(self, cls: Any, given: dict[str, Any], table: TableNode, path: Path) -> Any:
        try:
            built = cls(**given)
        except (ValueError, TypeError) as error:
            return self.collect_fault(error, table, path)
        unused = getattr(built, "unused", tuple)
        idle = [(key, why) for key, why in unused() if key in given]
        for key, why in idle:
            self.collect_fault(Invalid(f"changes nothing: {why}", key), table, path)
        return FAILED if idle else built

    def _convert_container(self, node: ConfigNode, hint: Any, found: Any, path: Path) -> Any:
        if (
            isinstance(found, ListShape)
            and isinstance(node, ScalarNode)
            and _is_one_item(node, found)
        ):
            node = ListNode((node,), node.line)
        if isinstance(found, ListShape) and isinstance(node, ListNode):
            return self._convert_list(node, found, path)
        if isinstance(found, RecordShape) and isinstance(node, TableNode):
            return self.convert_record(node, found.cls, path)
        if isinstance(found, TableShape) and isinstance(node, TableNode):
            return self._convert_table(node, found, path)
        return self._report_mismatch(node, hint, path)

    def _convert_list(self, node: ListNode, found: ListShape, path: Path) -> Any:
        values = [self.convert_node(n, found.item, (*path, i)) for i, n in enumerate(node.items)]
        return FAILED if _any_failed(values) else found.build(values)

    def _convert_table(self, node: TableNode, found: TableShape, path: Path) -> Any:
        values = {
            entry.key: self.convert_node(entry.value, found.value, (*path, entry.key))
            for entry in node.entries.values()
        }
        return FAILED if _any_failed(values.values()) else values

    def _check_lengths(self, node: ConfigNode, hint: Any, value: Any, path: Path) -> Any:
        """Lengths that Annotated demands of a list or mapping."""
        for meta in hint_constraints(hint):
            try:
                msgspec.convert(value, Annotated[(type(value), meta)])
            except msgspec.ValidationError as error:
                what = str(error).replace("`array`", "a list").replace("`object`", "a mapping")
                return self.collect_fault(Invalid(what.lower()), node, path)
        return value

    def _convert_one_of(self, node: ConfigNode, hint: Any, found: UnionShape, path: Path) -> Any:
        fitting = _fitting_types(node, found.types) or _list_types(node, found.types)
        if len(fitting) == 1:
            return self.convert_node(node, fitting[0], path)
        for candidate in fitting:
            mark = self._collector.mark_point()
            value = self.convert_node(node, candidate, path)
            if value is not FAILED:
                return value
            self._collector.rewind_to(mark)
        return self._report_mismatch(node, hint, path)

    def _convert_leaf(self, node: ConfigNode, hint: Any, found: LeafShape, path: Path) -> Any:
        if isinstance(node, TableNode) and is_text(hint):
            return self._read_reference(node, found, path)
        if not isinstance(node, ScalarNode):
            return self._report_mismatch(node, hint, path)
        try:
            where = self._place(node, path) if found.type is re.Pattern else ""
            value = convert_leaf(node, hint, self._sources.env, where)
        except ValueError as error:
            return self.collect_fault(error, node, path)
        if isinstance(value, Secret):
            self.exposed.append((path, node.line))
            self._collector.hide_secret(value.reveal())
        if isinstance(value, patterns.GuardedPattern):
            self.guarded.append((path, node.line))
        return value

    def _place(self, node: ScalarNode, path: Path) -> str:
        file = self._collector.file
        return f"{file}:{node.line}: {dotted_path(path)}" if file and node.line else ""

    def _read_reference(self, node: TableNode, found: LeafShape, path: Path) -> Any:
        try:
            kept = parse_reference(node)
            text, warning = resolve_reference(kept, self._sources)
        except Invalid as error:
            return self.collect_fault(error, node, path)
        self._collector.hide_secret(text)
        self.references[path] = kept
        if warning and found.type is Secret:
            self.loose.append((path, node.line, warning))
        return found.type(text) if found.type in (Secret, FilePath) else text

    def _report_mismatch(self, node: ConfigNode, hint: Any, path: Path) -> FailedValue:
        secret, found = may_be_secret(hint), type_shape(hint)
        remedy = ""
        if isinstance(node, ScalarNode) and isinstance(found, ListShape) and node.text:
            remedy = f"; write {'it in [ ]' if secret else suggest_list(node)}"
        elif isinstance(node, ScalarNode) and (
            close := nearest_word(node.text, allowed_words(hint))
        ):
            remedy = f" (did you mean '{close}'?)"
        elif isinstance(found, RecordShape):
            remedy = f"; its keys: {', '.join(settings_fields(found.cls))}"
        message = f"expected {describe_expected(hint)}, got {describe_given(node, secret)}{remedy}"
        self._collector.add_error(node.line, path, message)
        return FAILED


def _is_one_item(node: ScalarNode, found: ListShape) -> bool:
    """Whether a value may be a list with one item. For a text with several words, this is not
    clear."""
    words = type_shape(found.item) == LeafShape(str) and len(node.text.split()) > 1
    return node.loose or bool(node.text and node.value is not None and not words)


def _any_failed(values: Iterable[Any]) -> bool:
    return any(value is FAILED for value in values)


def _fitting_types(node: ConfigNode, hints: Iterable[Any]) -> list[Any]:
    """The types that the node may be; a mapping is a reference only where no class has its key."""
    fitting = [hint for hint in hints if _may_be(node, hint)]
    if not isinstance(node, TableNode) or len(fitting) < 2:
        return fitting
    classes = [found.cls for found in map(type_shape, fitting) if isinstance(found, RecordShape)]
    own = {key for cls in classes for key in settings_fields(cls)}
    kept_elsewhere = node.entries.keys() <= {*HOWS} - own
    return [hint for hint in fitting if is_text(hint) == kept_elsewhere]


def _list_types(node: ConfigNode, hints: Iterable[Any]) -> list[Any]:
    """If nothing else fits, a value may be a list with one item."""
    return [
        h for h in hints if isinstance(node, ScalarNode) and isinstance(type_shape(h), ListShape)
    ]


def _may_be(node: ConfigNode, hint: Any) -> bool:
    """Whether a node of this form can be such a value at all."""
    found = type_shape(hint)
    if isinstance(node, ListNode):
        return isinstance(found, ListShape)
    if isinstance(node, TableNode):
        return isinstance(found, RecordShape | TableShape) or is_text(hint)
    if isinstance(found, LeafShape) and found.type is type(None):
        return node.value is None
    return isinstance(found, LeafShape) and (node.value is not None or node.loose)
