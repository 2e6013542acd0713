"""Limits how long a line of foreign text may be; no other module cuts lines. Pure.

Users and tools write logs, tables, names, comments and reasons. The limit bounds the time that a
pattern or a parser takes for one line, whoever wrote it. How much text there may be is limited
where it is read (`sentinel.proc`, `sentinel.user_files`)."""

MAX_LINE_CHARS = 4096
"""Characters of a line that any pattern sees: its beginning, and its end, where the error is
usually named. Slurm accepts at most 1,024 of a name and 4,096 of a path, Linux 4,096 of a path."""

_END_CHARS = 1024
_CUT_MARK = "…[line was cut here]…"
_NUMBER_CHARS = "0123456789.,_+-eEkKMGT"
_MAX_NUMBER_CHARS = 64


def cut_long_lines(text: str) -> str:
    """The text, with every line of more than MAX_LINE_CHARS cut in its middle.

    No part of a number is left at the cut, since it would be another number. A mark stands in place
    of the cut, so a field that holds it is not the original; `is_cut` tells. `count_cut_lines`
    tells how many lines were cut."""
    if len(text) <= MAX_LINE_CHARS:
        return text
    lines = text.split("\n")
    if max(map(len, lines)) <= MAX_LINE_CHARS:
        return text
    return "\n".join(map(cut_line, lines))


def cut_line(line: str) -> str:
    """The same for one line or one field, whatever characters it holds."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    begin = line[: MAX_LINE_CHARS - _END_CHARS - len(_CUT_MARK)]
    end = line[-_END_CHARS:]
    begin = begin[:-_MAX_NUMBER_CHARS] + begin[-_MAX_NUMBER_CHARS:].rstrip(_NUMBER_CHARS)
    end = end[:_MAX_NUMBER_CHARS].lstrip(_NUMBER_CHARS) + end[_MAX_NUMBER_CHARS:]
    return begin + _CUT_MARK + end


def decode_lines(raw: bytes, errors: str = "backslashreplace") -> str:
    """The text that a tool printed for people: UTF-8, with long lines cut. `errors`: how other
    bytes are decoded; `surrogateescape` if paths are compared."""
    return cut_long_lines(raw.decode("utf-8", errors))


def decode_document(raw: bytes, errors: str = "backslashreplace") -> str:
    """The text that a tool printed for programs (JSON, XML), which may be one long line: UTF-8, and
    not cut. The parser has to cut its fields."""
    return raw.decode("utf-8", errors)


def is_cut(text: str) -> bool:
    """Whether the text was cut. A program can print the same mark: then an uncut text counts as
    cut, but never the other way round."""
    return _CUT_MARK in text


def count_cut_lines(text: str) -> int:
    """The number of cut lines in such a text; too high if a program prints the same mark."""
    return text.count(_CUT_MARK)


def describe_cut_lines(count: int) -> str:
    """A sentence for people about lines that were cut; empty if there are none."""
    if not count:
        return ""
    lines = "1 line was" if count == 1 else f"{count} lines were"
    return f"{lines} longer than {MAX_LINE_CHARS} characters and not read in the middle"
