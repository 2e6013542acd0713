"""One value of the file or the command line -> what its type wants."""

import math
import os
import re
import warnings
from collections.abc import Mapping
from typing import Any

import msgspec

from sentinel.config.nodes import Scalar, resolve
from sentinel.config.problems import did_you_mean, near
from sentinel.config.shapes import Leaf, shape, words
from sentinel.config.sources import expanded
from sentinel.config.wording import expected, got, quoted
from sentinel.core import patterns
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath, Secret

_BOOLEAN_ONCE = ("yes", "no", "on", "off", "y", "n")
MAX_PATTERN_CHARACTERS = 10_000


def leaf(node: Scalar, hint: Any, env: Mapping[str, str], where: str = "") -> Any:
    """The value as the type wants it; raises Invalid, which never holds a Secret's text. `where`:
    what a regular expression says of its place when it is given up."""
    found = shape(hint)
    assert isinstance(found, Leaf)
    if found.type is Any:
        return node.value
    if found.type is type(None) and node.value is None:
        return None
    if node.value is None and not node.loose:
        remedy = '; a bare ~ is YAML for nothing, write "~"' if node.text == "~" else ""
        raise Invalid(f"it has no value; expected {expected(hint)}{remedy}")
    if found.type is re.Pattern:
        return _pattern(_text(node, hint), where)
    return _typed(node, hint, found.type, env)


def _typed(node: Scalar, hint: Any, kind: Any, env: Mapping[str, str]) -> Any:
    if kind is bool:
        return _boolean(node)
    if kind is Secret:
        return Secret(_text(node, hint, secret=True))
    if kind is FilePath:
        return _path(_text(node, hint), env, here=node.loose)
    if isinstance(kind, type) and hasattr(kind, "parse"):
        return _parsed(node, kind, hint)
    if kind is str or (node.loose and node.text in words(hint)):
        return _checked(_text(node, hint), hint, node)
    return _checked(node.value, hint, node)


def _text(node: Scalar, hint: Any, secret: bool = False) -> str:
    if isinstance(node.value, str):
        return node.value
    if node.loose:
        return node.text
    remedy = "put it in quotes" if secret else f'write "{node.text}" in quotes'
    raise Invalid(f"expected {expected(hint)}, got {got(node, secret)}; {remedy}")


def _boolean(node: Scalar) -> bool:
    if isinstance(node.value, bool):
        return node.value
    if node.loose and not node.text:
        return True
    problem = f"expected true or false, got {got(node)}{_unquote(node, bool)}"
    if isinstance(node.value, str) and node.value.lower() in _BOOLEAN_ONCE:
        meant = "true" if node.value.lower() in ("yes", "on", "y") else "false"
        problem += f"; in YAML 1.2 that is text, write {meant}"
    raise Invalid(problem)


def _path(text: str, env: Mapping[str, str], here: bool) -> FilePath:
    """What people type on a command line (`here`) is meant from where they are."""
    path = expanded(text, env)
    if not path or "\0" in path:
        raise Invalid("the path is empty" if not path else "the path holds a NUL byte")
    return FilePath(os.path.abspath(path) if here and not path.startswith("/") else path)


def _pattern(text: str, where: str) -> re.Pattern[str]:
    if len(text) > MAX_PATTERN_CHARACTERS:
        raise Invalid(f"the regular expression is longer than {MAX_PATTERN_CHARACTERS} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return patterns.compiled(text, where=where)
    except (re.error, OverflowError, RecursionError) as error:
        raise Invalid(f"{text!r} is no regular expression: {error}") from None


def _parsed(node: Scalar, kind: Any, hint: Any) -> Any:
    """A type that brings its own `parse`: Duration, Size, Share and those of plugins."""
    if isinstance(node.value, bool):
        raise Invalid(f"expected {expected(hint)}, got {got(node)}")
    return kind.parse(node.text)


def _checked(value: Any, hint: Any, node: Scalar) -> Any:
    try:
        converted = msgspec.convert(value, hint)
    except (msgspec.ValidationError, OverflowError):
        raise Invalid(_mismatch(node, hint)) from None
    if isinstance(converted, float) and not math.isfinite(converted):
        raise Invalid(f"expected a finite number, got {node.text}")
    return converted


def _mismatch(node: Scalar, hint: Any) -> str:
    known = words(hint)
    if known and near(node.text, known):
        return f"{quoted(node)} is not one of {', '.join(known)}{did_you_mean(node.text, known)}"
    return f"expected {expected(hint)}, got {got(node)}{_unquote(node, hint)}"


def _unquote(node: Scalar, hint: Any) -> str:
    """The remedy where only the quotes are too much."""
    kind = getattr(shape(hint), "type", None)
    fitting: dict[Any, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float)}
    too_much = isinstance(node.value, str) and type(resolve(node.text)) in fitting.get(kind, ())
    return "; remove the quotes" if too_much else ""
