"""Every place of the package that makes text of bytes, found in its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import sentinel

ROOT = Path(sentinel.__file__).parent


class DecodedPlace(NamedTuple):
    """A call such as `done.out.decode("utf-8")`; `source` is what stands before `.decode`."""

    module: str
    source: str


def find_decoded_places() -> Iterator[DecodedPlace]:
    """`X.decode(…)` of UTF-8 and `os.fsdecode(X)`; an encoding of one byte a character is a format's
    own, and JSON's and MessagePack's `decode` is none of text."""
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and (source := _decoded_source(node)):
                yield DecodedPlace(name.removesuffix(".__init__"), source)


def _decoded_source(call: ast.Call) -> str:
    func = call.func
    if not isinstance(func, ast.Attribute):
        return ""
    if func.attr == "fsdecode":
        return ast.unparse(call.args[0])
    if func.attr != "decode" or ast.unparse(func.value).endswith(("json", "msgpack")):
        return ""
    encodings = [a.value for a in call.args[:1] if isinstance(a, ast.Constant)]
    if (call.args and not encodings) or encodings in (["ascii"], ["latin-1"]):
        return ""
    return ast.unparse(func.value)
