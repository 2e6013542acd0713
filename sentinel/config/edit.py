"""An entry more in a configuration: its text is inserted where the parser says, every other byte
stays, and what came of it is read again before anybody believes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sentinel.config.nodes import TableNode, node_data
from sentinel.config.problems import ConfigError, ProblemCollector
from sentinel.config.reader import read_yaml
from sentinel.config.yamltext import flow_text, yaml_text
from sentinel.core.errors import SentinelError

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


def _split_byte_order_mark(text: str) -> tuple[str, str]:
    """The byte order mark, which parsers do not count, and the rest."""
    rest = text.removeprefix("\ufeff")
    return text[: len(text) - len(rest)], rest


def replace_file(path: str, text: str, judge: Callable[[str], None] = lambda _beside: None) -> None:
    """Write it in one step: its reader finds the old or the new file. Mode and owner stay. `judge`
    is given the new file before it takes the old one's place, and may raise. Raises OSError."""
    import os
    import shutil
    import tempfile

    real = os.path.realpath(path)
    number, beside = tempfile.mkstemp(dir=os.path.dirname(real), prefix=".sentinel-")
    try:
        with open(number, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        shutil.copymode(real, beside)
        there = os.stat(real)
        os.chown(beside, there.st_uid, there.st_gid)
        judge(beside)
        os.replace(beside, real)
    except BaseException:
        os.unlink(beside)
        raise


def _load_data(text: str) -> dict[str, Any]:
    root = read_yaml(text.encode(), ProblemCollector())
    if not isinstance(root, TableNode):
        raise _by_hand_error("", {})
    data: dict[str, Any] = node_data(root)
    return data


Way = Callable[[], str]


def _first_right(text: str, wanted: dict[str, Any], ways: Iterator[Way], where: str) -> str:
    """The first text that means exactly that: an anchor, a tab or a comment in an odd place may
    make the obvious one mean something else."""
    for way in ways:
        try:
            after = way()
            if _load_data(after) == wanted:
                return after
        except (ConfigError, EditByHand, LookupError):
            continue
    section = where.partition(".")[0]
    old = _load_data(text).get(section) or {}
    raise _by_hand_error(where, {k: v for k, v in wanted[section].items() if old.get(k) != v})


def _by_hand_error(where: str, block: Mapping[str, Any]) -> EditByHand:
    shown = f"; write it by hand: {flow_text(dict(block))}" if block else ""
    return EditByHand(
        f"{where or 'the file'}: nothing can be added here without changing more{shown}"
    )


def _entry_ways(text: str, section: str, entry: dict[str, Any]) -> Iterator[Way]:
    import yaml

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
    import yaml

    node = _compose_nodes(text)
    for key in path:
        node = next(value for name, value in node.value if name.value == key)
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
    """Before the closing bracket, after a comma unless there is one."""
    at = node.end_mark.index - 1
    if text[at] not in "]}":
        raise LookupError(at)
    comma = ", " if node.value and not _has_comma_before(text, node) else ""
    return text[:at] + comma + words + text[at:]


def _has_comma_before(text: str, node: Any) -> bool:
    import yaml

    last = None
    for token in _scan_tokens(text):
        if token.start_mark.index >= node.end_mark.index - 1:
            break
        last = token
    return isinstance(last, yaml.FlowEntryToken)


def _replace_single(text: str, node: Any, words: str) -> str:
    """In place of a single value; nothing where it is an empty one."""
    start, end = node.start_mark.index, node.end_mark.index
    if start == end or isinstance(node.value, list):
        raise LookupError(start)
    return text[:start] + words + text[end:]


def _insert_before(text: str, node: Any, entry: dict[str, Any], column: int) -> str:
    """In front of its first key."""
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
    """The beginning of the next line; `at` itself where that begins one already."""
    if at and text[at - 1] == "\n":
        return at
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _compose_nodes(text: str) -> Any:
    """Its nodes with their marks, by the parser that reads configurations: the two of PyYAML take
    different tabs."""
    import yaml

    return yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _scan_tokens(text: str) -> Iterator[Any]:
    import yaml

    yield from yaml.scan(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _document_end(text: str) -> int:
    """Where `...` stands, or the end."""
    import yaml

    ends = (t.start_mark.index for t in _scan_tokens(text) if isinstance(t, yaml.DocumentEndToken))
    return int(next(ends, len(text)))


def _node_end(text: str, node: Any) -> int:
    """Behind the last thing that is written in it. The node's own mark is where the next thing
    begins, so that comments between them would count as its own."""
    import yaml

    nothing = (
        yaml.BlockEndToken, yaml.StreamEndToken, yaml.DocumentEndToken, yaml.DocumentStartToken,
    )  # fmt: skip
    start, end, last = node.start_mark.index, node.end_mark.index, node.start_mark.index
    for token in _scan_tokens(text):
        if start <= token.start_mark.index < end and not isinstance(token, nothing):
            last = max(last, token.end_mark.index)
    return int(last)
