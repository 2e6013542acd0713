"""YAML text -> nodes. Bounded, safe, and strict about repeated keys."""

from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from sentinel.config.nodes import (
    ConfigNode,
    ListNode,
    ScalarNode,
    TableEntry,
    TableNode,
    resolve_scalar,
)
from sentinel.config.problems import Path, ProblemCollector
from sentinel.core.lazy_pattern import lazy_pattern

MAX_DEPTH = 50
"""Levels of nesting; a real configuration has six."""

MAX_VALUES = 100_000
"""Aliases count as often as they are used; a thousand checks have 20,000 values."""

_ASCII_UNPRINTABLE = lazy_pattern("[^\t\n\r\x20-\x7e]")
_UNPRINTABLE = lazy_pattern("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""All but c-printable of https://yaml.org/spec/1.2.2/#51-character-set; to compile it takes 5 ms."""

_REMEDIES = {
    "mapping values are not allowed": "; put a text that holds ': ' in quotes",
    "cannot start any token": "; put a text that begins with such a character in quotes",
}

_HOST_LIST = lazy_pattern(r"[\w.-]\[[0-9,-]+\]")
_TAB_INDENT = lazy_pattern(r" *\t")
_TOO_DEEP = "exceeded maximum nesting depth"
"""libyaml's own limit, of 1,000 levels. It looks ahead, so that it may meet it before this reader has
counted to its own (seen with PyYAML 6.0.4)."""

_YAML = "tag:yaml.org,2002:"
_TAGS = {
    yaml.MappingStartEvent: _YAML + "map",
    yaml.SequenceStartEvent: _YAML + "seq",
    yaml.ScalarEvent: _YAML + "str",
}
_PLAIN = "plain"
"""The tag of a scalar without quotes and without an explicit tag."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _NodeLoader(_Loader):  # type: ignore[misc]
    """A loader that does not interpret unquoted scalars."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        """The tag of a node that has none."""
        if kind is not yaml.ScalarNode:
            return ""
        return _PLAIN if implicit[0] else _YAML + "str"


class UnreadableYaml(Exception):
    """The text is no valid YAML document. The error names the line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def read_yaml(data: bytes, collector: ProblemCollector) -> ConfigNode:
    """The one document in it (an empty mapping where there is none).

    Repeated keys are collected and the first one counts; what cannot be read at all raises
    ConfigError.
    """
    try:
        text = _decode_yaml(data)
        try:
            _YamlLimits().judge_events(yaml.parse(text, Loader=_Loader))
            root = yaml.compose(text, Loader=_NodeLoader)
        except yaml.MarkedYAMLError as error:
            raise _explain_error(error, text) from None
        except yaml.YAMLError as error:
            raise UnreadableYaml(f"this is not YAML: {error}", 0) from None
        found = (
            TableNode({}, 1)
            if root is None
            else _NodeConverter(collector).convert_root(root, (), 0)
        )
    except UnreadableYaml as error:
        collector.refuse_file(error.line, str(error))
    nothing = isinstance(found, ScalarNode) and found.value is None
    return TableNode({}, 1) if nothing else found


class _YamlLimits:
    """Judges the events of one file before its nodes are made: PyYAML recurses for each level
    (100,000 brackets end the process) and one alias may stand for a billion values."""

    def __init__(self) -> None:
        self._documents = 0
        self._values = 0
        # The anchor of each container that is not closed yet, and the values before it.
        self._open: list[tuple[str | None, int]] = []
        # The values that an alias of each anchor stands for.
        self._weights: dict[str | None, int] = {}

    def judge_events(self, events: Iterable[Any]) -> None:
        """Raises UnreadableYaml."""
        for event in events:
            line = event.start_mark.line + 1
            if isinstance(event, yaml.DocumentStartEvent):
                self._documents += 1
            elif isinstance(event, yaml.AliasEvent):
                self._values += self._anchor_weight(event.anchor, line)
            elif isinstance(event, yaml.NodeEvent):
                self._begin_container(event, line)
            elif isinstance(event, yaml.CollectionEndEvent):
                anchor, before = self._open.pop()
                self._weights[anchor] = self._values - before
            if self._documents > 1:
                raise UnreadableYaml(
                    "a second document begins; one file holds one configuration", line
                )
            if self._values > MAX_VALUES:
                raise UnreadableYaml(f"more than {MAX_VALUES} values, aliases included", line)

    def _anchor_weight(self, anchor: str | None, line: int) -> int:
        if self._is_open(anchor):
            raise UnreadableYaml(f"*{anchor} stands inside &{anchor} itself", line)
        if anchor not in self._weights:
            raise UnreadableYaml(f"there is no &{anchor} above that *{anchor} means", line)
        return self._weights[anchor]

    def _begin_container(self, event: Any, line: int) -> None:
        anchor = event.anchor
        if event.tag not in (None, _TAGS[type(event)]):
            tag = event.tag.replace(_YAML, "!!")
            raise UnreadableYaml(f"the tag {tag} has no meaning here; write the bare value", line)
        if anchor and (anchor in self._weights or self._is_open(anchor)):
            raise UnreadableYaml(f"&{anchor} is there twice; give one of them another name", line)
        self._values += 1
        if isinstance(event, yaml.ScalarEvent):
            self._weights[anchor] = 1
            return
        self._open.append((anchor, self._values - 1))
        if len(self._open) > MAX_DEPTH:
            raise UnreadableYaml(f"nested deeper than {MAX_DEPTH} levels", line)

    def _is_open(self, anchor: str | None) -> bool:
        return any(anchor == one for one, _ in self._open)


class _NodeConverter:
    """Makes our nodes of PyYAML's; repeated keys go to the collector."""

    def __init__(self, collector: ProblemCollector) -> None:
        self._collector = collector
        # What an anchor marks is converted once, however often it is used.
        self._converted: dict[Any, ConfigNode] = {}

    def convert_root(self, node: Any, path: Path, key_line: int) -> ConfigNode:
        """The line of a list or mapping is that of its key, where it has one. Raises UnreadableYaml."""
        if node not in self._converted:
            self._converted[node] = self._convert_any(node, path, key_line or _node_line(node))
        return self._converted[node]

    def _convert_any(self, node: Any, path: Path, line: int) -> ConfigNode:
        if isinstance(node, yaml.ScalarNode):
            value = resolve_scalar(node.value) if node.tag == _PLAIN else node.value
            return ScalarNode(value, node.value, _node_line(node))
        if isinstance(node, yaml.SequenceNode):
            items = (self.convert_root(one, (*path, n), 0) for n, one in enumerate(node.value))
            return ListNode(tuple(items), line)
        return self._convert_mapping(node, path, line)

    def _convert_mapping(self, node: Any, path: Path, line: int) -> TableNode:
        own, merged = dict[str, TableEntry](), dict[str, TableEntry]()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                text = "a key is a list or a mapping; a single word is needed"
                raise UnreadableYaml(text, _node_line(key))
            here = _node_line(key)
            found = self.convert_root(value, (*path, key.value), here)
            if key.tag == _PLAIN and key.value == "<<":
                for table in _merged_tables(found, here):
                    merged = {**table.entries, **merged}
            elif first := own.get(key.value):
                text = f"key repeated; first in line {first.line}"
                self._collector.add_error(here, (*path, key.value), text)
            else:
                own[key.value] = TableEntry(key.value, here, found)
        return TableNode({**merged, **own}, line)


def _merged_tables(node: ConfigNode, line: int) -> Iterator[TableNode]:
    """https://yaml.org/type/merge.html: earlier mappings win, the table's own keys over all."""
    for table in node.items if isinstance(node, ListNode) else (node,):
        if not isinstance(table, TableNode):
            raise UnreadableYaml("<< needs an alias of a mapping, or a list of such", line)
        yield table


def _node_line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _decode_yaml(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UnreadableYaml("the file is UTF-16; save it as UTF-8", 1)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise UnreadableYaml(problem, line) from None
    odd = (_ASCII_UNPRINTABLE if text.isascii() else _UNPRINTABLE).search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        raise UnreadableYaml(f"control character U+{ord(odd[0]):04X} is not allowed in YAML", line)
    return text


def _explain_error(error: Any, text: str) -> UnreadableYaml:
    mark = error.problem_mark or error.context_mark
    lines = text.rstrip("\n").split("\n")
    index = min(mark.line if mark else 0, len(lines) - 1)
    if _TAB_INDENT.match(lines[index]):
        return UnreadableYaml("a tab stands where YAML wants spaces; indent with spaces", index + 1)
    if error.problem == _TOO_DEEP:
        return UnreadableYaml(f"nested deeper than {MAX_DEPTH} levels", index + 1)
    begun = error.context_mark
    since = f" (begun in line {begun.line + 1})" if begun and begun.line != index else ""
    doing = f"{error.context}: " if error.context else ""
    remedy = "".join(r for sign, r in _REMEDIES.items() if sign in str(error.problem))
    if "expected ',' or '}'" in str(error.problem) and _HOST_LIST.search(lines[index]):
        remedy = '; within { } put a host list in quotes: "gpu-[01-16]"'
    return UnreadableYaml(f"this is not YAML: {doing}{error.problem}{since}{remedy}", index + 1)
