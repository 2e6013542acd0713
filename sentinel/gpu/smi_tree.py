"""Reads `nvidia-smi -q`, as XML or as indented text, into a small tree. Pure."""

from __future__ import annotations

import re
from xml.parsers import expat

from msgspec import Struct

from sentinel.core.long_lines import cut_line, cut_long_lines
from sentinel.core.text import shortened, visible
from sentinel.gpu.errors import Unreadable

DEEPEST = 32
MOST = 500_000
"""Elements at most: 16 GPUs have about 15,000."""


class Tree(Struct, gc=False):
    """A named node with text or with children, in order; names may repeat."""

    name: str
    text: str = ""
    mark: str = ""
    children: list[Tree] = []

    def at(self, path: str) -> str:
        """The text of the node at `a/b/c`, stripped; empty if there is none."""
        found = self.find(path)
        return found.text.strip() if found else ""

    def find(self, path: str) -> Tree | None:
        """The first node at `a/b/c`; None if there is none."""
        found = self
        for name in path.split("/"):
            for child in found.children:
                if child.name == name:
                    found = child
                    break
            else:
                return None
        return found

    def all(self, name: str) -> list[Tree]:
        """The children of that name."""
        return [child for child in self.children if child.name == name]

    def list_fields(self, skipped: frozenset[str], path: str = "") -> list[tuple[str, str]]:
        """The path and the stripped text of each node below that has text, in order; none of what
        stands below a name in `skipped`."""
        found: list[tuple[str, str]] = []
        for child in self.children:
            if child.name in skipped:
                continue
            name = path + child.name
            if text := child.text.strip():
                found.append((name, text))
            if child.children:
                found += child.list_fields(skipped, f"{name}/")
        return found


def from_xml(text: str) -> tuple[Tree, str]:
    """The root, and the version that its DTD names (`v12`). Raises Unreadable.

    Entities are refused: a node's output must not grow, or read files, when it is parsed."""
    text = _drop_clock_lists(text)
    if text.count("<") - text.count("</") > MOST:
        raise _too_large()
    reader = _Reader()
    try:
        reader.parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise Unreadable(f"nvidia-smi -q -x is no whole XML: {error}") from error
    if reader.root is None:
        raise Unreadable("nvidia-smi -q -x is an XML document without an element")
    return reader.root, reader.version


def _drop_clock_lists(text: str) -> str:
    """The page without the clocks that a GPU can run at. Nobody reads them here, and they are half
    of an H200's page."""
    start, end = "<supported_clocks>", "</supported_clocks>"
    first, *others = text.split(start)
    parts = (part.partition(end) for part in others)
    return first + "".join(rest if closed else start + part for part, closed, rest in parts)


class _Reader:
    def __init__(self) -> None:
        self.root: Tree | None = None
        self.version = ""
        self._open: list[Tree] = []
        self.parser = expat.ParserCreate("UTF-8")  # whatever encoding the document declares
        self.parser.buffer_text = True
        self.parser.ordered_attributes = True  # a list, which is quicker to make
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = _refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data

    def _doctype(self, name: str, system: str | None, public: str | None, inner: bool) -> None:
        found = re.search(r"_(v[0-9]{1,3})\.dtd$", system or "")
        self.version = found[1] if found else ""

    def _start(self, name: str, attributes: list[str]) -> None:
        if len(self._open) >= DEEPEST:
            raise _too_large()
        node = Tree(name)
        if attributes:
            node.mark = dict(zip(attributes[::2], attributes[1::2], strict=True)).get("id", "")
        if self._open:
            self._open[-1].children.append(node)
        elif self.root is None:
            self.root = node
        self._open.append(node)

    def _end(self, name: str) -> None:
        self._open.pop()

    def _data(self, data: str) -> None:
        if not data.isspace():  # as between two elements
            self._open[-1].text = cut_line(self._open[-1].text + data)


def _too_large() -> Unreadable:
    return Unreadable("nvidia-smi -q -x is far larger or deeper than any GPU makes it")


def _refuse(*_: object) -> None:
    raise Unreadable("nvidia-smi -q -x declares an entity: that is not nvidia-smi")


_LINE = re.compile(r"( *)(\S[^:]*)(?:: ?(.*))?")
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_SAME = {
    "gpu_uuid": "uuid",
    "serial_number": "serial",
    "gpu_current_temp": "gpu_temp",
    "memory_current_temp": "memory_temp",
    "gpu": "gpu_util",
}
"""Names of the XML for names in the text that differ."""


def from_text(text: str) -> Tree:
    """The tree of `nvidia-smi -q`, with the names of the XML if they are the same. Raises
    Unreadable."""
    root = Tree("nvidia_smi_log", children=[])
    stack: list[tuple[int, Tree]] = [(-1, root)]
    for at, line in enumerate(cut_long_lines(text).splitlines()):
        if at > MOST:
            raise Unreadable("nvidia-smi -q prints more lines than any GPU makes")
        _take(line.expandtabs(), stack, root)
    if not root.all("gpu"):
        shown = visible(shortened(text.strip().partition("\n")[0], 80))
        raise Unreadable(f"no output of nvidia-smi -q: {shown or 'nothing'}")
    return root


def _take(line: str, stack: list[tuple[int, Tree]], root: Tree) -> None:
    if gpu := _GPU.fullmatch(line.strip()):
        stack[1:] = [(0, Tree("gpu", mark=gpu[1], children=[]))]
        root.children.append(stack[-1][1])
        return
    match = _LINE.fullmatch(line.rstrip())
    if not match:
        return
    indent = len(match[1])
    while len(stack) > 1 and stack[-1][0] >= indent:
        stack.pop()
    node = Tree(_name(match[2].rstrip(" ")), text=match[3] or "", children=[])
    if len(stack) <= DEEPEST:
        stack[-1][1].children.append(node)
        stack.append((indent, node))


def _name(title: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
    return _SAME.get(name, name)
