"""YAML text -> nodes that know their lines. Bounded, safe, and strict about repeated keys.

YAML, the command line and the embedded default all come as these nodes, so that one converter judges
them all. Composed without recursion and with every alias paid for: PyYAML's own composer recurses
(100,000 brackets end the process) and lets one alias stand for a billion nodes ("billion laughs");
this one counts and stops.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from sentinel.config.problems import Collector, Path
from sentinel.core.lazy_pattern import lazy_pattern

# Patterns are compiled when they are first needed: most files need none of them.
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


class Scalar(Struct, frozen=True):
    """A single value and the text it was written as.

    `loose`: there was no way to write it as text in particular (the command line), so
    where text is expected `text` counts, whatever `value` looks like.
    """

    value: str | int | float | bool | None
    text: str
    line: int = 0
    loose: bool = False


class Items(Struct, frozen=True):
    """A list."""

    items: tuple[Any, ...]
    line: int = 0


class Entry(Struct, frozen=True):
    """A key with its value; `line` is the key's."""

    key: str
    line: int
    value: Any


class Table(Struct, frozen=True):
    """A mapping, in the order of the file."""

    entries: dict[str, Entry]
    line: int = 0


Node = Scalar | Items | Table


def resolve(text: str) -> str | int | float | bool | None:
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


def plain(data: Any) -> Node:
    """Python data as nodes without lines; texts stay texts."""
    if isinstance(data, Mapping):
        return Table({str(k): Entry(str(k), 0, plain(v)) for k, v in data.items()})
    if isinstance(data, list | tuple):
        return Items(tuple(plain(item) for item in data))
    return Scalar(data, "" if data is None else str(data))


def loose(text: str) -> Scalar:
    """A word of the command line."""
    return Scalar(resolve(text), text, loose=True)


def bare(node: Node) -> Any:
    """The data of a node, without its lines."""
    if isinstance(node, Table):
        return {key: bare(entry.value) for key, entry in node.entries.items()}
    return [bare(item) for item in node.items] if isinstance(node, Items) else node.value


def line_at(node: Node, path: tuple[str | int, ...]) -> int:
    """The line of the deepest node on the path that exists."""
    line = node.line
    for step in path:
        if isinstance(node, Table) and step in node.entries:
            line, node = node.entries[str(step)].line, node.entries[str(step)].value
        elif isinstance(node, Items) and isinstance(step, int) and step < len(node.items):
            node = node.items[step]
            line = node.line
        else:
            break
    return line


DEEPEST = 50
"""Levels of nesting; a real configuration has six."""

MOST = 100_000
"""Nodes, aliases counted as often as they are used; a thousand checks have 20,000."""

_YAML = "tag:yaml.org,2002:"
_KNOWN_TAGS = {
    "MappingStartEvent": (None, "!", _YAML + "map"),
    "SequenceStartEvent": (None, "!", _YAML + "seq"),
    "ScalarEvent": (None, "!", _YAML + "str"),
}


class Unreadable(Exception):
    """This text is no document that could be judged further; tells the line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Composer:
    """Takes the events of one file; `compose` is called once."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._stack: list[_Open] = []
        self._roots: list[Node] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._count = 0

    def compose(self, events: Iterable[Any]) -> Node:
        """The document; an empty mapping for an empty file. Raises Unreadable."""
        for event in events:
            name, line = type(event).__name__, event.start_mark.line + 1
            if name in _KNOWN_TAGS:
                self._admit(event, line)
            handler = getattr(self, f"_on_{name}", None)
            if handler:
                handler(event, line)
        return self._roots[0] if self._roots else Table({}, 1)

    def _admit(self, event: Any, line: int) -> None:
        if event.tag not in _KNOWN_TAGS[type(event).__name__]:
            tag = event.tag.replace(_YAML, "!!")
            raise Unreadable(f"the tag {tag} has no meaning here; write the bare value", line)
        self._pay(1, line)

    def _pay(self, nodes: int, line: int) -> None:
        self._count += nodes
        if self._count > MOST:
            raise Unreadable(f"more than {MOST} values, aliases included", line)

    def _on_DocumentStartEvent(self, _event: Any, line: int) -> None:
        if self._roots:
            raise Unreadable("a second document begins; one file holds one configuration", line)

    def _on_MappingStartEvent(self, event: Any, line: int) -> None:
        self._push(_Open(event.anchor, line, self._count, is_list=False))

    def _on_SequenceStartEvent(self, event: Any, line: int) -> None:
        self._push(_Open(event.anchor, line, self._count, is_list=True))

    def _push(self, container: "_Open") -> None:
        if len(self._stack) >= DEEPEST:
            raise Unreadable(f"nested deeper than {DEEPEST} levels", container.line)
        if self._stack and (key := self._stack[-1].key):
            container.line = key.line
        self._stack.append(container)

    def _on_ScalarEvent(self, event: Any, line: int) -> None:
        is_plain = event.implicit[0] and event.tag is None
        node = Scalar(resolve(event.value) if is_plain else event.value, event.value, line)
        self._keep(event.anchor, node, self._count - 1)
        self._add(node, line, merge=is_plain and event.value == "<<")

    def _on_AliasEvent(self, event: Any, line: int) -> None:
        if any(container.anchor == event.anchor for container in self._stack):
            raise Unreadable(f"*{event.anchor} stands inside &{event.anchor} itself", line)
        if event.anchor not in self._anchors:
            raise Unreadable(f"there is no &{event.anchor} above that *{event.anchor} means", line)
        node, weight = self._anchors[event.anchor]
        self._pay(weight, line)
        self._add(node, line)

    def _on_MappingEndEvent(self, _event: Any, line: int) -> None:
        container = self._stack.pop()
        node = container.close()
        self._keep(container.anchor, node, container.before)
        self._add(node, container.line)

    _on_SequenceEndEvent = _on_MappingEndEvent

    def _keep(self, anchor: str | None, node: Node, before: int) -> None:
        if anchor:
            self._anchors[anchor] = (node, self._count - before)

    def _add(self, node: Node, line: int, merge: bool = False) -> None:
        if not self._stack:
            self._roots.append(node)
            return
        if repeated := self._stack[-1].add(node, line, merge):
            above: Path = tuple(step for open_ in self._stack[:-1] for step in open_.step())
            key, first = repeated
            text = f"key repeated; first in line {first.line}"
            self._collector.error(key.line, (*above, key.key), text)


