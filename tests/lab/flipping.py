"""A link that leads elsewhere each time somebody looks: what an owner can do to whoever reads its files."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def flipping(link: Path, file: Path) -> Iterator[list[int]]:
    """`link` leads to `file` and to a pipe in turn, without end; the list is empty for as long as
    nobody has opened the pipe to read: whoever opens it to write is refused until then (fifo(7))."""
    pipe, fresh = link.with_name(".pipe"), link.with_name(".fresh")
    os.mkfifo(pipe)
    over, opened = threading.Event(), list[int]()

    def flip() -> None:
        while not over.is_set():
            for target in (file, pipe):
                fresh.symlink_to(target)
                fresh.replace(link)
            with suppress(OSError):
                opened.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
                os.close(opened[-1])

    thread = threading.Thread(target=flip, daemon=True)
    thread.start()
    try:
        while not link.exists():
            pass
        yield opened
    finally:
        over.set()
        thread.join()
