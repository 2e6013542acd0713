"""A wire to a PostgreSQL server that can be cut: what is sent then arrives nowhere."""

import os
import selectors
import socket
import threading
from pathlib import Path
from types import TracebackType

NAME = ".s.PGSQL.5432"
"""How libpq calls the socket in the directory that `host=` names."""


class Wire:
    """A Unix socket in `folder` that leads to the one in `target`, inside `with`."""

    def __init__(self, folder: Path, target: Path) -> None:
        folder.mkdir()
        self.folder, self._target = folder, str(target / NAME)
        self._cut = threading.Event()
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / NAME))
        os.chmod(folder / NAME, 0o777)
        self._listener.listen()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._going = True
        self._thread = threading.Thread(target=self._carry, daemon=True)

    def __enter__(self) -> "Wire":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._going = False
        self._thread.join(5)
        for end in [*self._pairs, self._listener]:
            end.close()
        self._selector.close()

    def cut(self) -> None:
        """Connections stay open and say nothing, new ones get no answer."""
        self._cut.set()

    def mend(self) -> None:
        """What was cut stays lost; what is begun anew works."""
        self._cut.clear()

    def _carry(self) -> None:
        while self._going:
            for key, _ in self._selector.select(0.05):
                if self._cut.is_set():
                    self._swallow(key.fileobj)  # type: ignore[arg-type]
                elif key.fileobj is self._listener:
                    self._accept()
                else:
                    self._pass_on(key.fileobj)  # type: ignore[arg-type]

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        far = socket.socket(socket.AF_UNIX)
        far.connect(self._target)
        for one, other in ((near, far), (far, near)):
            self._pairs[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _pass_on(self, end: socket.socket) -> None:
        other = self._pairs.get(end)
        if other is None:
            return
        try:
            data = end.recv(65536)
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        self._close(end, other)

    def _close(self, *ends: socket.socket) -> None:
        for end in ends:
            if self._pairs.pop(end, None) is not None:
                self._selector.unregister(end)
                end.close()

    def _swallow(self, end: socket.socket) -> None:
        if end is self._listener:
            self._stray = end.accept()[0]
            return
        try:
            gone = not end.recv(65536)
        except OSError:
            gone = True
        if gone:
            self._close(end)
