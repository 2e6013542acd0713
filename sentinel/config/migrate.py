"""A file in a former form -> the same in today's: what is replaced, and all else byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from sentinel.config.problems import Collector
from sentinel.config.reader import Items, Node, Scalar, Table, read
from sentinel.config.registry import Registry, UnknownKind
from sentinel.config.yamltext import flow, written

Blocks = Mapping[str, Mapping[str, Any]]


class Former(Struct, frozen=True):
    """A check in a former form: the key that shows it, and the checks that replace it."""

    key: tuple[str, ...]
    blocks: Blocks

    def in_one_line(self) -> str:
        """The blocks as YAML."""
        return ", ".join(flow({name: block})[1:-1] for name, block in self.blocks.items())


def former(name: str, table: Table, kind: Any) -> Former | None:
    """What replaces a check of that class; None where it is in today's form."""
    found = kind.former(name, bare(table))
    return Former(*found) if found else None


def bare(node: Node) -> Any:
    """A node without its lines."""
    if isinstance(node, Table):
        return {key: bare(entry.value) for key, entry in node.entries.items()}
    return [bare(item) for item in node.items] if isinstance(node, Items) else node.value


def migrated(text: str, checks: Registry) -> tuple[str, list[str]]:
    """The new text, and the checks that have to be replaced by hand, as YAML: those that share
    parts with others by anchors. Comments stay, above the check. Raises ConfigError for what is
    no YAML."""
    import yaml

    root = read(text.encode(), Collector())
    found = dict(_former(root, checks))
    if not found:
        return text, []
    section = _below(yaml.compose(text, Loader=yaml.SafeLoader), "checks")
    shared = _shared(text)
    by_hand, cuts = list[str](), list[tuple[int, int, str]]()
    for key, value in section.value:
        if one := found.get(key.value):
            start, end = key.start_mark.index, _end(value)
            if any(start <= at < max(end, value.end_mark.index) for at in shared) or end < start:
                by_hand.append(one.in_one_line())
            elif section.flow_style:
                cuts.append((start, end, one.in_one_line()))
            else:
                indent = "\n" + " " * key.start_mark.column
                block = written({name: dict(b) for name, b in one.blocks.items()})
                lines = [*_comments(text, start, end), *block.splitlines()]
                cuts.append((start, _line_end(text, end), indent.join(lines)))
    for start, end, block in reversed(cuts):
        text = text[:start] + block + text[end:]
    return text, by_hand


def _former(root: Node, checks: Registry) -> Iterator[tuple[str, Former]]:
    section = root.entries.get("checks") if isinstance(root, Table) else None
    entries = section.value.entries if section and isinstance(section.value, Table) else {}
    for name, entry in entries.items():
        kind = entry.value.entries.get("kind") if isinstance(entry.value, Table) else None
        if kind is not None and isinstance(kind.value, Scalar):
            try:
                found = former(name, entry.value, checks.load(kind.value.text))
            except UnknownKind:
                continue
            if found:
                yield name, found


def _below(root: Any, key: str) -> Any:
    return next(value for name, value in root.value if name.value == key)


def _shared(text: str) -> list[int]:
    """Where anchors and aliases stand."""
    import yaml

    events: Any = yaml.parse(text, Loader=yaml.SafeLoader)
    return [e.start_mark.index for e in events if getattr(e, "anchor", None)]


def _end(node: Any) -> int:
    """Where the last value ends: the mark of a block is where the next thing begins."""
    if isinstance(node.value, list) and node.value and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _line_end(text: str, at: int) -> int:
    """The end of that line where nothing but a comment follows."""
    end = text.find("\n", at)
    rest = text[at : len(text) if end < 0 else end]
    return at + len(rest) if rest.lstrip().startswith("#") or not rest.strip() else at


def _comments(text: str, start: int, end: int) -> list[str]:
    """Those of the lines from `start` to the line of `end`."""
    import yaml

    ends: dict[int, int] = {}
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        for line in range(token.start_mark.line, token.end_mark.line + 1):
            whole = line < token.end_mark.line
            column = 1 << 30 if whole else token.end_mark.column
            ends[line] = max(ends.get(line, 0), column)
    first, last = text.count("\n", 0, start), text.count("\n", 0, end)
    rest = (
        line[ends.get(n, 0) :].strip()
        for n, line in enumerate(text.split("\n")[: last + 1])
        if n >= first
    )
    return [comment for comment in rest if comment.startswith("#")]
