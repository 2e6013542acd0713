"""Slurm's hostlists: `node-[0-3,7],gpu08` and the names it stands for."""

import re
from collections.abc import Iterable

from sentinel.core.errors import Invalid
from sentinel.core.text import shortened, visible

MOST = 100_000
"""Names one list may stand for: `n[0-999999999]` is a slip of the finger, not a cluster."""

_STRANGE = re.compile(r"[^A-Za-z0-9._,\[\]-]")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


def expand(text: str) -> tuple[str, ...]:
    """The names, each once, in order; Invalid for whatever is not plainly a list of nodes."""
    compact = text.strip()
    if not compact:
        raise Invalid("no node is named; write nodes like node-[0-3],gpu08")
    if strange := _STRANGE.search(compact):
        raise Invalid(f"{_quoted(compact)} is no list of nodes: {strange[0]!r} is in no node name")
    if _size(compact) > MOST:
        raise Invalid(f"{_quoted(compact)} stands for more than {MOST} nodes")
    names = _parsed(compact)
    for name in names:
        check_name(name)
    return names


def check_name(name: str) -> str:
    """The name itself if it can be nothing but a node's: no option, user, path or command."""
    if not _NAME.fullmatch(name):
        raise Invalid(f"{_quoted(name)} is no name of a node")
    return name


def fold(names: Iterable[str]) -> str:
    """A short hostlist of these names that Slurm reads: it takes brackets only where a name ends
    (slurm.conf(5), NodeName: `unit[0-31]rack` is invalid)."""
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    known = {check_name(name) for name in names}
    odd = sorted(name for name in known if not name[-1].isdigit())
    folded = NodeSet.fromlist(sorted(known.difference(odd)), resolver=RESOLVER_NOGROUP)
    folded.fold_axis = (-1,)
    return ",".join(filter(None, [str(folded), *odd]))


def _parsed(text: str) -> tuple[str, ...]:
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise Invalid(f"{_quoted(text)} is no list of nodes: {visible(str(error))}") from None


def _size(text: str) -> int:
    """How many names there are at most, without making one of them."""
    return sum(_item_size(item, text) for item in re.split(r",(?![^\[]*\])", text))


def _item_size(item: str, text: str) -> int:
    size = 1
    for inside in _BRACKETS.findall(item):
        size *= sum(_range_size(part, text) for part in inside.split(","))
    if not item or "[" in (rest := _BRACKETS.sub("0", item)) or "]" in rest:
        raise Invalid(f"{_quoted(text)} is no list of nodes: a name or a bracket is missing")
    return size


def _range_size(part: str, text: str) -> int:
    match = _RANGE.fullmatch(part)
    if not match:
        raise Invalid(f"{_quoted(text)} is no list of nodes: {part!r} is no range of numbers")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise Invalid(f"{_quoted(text)} is no list of nodes: the range {part} runs backwards")
    return last - first + 1


def _quoted(text: str) -> str:
    return repr(shortened(text, 60))
