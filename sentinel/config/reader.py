"""YAML text -> nodes that know their lines. Bounded, safe, and strict about repeated keys."""

import re
from collections.abc import Iterator
from typing import Any

from sentinel.config.compose import Composer, Unreadable
from sentinel.config.problems import Collector
from sentinel.config.tree import Node, Scalar, Table

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""All but c-printable of https://yaml.org/spec/1.2.2/#51-character-set."""

_REMEDIES = {
    "mapping values are not allowed": "; put a text that holds ': ' in quotes",
    "cannot start any token": "; put a text that begins with such a character in quotes",
}

_HOST_LIST = re.compile(r"[\w.-]\[[0-9,-]+\]")
_TAB_INDENT = re.compile(r" *\t")


def read(data: bytes, collector: Collector) -> Node:
    """The one document in it (an empty mapping where there is none).

    Repeated keys are collected and the first one counts; what cannot be read at all raises
    ConfigError.
    """
    try:
        root = Composer(collector).compose(_events(_text(data)))
    except Unreadable as error:
        collector.refuse(error.line, str(error))
    nothing = isinstance(root, Scalar) and root.value is None
    return Table({}, 1) if nothing else root


def _text(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise Unreadable("the file is UTF-16; save it as UTF-8", 1)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise Unreadable(problem, line) from None
    odd = _UNPRINTABLE.search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        raise Unreadable(f"control character U+{ord(odd[0]):04X} is not allowed in YAML", line)
    return text


def _events(text: str) -> Iterator[Any]:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        raise _explained(error, text) from None
    except yaml.YAMLError as error:
        raise Unreadable(f"this is not YAML: {error}", 0) from None


def _explained(error: Any, text: str) -> Unreadable:
    mark = error.problem_mark or error.context_mark
    lines = text.rstrip("\n").split("\n")
    index = min(mark.line if mark else 0, len(lines) - 1)
    if _TAB_INDENT.match(lines[index]):
        return Unreadable("a tab stands where YAML wants spaces; indent with spaces", index + 1)
    begun = error.context_mark
    since = f" (begun in line {begun.line + 1})" if begun and begun.line != index else ""
    doing = f"{error.context}: " if error.context else ""
    remedy = "".join(r for sign, r in _REMEDIES.items() if sign in str(error.problem))
    if "expected ',' or '}'" in str(error.problem) and _HOST_LIST.search(lines[index]):
        remedy = '; within { } put a host list in quotes: "gpu-[01-16]"'
    return Unreadable(f"this is not YAML: {doing}{error.problem}{since}{remedy}", index + 1)
