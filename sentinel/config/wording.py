"""Texts for the expected value of a setting, and for the value that was found."""

import re
from collections.abc import Iterable
from typing import Any

from sentinel.config.nodes import ConfigNode, ListNode, ScalarNode, TableNode
from sentinel.config.shapes import (
    LeafShape,
    ListShape,
    RecordShape,
    TableShape,
    UnionShape,
    allowed_words,
    hint_constraints,
    type_shape,
)
from sentinel.config.yamltext import flow_text
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
_LONGEST = 60  # longer values are not repeated in messages
_CONTAINERS = {RecordShape: "a mapping", TableShape: "a mapping", ListShape: "a list"}


def describe_expected(hint: Any) -> str:
    """`a duration like 15m or auto`."""
    found = type_shape(hint)
    if isinstance(found, UnionShape):
        return _join_names(
            dict.fromkeys(describe_expected(t) for t in found.types if t is not type(None))
        )
    if not isinstance(found, LeafShape):
        return _CONTAINERS[type(found)]
    text = (
        _join_names(allowed_words(hint)) or _NAMES.get(found.type, "") or f"a {found.type.__name__}"
    )
    return text + "".join(_bounds_words(meta) for meta in hint_constraints(hint))


def describe_given(node: ConfigNode, secret: bool = False) -> str:
    """`the number 90`, `text 'abc'`, `a list`; of a secret only the type."""
    if isinstance(node, ListNode | TableNode):
        return "a list" if isinstance(node, ListNode) else "a mapping"
    if node.value is None:
        return "nothing"
    if isinstance(node.value, bool):
        return "a truth value" if secret else node.text
    name = "text" if isinstance(node.value, str) else "the number"
    return f"a {name.split()[-1]}" if secret else f"{name} {quote_value(node)}"


def quote_value(node: ScalarNode) -> str:
    """The value as it was written, in one line and not too much of it."""
    text = shortened(visible(node.text), _LONGEST)
    return f"'{text}'" if isinstance(node.value, str) else text


def suggest_list(node: ScalarNode) -> str:
    """The YAML list that the words probably should be: `[ssh, login1]`."""
    if len(node.text) > _LONGEST:
        return "it in [ ]"
    return f"{flow_text(node.text.split())}, or {flow_text([node.text])} if it is one item"


def _join_names(names: Iterable[str]) -> str:
    *most, last = [*names] or [""]
    return f"{', '.join(most)} or {last}" if most else last


def _bounds_words(meta: Any) -> str:
    signs = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = [f"{sign} {getattr(meta, k)}" for k, sign in signs.items() if _has_limit(meta, k)]
    limits += [f"that matches {meta.pattern}"] if meta.pattern else []
    return f" {' and '.join(limits)}" if limits else ""


def _has_limit(meta: Any, name: str) -> bool:
    return getattr(meta, name) is not None
