"""Lets one child open all files that a check reads in one run. Imports nothing that is slow to
load."""

from _thread import _local
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class SharedReader(Protocol):
    """A reader that the session ends; its module is loaded only if a file is opened."""

    def end_reader(self) -> None: ...


class ReaderSession(_local):
    """The reader that this thread shares. `is_open`: whether a run has begun that will end the
    reader."""

    is_open: bool = False
    reader: SharedReader | None = None


session = ReaderSession()


@contextmanager
def shared_reader() -> Iterator[None]:
    """Until the end of the block, one child opens all files; it ends with the block."""
    if session.is_open:
        yield
        return
    session.is_open = True
    try:
        yield
    finally:
        reader, session.reader, session.is_open = session.reader, None, False
        if reader:
            reader.end_reader()
