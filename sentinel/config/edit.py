"""An entry more in a configuration: its text is inserted where the parser says, every other byte
stays, and what came of it is read again before anybody believes it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import yaml

from sentinel.config.nodes import TableNode, node_data
from sentinel.config.problems import ConfigError, ProblemCollector
from sentinel.config.reader import read_yaml
from sentinel.config.yamltext import flow_text, yaml_text
from sentinel.core.errors import SentinelError
from sentinel.proc.whole_files import replace_whole_file

STEP = "  "


class EditByHand(SentinelError):
    """The place cannot be found without touching something else; says what to write, and where."""

    exit_code = 65
    """EX_DATAERR of sysexits(3)."""


def insert_entry(text: str, section: str, name: str, block: Mapping[str, Any]) -> str:
    """The text with `name: block` in that section, which is begun where there is none. Raises
    EditByHand, or ConfigError for a text that is no YAML."""
    mark, text = _split_byte_order_mark(text)
    before = _load_data(text)
    have = before.get(section) or {}
    if not isinstance(have, dict) or name in have:
        raise _by_hand_error(section, {name: dict(block)})
    wanted = {**before, section: {**have, name: dict(block)}}
    ways = _entry_ways(text, section, {name: dict(block)})
    return mark + _first_right(text, wanted, ways, section)


def insert_item(text: str, path: tuple[str, str, str], item: str) -> str:
    """The text with one more item in the list at `path`; a single word becomes a list. Raises
    EditByHand or ConfigError."""
    mark, text = _split_byte_order_mark(text)
    before, (section, name, key) = _load_data(text), path
    have = before[section][name][key]
    items = [*have, item] if isinstance(have, list) else [have, item]
    block = {**before[section][name], key: items}
    wanted = {**before, section: {**before[section], name: block}}
    where = f"{section}.{name}.{key}"
    return mark + _first_right(text, wanted, _item_ways(text, path, item), where)


def remove_entry(text: str, section: str, name: str, comments: Collection[str] = ()) -> str:
    """The text without that entry of the section, and without those of `comments` that stand right
    above it. Raises EditByHand or ConfigError."""
    mark, text = _split_byte_order_mark(text)
    before = _load_data(text)
    rest = {k: v for k, v in before[section].items() if k != name}

    def cut_entry() -> str:
        return _cut_pair(text, section, name, comments)

    ways = iter((cut_entry, lambda: _end_section(cut_entry(), section)))
    return mark + _first_right(
        text, {**before, section: rest}, ways, f"{section}.{name}", removing=True
    )


def remove_item(text: str, path: tuple[str, str, str], item: str) -> str:
    """The text with one item less in the list at `path`, which holds others. Raises EditByHand or
    ConfigError."""
    mark, text = _split_byte_order_mark(text)
    before, (section, name, key) = _load_data(text), path
    old = before[section][name]
    block = {**old, key: [one for one in old[key] if one != item]}
    wanted = {**before, section: {**before[section], name: block}}
    ways = iter((lambda: _cut_item(text, path, item),))
    return mark + _first_right(text, wanted, ways, ".".join(path), removing=True)


def _split_byte_order_mark(text: str) -> tuple[str, str]:
    """The byte order mark, which parsers do not count, and the rest."""
    rest = text.removeprefix("\ufeff")
    return text[: len(text) - len(rest)], rest


def replace_file(path: str, text: str, judge: Callable[[str], None] = lambda _beside: None) -> None:
    """Write it in one step: its reader finds the old or the new file. Mode and owner stay. `judge`
    is given the new file before it takes the old one's place, and may raise. Raises OSError."""
    real = os.path.realpath(path)
    there = os.stat(real)
    replace_whole_file(
        real,
        text.encode(),
        stat.S_IMODE(there.st_mode) & 0o777,
        owner=(there.st_uid, there.st_gid),
        judge=judge,
    )


def _load_data(text: str) -> dict[str, Any]:
    root = read_yaml(text.encode(), ProblemCollector())
    if not isinstance(root, TableNode):
        raise _by_hand_error("", {})
    data: dict[str, Any] = node_data(root)
    return data


Way = Callable[[], str]


