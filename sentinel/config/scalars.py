"""Converts one value of the file or the command line to the type of its field."""

import math
import os
import re
import warnings
from collections.abc import Mapping
from typing import Any

import msgspec

from sentinel.config.near_misses import did_you_mean, nearest_word
from sentinel.config.nodes import ScalarNode, resolve_scalar
from sentinel.config.shapes import LeafShape, allowed_words, type_shape
from sentinel.config.sources import expand_path
from sentinel.config.wording import describe_expected, describe_given, quote_value
from sentinel.core import patterns
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath, Secret

_BOOLEAN_ONCE = ("yes", "no", "on", "off", "y", "n")
MAX_PATTERN_CHARACTERS = 10_000


def convert_leaf(node: ScalarNode, hint: Any, env: Mapping[str, str], where: str = "") -> Any:
    """The value with the required type. Raises Invalid, whose text never contains a Secret. `where`
    describes the place, for a regular expression that takes too long."""
    found = type_shape(hint)
    assert isinstance(found, LeafShape)
    if found.type is Any:
        return node.value
    if found.type is type(None) and node.value is None:
        return None
    if node.value is None and not node.loose:
        remedy = '; a bare ~ is YAML for nothing, write "~"' if node.text == "~" else ""
        raise Invalid(f"it has no value; expected {describe_expected(hint)}{remedy}")
    if found.type is re.Pattern:
        return _pattern_value(_text_value(node, hint), where)
    return _typed_value(node, hint, found.type, env)


def _typed_value(node: ScalarNode, hint: Any, kind: Any, env: Mapping[str, str]) -> Any:
    if kind is bool:
        return _boolean_value(node)
    if kind is Secret:
        return Secret(_text_value(node, hint, secret=True))
    if kind is FilePath:
        return _path_value(_text_value(node, hint), env, here=node.loose)
    if isinstance(kind, type) and hasattr(kind, "parse"):
        return _parse_own_type(node, kind, hint)
    if kind is str or (node.loose and node.text in allowed_words(hint)):
        return _check_constraints(_text_value(node, hint), hint, node)
    return _check_constraints(node.value, hint, node)


def _text_value(node: ScalarNode, hint: Any, secret: bool = False) -> str:
    if isinstance(node.value, str):
        return node.value
    if node.loose:
        return node.text
    remedy = "put it in quotes" if secret else f'write "{node.text}" in quotes'
    raise Invalid(
        f"expected {describe_expected(hint)}, got {describe_given(node, secret)}; {remedy}"
    )


def _boolean_value(node: ScalarNode) -> bool:
    if isinstance(node.value, bool):
        return node.value
    if node.loose and not node.text:
        return True
    problem = f"expected true or false, got {describe_given(node)}{_quotes_remedy(node, bool)}"
    if isinstance(node.value, str) and node.value.lower() in _BOOLEAN_ONCE:
        meant = "true" if node.value.lower() in ("yes", "on", "y") else "false"
        problem += f"; in YAML 1.2 that is text, write {meant}"
    raise Invalid(problem)


def _path_value(text: str, env: Mapping[str, str], here: bool) -> FilePath:
    """A path. On the command line (`here`) it is relative to the current directory."""
    path = expand_path(text, env)
    if not path or "\0" in path:
        raise Invalid("the path is empty" if not path else "the path holds a NUL byte")
    return FilePath(os.path.abspath(path) if here and not path.startswith("/") else path)


def _pattern_value(text: str, where: str) -> re.Pattern[str]:
    if len(text) > MAX_PATTERN_CHARACTERS:
        raise Invalid(f"the regular expression is longer than {MAX_PATTERN_CHARACTERS} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return patterns.compile_pattern(text, where=where)
    except (re.error, OverflowError, RecursionError) as error:
        raise Invalid(f"{text!r} is no regular expression: {error}") from None


def _parse_own_type(node: ScalarNode, kind: Any, hint: Any) -> Any:
    """A type with its own `parse`: Duration, Size, Share and those of plugins."""
    if isinstance(node.value, bool):
        raise Invalid(f"expected {describe_expected(hint)}, got {describe_given(node)}")
    return kind.parse(node.text)


def _check_constraints(value: Any, hint: Any, node: ScalarNode) -> Any:
    try:
        converted = msgspec.convert(value, hint)
    except (msgspec.ValidationError, OverflowError, SystemError):  # the last: msgspec to 0.21
        raise Invalid(_leaf_mismatch(node, hint)) from None
    if isinstance(converted, float) and not math.isfinite(converted):
        raise Invalid(f"expected a finite number, got {node.text}")
    return converted


def _leaf_mismatch(node: ScalarNode, hint: Any) -> str:
    known = allowed_words(hint)
    if known and nearest_word(node.text, known):
        return (
            f"{quote_value(node)} is not one of {', '.join(known)}{did_you_mean(node.text, known)}"
        )
    return f"expected {describe_expected(hint)}, got {describe_given(node)}{_quotes_remedy(node, hint)}"


def _quotes_remedy(node: ScalarNode, hint: Any) -> str:
    """The remedy where only the quotes are too much."""
    kind = getattr(type_shape(hint), "type", None)
    fitting: dict[Any, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float)}
    too_much = isinstance(node.value, str) and type(resolve_scalar(node.text)) in fitting.get(
        kind, ()
    )
    return "; remove the quotes" if too_much else ""
