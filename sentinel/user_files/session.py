"""One child for all files that a check reads in one run. Imports nothing that is slow to load."""

from _thread import _local
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class SharedReader(Protocol):
    """A reader that the session ends, whose module is loaded only where a file is opened."""

    def end_reader(self) -> None: ...


class ReaderSession(_local):
    """What this thread shares. `is_open`: whether a run has begun that will end the reader."""

    is_open: bool = False
    reader: SharedReader | None = None


session = ReaderSession()


@contextmanager
def shared_reader() -> Iterator[None]:
    """Until the end of the block all files are opened by one child, which ends with it."""
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
