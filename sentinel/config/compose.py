"""YAML events -> nodes, without recursion and with every alias paid for.

PyYAML's own composer recurses (100,000 brackets end the process) and lets one alias stand
for a billion nodes ("billion laughs"); this one counts and stops.
"""

from collections.abc import Iterable
from typing import Any

from sentinel.config.problems import Collector, Path
from sentinel.config.tree import Entry, Items, Node, Scalar, Table, resolve

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
        self._push(_OpenTable(event.anchor, line, self._count))

    def _on_SequenceStartEvent(self, event: Any, line: int) -> None:
        self._push(_OpenItems(event.anchor, line, self._count))

    def _push(self, container: "_Open") -> None:
        if len(self._stack) >= DEEPEST:
            raise Unreadable(f"nested deeper than {DEEPEST} levels", container.line)
        if self._stack:
            container.line = self._stack[-1].key_line() or container.line
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
        for key, again, first in self._stack[-1].add(node, line, merge):
            path = (*self._path(), key)
            self._collector.error(again, path, f"key repeated; first in line {first}")

    def _path(self) -> Path:
        return tuple(step for container in self._stack[:-1] for step in container.step())


class _Open:
    """A container whose end has not come; `before` counts the nodes before it."""

    def __init__(self, anchor: str | None, line: int, count: int) -> None:
        self.anchor, self.line, self.before = anchor, line, count - 1

    def key_line(self) -> int:
        """The line of the key whose value is awaited, 0 in a list."""
        return 0

    def add(self, node: Node, line: int, merge: bool) -> list[tuple[str, int, int]]:
        """Take a child; returns keys that came again: key, its line, the first one's line."""
        raise NotImplementedError

    def step(self) -> Path:
        """The key or index that is being read."""
        raise NotImplementedError

    def close(self) -> Node:
        """The finished node."""
        raise NotImplementedError


class _OpenItems(_Open):
    def __init__(self, anchor: str | None, line: int, count: int) -> None:
        super().__init__(anchor, line, count)
        self._items: list[Node] = []

    def add(self, node: Node, line: int, merge: bool) -> list[tuple[str, int, int]]:
        self._items.append(node)
        return []

    def step(self) -> Path:
        return (len(self._items),)

    def close(self) -> Node:
        return Items(tuple(self._items), self.line)


class _OpenTable(_Open):
    def __init__(self, anchor: str | None, line: int, count: int) -> None:
        super().__init__(anchor, line, count)
        self._entries: dict[str, Entry] = {}
        self._merged: dict[str, Entry] = {}
        self._key: Entry | None = None

    def key_line(self) -> int:
        return self._key.line if self._key else 0

    def add(self, node: Node, line: int, merge: bool) -> list[tuple[str, int, int]]:
        key, self._key = self._key, None
        if key is None:
            self._key = _key(node, line, merge)
            return []
        if key.value:
            self._merge(node, key.line)
        elif key.key in self._entries:
            return [(key.key, key.line, self._entries[key.key].line)]
        else:
            self._entries[key.key] = Entry(key.key, key.line, node)
        return []

    def step(self) -> Path:
        return (self._key.key,) if self._key else ()

    def close(self) -> Node:
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
