"""The words for what a setting expects, and for what stands there in its place."""

import re
from collections.abc import Iterable
from typing import Any

from sentinel.config.nodes import Items, Node, Scalar, Table
from sentinel.config.shapes import Leaf, ListOf, OneOf, Record, TableOf, constraints, shape, words
from sentinel.core.settings import FilePath, Secret
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration, Share, Size

_NAMES: dict[Any, str] = {
    str: "text",
    Secret: "text",
    FilePath: "a path",
    re.Pattern: "a regular expression",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    Duration: "a duration like 15m",
    Size: "a size like 40TB",
    Share: "a share like 85%",
    type(None): "nothing",
    Any: "anything",
}
_LONGEST = 60  # characters of a value that are worth repeating
_CONTAINERS = {Record: "a mapping", TableOf: "a mapping", ListOf: "a list"}


def expected(hint: Any) -> str:
    """`a duration like 15m or auto`."""
    found = shape(hint)
    if isinstance(found, OneOf):
        return _joined(dict.fromkeys(expected(t) for t in found.types if t is not type(None)))
    if not isinstance(found, Leaf):
        return _CONTAINERS[type(found)]
    text = _joined(words(hint)) or _NAMES.get(found.type, "") or f"a {found.type.__name__}"
    return text + "".join(_bounds(meta) for meta in constraints(hint))


def got(node: Node, secret: bool = False) -> str:
    """`the number 90`, `text 'abc'`, `a list`; of a secret only the type."""
    if isinstance(node, Items | Table):
        return "a list" if isinstance(node, Items) else "a mapping"
    if node.value is None:
        return "nothing"
    if isinstance(node.value, bool):
        return "a truth value" if secret else node.text
    name = "text" if isinstance(node.value, str) else "the number"
    return f"a {name.split()[-1]}" if secret else f"{name} {quoted(node)}"


def quoted(node: Scalar) -> str:
    """The value as it was written, in one line and not too much of it."""
    text = shortened(visible(node.text), _LONGEST)
    return f"'{text}'" if isinstance(node.value, str) else text


def as_list(node: Scalar) -> str:
    """The YAML of the list that words were probably meant for: `[ssh, login1]`."""
    from sentinel.config.yamltext import flow

    if len(node.text) > _LONGEST:
        return "it in [ ]"
    return f"{flow(node.text.split())}, or {flow([node.text])} if it is one item"


def _joined(names: Iterable[str]) -> str:
    *most, last = [*names] or [""]
    return f"{', '.join(most)} or {last}" if most else last


def _bounds(meta: Any) -> str:
    signs = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = [f"{sign} {getattr(meta, k)}" for k, sign in signs.items() if _has(meta, k)]
    limits += [f"that matches {meta.pattern}"] if meta.pattern else []
    return f" {' and '.join(limits)}" if limits else ""


def _has(meta: Any, name: str) -> bool:
    return getattr(meta, name) is not None