def _first_right(
    text: str, wanted: dict[str, Any], ways: Iterator[Way], where: str, *, removing: bool = False
) -> str:
    """The first text that means exactly that: an anchor, a tab or a comment in an odd place may
    make the obvious one mean something else."""
    for way in ways:
        try:
            after = way()
            if _load_data(after) == wanted:
                return after
        except (ConfigError, EditByHand, LookupError, StopIteration, yaml.YAMLError):
            continue
    if removing:
        raise EditByHand(f"{where}: it cannot be removed without changing more; do it by hand")
    section = where.partition(".")[0]
    old = _load_data(text).get(section) or {}
    raise _by_hand_error(where, {k: v for k, v in wanted[section].items() if old.get(k) != v})


def _by_hand_error(where: str, block: Mapping[str, Any]) -> EditByHand:
    shown = f"; write it by hand: {flow_text(dict(block))}" if block else ""
    return EditByHand(
        f"{where or 'the file'}: nothing can be added here without changing more{shown}"
    )


def _entry_ways(text: str, section: str, entry: dict[str, Any]) -> Iterator[Way]:
    root = _compose_nodes(text)
    mapping = isinstance(root, yaml.MappingNode)
    pairs = [(k, v) for k, v in root.value if k.value == section] if mapping else []
    for key, value in pairs:
        if isinstance(value, yaml.MappingNode):
            yield from _insert_into(text, value, entry, section)
        yield lambda value=value: _replace_single(text, value, flow_text(entry))  # type: ignore[misc]
        column = key.start_mark.column + len(STEP)
        yield lambda key=key, c=column: _insert_after_line(text, key.end_mark.index, entry, c)  # type: ignore[misc]
    if not pairs:
        if mapping:
            yield from _insert_into(text, root, {section: entry}, "")
        yield lambda: _insert_after_line(text, _document_end(text), {section: entry}, 0)


def _insert_into(text: str, node: Any, entry: dict[str, Any], section: str) -> Iterator[Way]:
    """At its end, in its own style; the other way as its last line is written."""
    if node.flow_style:
        yield lambda: _insert_in_brackets(text, node, flow_text(entry)[1:-1])
        return
    column = node.value[0][0].start_mark.column if node.value else node.start_mark.column
    yield lambda: _insert_after_line(text, _node_end(text, node), entry, column)
    yield lambda: _insert_before(text, node, entry, column)


def _item_ways(text: str, path: tuple[str, str, str], item: str) -> Iterator[Way]:
    node = _find_node(text, path)
    if isinstance(node, yaml.ScalarNode):
        start, end = node.start_mark.index, node.end_mark.index
        yield lambda: _replace_single(text, node, f"[{text[start:end]}, {flow_text(item)}]")
        yield lambda: _replace_single(text, node, flow_text([node.value, item]))
    elif node.flow_style:
        yield lambda: _insert_in_brackets(text, node, flow_text(item))
    else:
        line = f"{' ' * node.start_mark.column}- {flow_text(item)}"
        yield lambda: _insert_lines(text, _line_end(text, _node_end(text, node)), [line])


def _insert_in_brackets(text: str, node: Any, words: str) -> str:
    """Insert before the closing bracket, with a comma before it if needed."""
    at = node.end_mark.index - 1
    if text[at] not in "]}":
        raise LookupError(at)
    comma = ", " if node.value and not _has_comma_before(text, node) else ""
    return text[:at] + comma + words + text[at:]


def _has_comma_before(text: str, node: Any) -> bool:
    last = None
    for token in _scan_tokens(text):
        if token.start_mark.index >= node.end_mark.index - 1:
            break
        last = token
    return isinstance(last, yaml.FlowEntryToken)


def _replace_single(text: str, node: Any, words: str) -> str:
    """Replace a single value. An empty value is just removed."""
    start, end = node.start_mark.index, node.end_mark.index
    if start == end or isinstance(node.value, list):
        raise LookupError(start)
    return text[:start] + words + text[end:]


