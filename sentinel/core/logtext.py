"""The text of a log as checks read it, and actions again: both have to see the same lines. Pure."""

import re

_STYLE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""Colours and the like (ECMA-48, control sequences): torchtitan writes them into files too."""


def decoded(data: bytes) -> str:
    """As UTF-8; other bytes become escapes, a carriage return ends a line, colours go. NULs go:
    they are holes that copytruncate leaves, or the other half of UTF-16, whose digits and letters
    are read so too.
    """
    text = data.replace(b"\0", b"").decode("utf-8", "backslashreplace")
    text = _STYLE.sub("", text) if "\x1b[" in text else text
    return text.replace("\r\n", "\n").replace("\r", "\n")
