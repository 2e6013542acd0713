"""Decodes a log for checks and for actions, which both have to see the same lines. Pure."""

import re

from sentinel.core.long_lines import cut_long_lines

_STYLE_PATTERN = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""Colours and other styles (ECMA-48, control sequences): torchtitan writes them into files too."""

_RETURN_PATTERN = re.compile(r"\x1b\[(?:2K|\d{0,4}(?:[AFG]|(?:;\d{0,4})?H))|\x08{2,}")
"""What a program that writes over its line sends in place of a carriage return: the cursor is moved, or the
line is cleared."""


def decode_log(data: bytes) -> str:
    """The text of a log: UTF-8, with other bytes as escapes, a carriage return and
    what stands for one as a line end, and without colours and NULs.

    NULs are holes that copytruncate leaves, or the other half of UTF-16, whose digits and letters
    are read in this way too. Long lines are cut, see `sentinel.core.long_lines`."""
    text = data.replace(b"\0", b"").decode("utf-8", "backslashreplace")
    text = _RETURN_PATTERN.sub("\n", text) if "\x1b[" in text or "\x08" in text else text
    text = _STYLE_PATTERN.sub("", text) if "\x1b[" in text else text
    return cut_long_lines(text.replace("\r\n", "\n").replace("\r", "\n"))