def _cut_pair(text: str, section: str, name: str, comments: Collection[str]) -> str:
    """Without that key and its value: whole lines, or in brackets with one comma."""
    node = _find_node(text, (section,))
    key, value = next((k, v) for k, v in node.value if k.value == name)
    if node.flow_style:
        return _cut_in_brackets(text, key.start_mark.index, value.end_mark.index)
    start = text.rfind("\n", 0, key.start_mark.index) + 1
    while (above := text.rfind("\n", 0, max(0, start - 1)) + 1) < start and (
        text[above:start].strip() in comments
    ):
        start = above
    end = _line_end(text, _node_end(text, value))
    if text[:start].endswith("\n\n") and text[end : end + 1] in ("", "\n"):
        start -= 1
    return text[:start] + text[end:]


def _cut_item(text: str, path: tuple[str, str, str], item: str) -> str:
    """Without that item of a list: its line, or in brackets with one comma."""
    node = _find_node(text, path)
    found = next(one for one in node.value if one.value == item)
    if node.flow_style:
        return _cut_in_brackets(text, found.start_mark.index, found.end_mark.index)
    start = text.rfind("\n", 0, found.start_mark.index) + 1
    return text[:start] + text[_line_end(text, found.end_mark.index) :]


def _cut_in_brackets(text: str, start: int, end: int) -> str:
    """Cut the item with the comma after it, or else the one before it."""
    if behind := re.match(r"\s*,\s*", text[end:]):
        return text[:start] + text[end + behind.end() :]
    return re.sub(r",\s*$", "", text[:start]) + text[end:]


def _end_section(text: str, section: str) -> str:
    """A section in which nothing is left, as an empty one."""
    root = _compose_nodes(text)
    key = next(k for k, _ in root.value if k.value == section)
    at = text.index(":", key.end_mark.index) + 1
    return f"{text[:at]} {{}}{text[at:]}"


def _find_node(text: str, path: Iterable[str]) -> Any:
    node = _compose_nodes(text)
    for key in path:
        node = next(value for name, value in node.value if name.value == key)
    return node


def _insert_before(text: str, node: Any, entry: dict[str, Any], column: int) -> str:
    """Insert before the first key."""
    start = node.value[0][0].start_mark.index
    lines = [f"{' ' * column}{line}" for line in yaml_text(entry).splitlines()]
    return _insert_lines(text, text.rfind("\n", 0, start) + 1, lines)


def _insert_after_line(text: str, at: int, entry: dict[str, Any], column: int) -> str:
    lines = [f"{' ' * column}{line}" for line in yaml_text(entry).splitlines()]
    return _insert_lines(text, _line_end(text, at), lines)


def _insert_lines(text: str, at: int, lines: list[str]) -> str:
    """Whole lines at the beginning of one, ended as the file ends its lines."""
    end = "\r\n" if "\r\n" in text else "\n"
    before = "" if at == 0 or text[at - 1] in "\r\n" else end
    return text[:at] + before + "".join(f"{line}{end}" for line in lines) + text[at:]


def _line_end(text: str, at: int) -> int:
    """The beginning of the next line. `at` itself, if it begins a line."""
    if at and text[at - 1] == "\n":
        return at
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _compose_nodes(text: str) -> Any:
    """Its nodes with their marks, by the parser that reads configurations: the two of PyYAML take
    different tabs."""
    return yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _scan_tokens(text: str) -> Iterator[Any]:
    yield from yaml.scan(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _document_end(text: str) -> int:
    """The position of `...`, or the end."""
    ends = (t.start_mark.index for t in _scan_tokens(text) if isinstance(t, yaml.DocumentEndToken))
    return int(next(ends, len(text)))


def _node_end(text: str, node: Any) -> int:
    """Behind the last thing that is written in it. The node's own mark is where the next thing
    begins, so that comments between them would count as its own."""
    nothing = (
        yaml.BlockEndToken, yaml.StreamEndToken, yaml.DocumentEndToken, yaml.DocumentStartToken,
    )  # fmt: skip
    start, end, last = node.start_mark.index, node.end_mark.index, node.start_mark.index
    for token in _scan_tokens(text):
        if start <= token.start_mark.index < end and not isinstance(token, nothing):
            last = max(last, token.end_mark.index)
    return int(last)
