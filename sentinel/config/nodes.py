"""Data that know their lines: scalars, lists and mappings.

The YAML file, the command line and the embedded default all come as these nodes, so that one
converter judges them all.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

# Patterns are compiled when they are first used, because most configurations need none of them.
_INTEGER = r"[-+]?[0-9]{1,400}"
_BASED = r"0o[0-7]{1,400}|0x[0-9a-fA-F]{1,400}"
_FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
_INFINITE = r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
_NUMBERS_BEGIN_WITH = frozenset("+-.0123456789")
_WORDS = {"": None, "~": None} | {
    spelling: value
    for word, value in {"null": None, "true": True, "false": False}.items()
    for spelling in (word, word.title(), word.upper())
}


class ScalarNode(Struct, frozen=True):
    """A single value and the text it was written as.

    `loose`: there was no way to write it as text in particular (the command line), so
    where text is expected `text` counts, whatever `value` looks like.
    """

    value: str | int | float | bool | None
    text: str
    line: int = 0  # Line in the file.
    loose: bool = False


class ListNode(Struct, frozen=True):
    """A list."""

    items: tuple[Any, ...]  # Its nodes.
    line: int = 0  # Line in the file.


class TableEntry(Struct, frozen=True):
    """A key with its value; `line` is the key's."""

    key: str  # The key.
    line: int
    value: Any  # The node of its value.


class TableNode(Struct, frozen=True):
    """A mapping, in the order of the file."""

    entries: dict[str, TableEntry]  # Entries, by key.
    line: int = 0  # Line in the file.


ConfigNode = ScalarNode | ListNode | TableNode


def resolve_scalar(text: str) -> str | int | float | bool | None:
    """A plain scalar's value by YAML 1.2's core schema (https://yaml.org/spec/1.2.2/#103-core-schema).

    So `12:30` is text, not base 60, and yes, no, on and off are text, not booleans.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBERS_BEGIN_WITH:
        return text
    if re.fullmatch(_INTEGER, text):
        return int(text)
    if re.fullmatch(_BASED, text):
        return int(text, 0)
    if re.fullmatch(_FLOAT, text):
        return float(text)
    infinite = re.fullmatch(_INFINITE, text)
    return text if infinite is None else float(infinite[0].replace(".", "", 1))


def nodes_from_data(data: Any) -> ConfigNode:
    """Python data as nodes without lines; texts stay texts."""
    if isinstance(data, Mapping):
        return TableNode(
            {str(k): TableEntry(str(k), 0, nodes_from_data(v)) for k, v in data.items()}
        )
    if isinstance(data, list | tuple):
        return ListNode(tuple(nodes_from_data(item) for item in data))
    return ScalarNode(data, "" if data is None else str(data))


def loose_scalar(text: str) -> ScalarNode:
    """A word of the command line."""
    return ScalarNode(resolve_scalar(text), text, loose=True)


def node_data(node: ConfigNode) -> Any:
    """The data of a node, without its lines."""
    if isinstance(node, TableNode):
        return {key: node_data(entry.value) for key, entry in node.entries.items()}
    return [node_data(item) for item in node.items] if isinstance(node, ListNode) else node.value


def line_at(node: ConfigNode, path: tuple[str | int, ...]) -> int:
    """The line of the deepest node on the path that exists."""
    line = node.line
    for step in path:
        if isinstance(node, TableNode) and step in node.entries:
            line, node = node.entries[str(step)].line, node.entries[str(step)].value
        elif isinstance(node, ListNode) and isinstance(step, int) and step < len(node.items):
            node = node.items[step]
            line = node.line
        else:
            break
    return line
