"""The text of a log as checks read it, and actions again: both have to see the same lines. Pure."""

import re

_STYLE_PATTERN = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""Colours and the like (ECMA-48, control sequences): torchtitan writes them into files too."""


MAX_LINE_CHARS = 4096
"""Characters of a line that any pattern sees: its beginning, and its end, where what went wrong is
said. What a pattern costs on one line is bounded by this, whoever wrote the line."""

_END_CHARS = 1024
_CUT_MARK = "…[line was cut here]…"
_NUMBER_CHARS = "0123456789.,_+-eEkKMGT"
_MAX_NUMBER_CHARS = 64


def decode_log(data: bytes) -> str:
    """As UTF-8; other bytes become escapes, a carriage return ends a line, colours go. NULs go:
    they are holes that copytruncate leaves, or the other half of UTF-16, whose digits and letters
    are read so too. Long lines are cut, see `cut_long_lines`.
    """
    text = data.replace(b"\0", b"").decode("utf-8", "backslashreplace")
    text = _STYLE_PATTERN.sub("", text) if "\x1b[" in text else text
    return cut_long_lines(text.replace("\r\n", "\n").replace("\r", "\n"))


def cut_long_lines(text: str) -> str:
    """The text with every line of more than MAX_LINE_CHARS cut in its middle.

    No half of a number is left at the cut, which would be another number. `count_cut_lines` says how
    many lines were cut.
    """
    if len(text) <= MAX_LINE_CHARS:
        return text
    lines = text.split("\n")
    if max(map(len, lines)) <= MAX_LINE_CHARS:
        return text
    return "\n".join(line if len(line) <= MAX_LINE_CHARS else _cut_line(line) for line in lines)


def count_cut_lines(text: str) -> int:
    """How many lines of such a text were cut. A program can write what looks like a cut line: then
    too many are counted, never too few."""
    return text.count(_CUT_MARK)


def describe_cut_lines(count: int) -> str:
    """What people are told of lines that were cut; empty where there are none."""
    if not count:
        return ""
    lines = "1 line was" if count == 1 else f"{count} lines were"
    return f"{lines} longer than {MAX_LINE_CHARS} characters and not read in the middle"


def _cut_line(line: str) -> str:
    begin = line[: MAX_LINE_CHARS - _END_CHARS - len(_CUT_MARK)]
    end = line[-_END_CHARS:]
    begin = begin[:-_MAX_NUMBER_CHARS] + begin[-_MAX_NUMBER_CHARS:].rstrip(_NUMBER_CHARS)
    end = end[:_MAX_NUMBER_CHARS].lstrip(_NUMBER_CHARS) + end[_MAX_NUMBER_CHARS:]
    return begin + _CUT_MARK + end