class _Open:
    """A list or mapping whose end has not come; `before` counts the nodes before it, `key` is the one
    whose value is awaited."""

    def __init__(self, anchor: str | None, line: int, count: int, *, is_list: bool) -> None:
        self.anchor, self.line, self.before = anchor, line, count - 1
        self.key: Entry | None = None
        self._items: list[Node] | None = [] if is_list else None
        self._entries, self._merged = dict[str, Entry](), dict[str, Entry]()

    def add(self, node: Node, line: int, merge: bool) -> tuple[Entry, Entry] | None:
        """Take a child; of a key that came again it and the first one."""
        key, self.key = self.key, None
        if self._items is not None:
            self._items.append(node)
        elif key is None:
            self.key = _key(node, line, merge)
        elif key.value:
            self._merge(node, key.line)
        elif first := self._entries.get(key.key):
            return key, first
        else:
            self._entries[key.key] = Entry(key.key, key.line, node)
        return None

    def step(self) -> Path:
        """The key or index that is being read."""
        if self._items is not None:
            return (len(self._items),)
        return (self.key.key,) if self.key else ()

    def close(self) -> Node:
        """The finished node."""
        if self._items is not None:
            return Items(tuple(self._items), self.line)
        return Table({**self._merged, **self._entries}, self.line)

    def _merge(self, node: Node, line: int) -> None:
        """https://yaml.org/type/merge.html: earlier mappings win, the table's own keys over all."""
        for table in node.items if isinstance(node, Items) else (node,):
            if not isinstance(table, Table):
                raise Unreadable("<< needs an alias of a mapping, or a list of such", line)
            self._merged = {**table.entries, **self._merged}


def _key(node: Node, line: int, merge: bool) -> Entry:
    """A key that waits for its value; its own `value` tells whether it is a merge key."""
    if not isinstance(node, Scalar):
        raise Unreadable("a key is a list or a mapping; a single word is needed", line)
    return Entry(node.text, line, merge)


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


def read(data: bytes, collector: Collector) -> Node:
    """The one document in it (an empty mapping where there is none).

    Repeated keys are collected and the first one counts; what cannot be read at all raises
    ConfigError.
    """
    try:
        root = Composer(collector).compose(_events(_text(data)))
    except Unreadable as error:
        collector.refuse(error.line, str(error))
    nothing = isinstance(root, Scalar) and root.value is None
    return Table({}, 1) if nothing else root


def _text(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise Unreadable("the file is UTF-16; save it as UTF-8", 1)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise Unreadable(problem, line) from None
    odd = (_ASCII_UNPRINTABLE if text.isascii() else _UNPRINTABLE).search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        raise Unreadable(f"control character U+{ord(odd[0]):04X} is not allowed in YAML", line)
    return text


def _events(text: str) -> Iterator[Any]:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        raise _explained(error, text) from None
    except yaml.YAMLError as error:
        raise Unreadable(f"this is not YAML: {error}", 0) from None


def _explained(error: Any, text: str) -> Unreadable:
    mark = error.problem_mark or error.context_mark
    lines = text.rstrip("\n").split("\n")
    index = min(mark.line if mark else 0, len(lines) - 1)
    if _TAB_INDENT.match(lines[index]):
        return Unreadable("a tab stands where YAML wants spaces; indent with spaces", index + 1)
    if error.problem == _TOO_DEEP:
        return Unreadable(f"nested deeper than {DEEPEST} levels", index + 1)
    begun = error.context_mark
    since = f" (begun in line {begun.line + 1})" if begun and begun.line != index else ""
    doing = f"{error.context}: " if error.context else ""
    remedy = "".join(r for sign, r in _REMEDIES.items() if sign in str(error.problem))
    if "expected ',' or '}'" in str(error.problem) and _HOST_LIST.search(lines[index]):
        remedy = '; within { } put a host list in quotes: "gpu-[01-16]"'
    return Unreadable(f"this is not YAML: {doing}{error.problem}{since}{remedy}", index + 1)
