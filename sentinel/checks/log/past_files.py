"""Reads the files of past jobs with the rights of whoever asks: regular files only, within limits of
size, so that a log of any length takes little memory and a limited time."""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct

from sentinel.core.errors import CannotTell
from sentinel.core.logtext import decode_log
from sentinel.core.text import visible
from sentinel.core.values import size_text
from sentinel.user_files.identity import OpenDenied, open_regular

PIECE_BYTES = 2**20
MAX_END_BYTES = 2**25
"""Of a longer file so much is read at its beginning, and as much at its end."""

MAX_LINE_BYTES = 2**18
"""So many bytes without a line end are a whole line."""


class PastFile(Struct, frozen=True, kw_only=True):
    """A regular file that was opened. `cut` says what of it is not read."""

    descriptor: int
    size: int
    mtime: float
    cut: str = ""


def open_past_file(path: str) -> PastFile:
    """Open it. Raises CannotTell, with the path and the reason."""
    try:
        descriptor, seen = open_regular(path, None)
    except OpenDenied as error:
        raise CannotTell(f"{visible(path)} is not read: {error}") from None
    except OSError as error:
        raise CannotTell(f"{visible(path)} cannot be read: {error.strerror}") from None
    left_out = seen.st_size - 2 * MAX_END_BYTES
    cut = (
        f"{size_text(left_out)} in the middle of {visible(path)} were not read"
        if left_out > 0
        else ""
    )
    return PastFile(descriptor=descriptor, size=seen.st_size, mtime=seen.st_mtime, cut=cut)


def read_pieces(file: PastFile) -> Iterator[str | None]:
    """The text in pieces of whole lines. None stands where the middle is left out. Raises
    CannotTell."""
    try:
        if not file.cut:
            yield from _read_lines(file.descriptor, 0, file.size)
            return
        yield from _read_lines(file.descriptor, 0, MAX_END_BYTES)
        yield None
        yield from _read_lines(file.descriptor, file.size - MAX_END_BYTES, file.size)
    except OSError as error:
        raise CannotTell(f"it cannot be read: {error.strerror}") from None


def _read_lines(descriptor: int, begin: int, end: int) -> Iterator[str]:
    """The whole lines between two positions. A part of a line at the beginning is left out."""
    position, rest, is_partial = begin, b"", begin > 0
    while position < end and (
        data := os.pread(descriptor, min(PIECE_BYTES, end - position), position)
    ):
        position += len(data)
        data = rest + data
        whole = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not whole and len(data) > MAX_LINE_BYTES:
            whole = len(data)
        rest = data[whole:]
        if is_partial and whole:
            data, whole = data[:whole].partition(b"\n")[2], len(data)
            is_partial = False
        if text := decode_log(data[:whole]):
            yield text
    if rest and not is_partial and (text := decode_log(rest)):
        yield text
