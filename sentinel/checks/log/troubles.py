"""Lines that say that something has gone wrong, as data. Pure.

The texts are those of PyTorch (c10d and the caching allocator), NCCL (src/misc/socket.cc,
src/transport/net_ib), glibc's signal names, slurmstepd and the kernel.
"""

import re

from msgspec import Struct

from sentinel.checks.log.origin import Origin, origin
from sentinel.core.text import shortened, visible

MOST = 20
"""Troubles that one look keeps: the first ones are the causes, the rest are their echo."""


class Kind(Struct, frozen=True):
    """A sort of trouble: its name, the text that shows it, and what it says of the training."""

    name: str
    pattern: str
    fatal: bool = True


KINDS = (
    Kind("CUDA out of memory", r"CUDA out of memory|torch\.(?:cuda\.)?OutOfMemoryError"),
    Kind("CUDA error", r"CUDA error: |CUDA driver error"),
    Kind("NCCL timeout", r"Watchdog caught collective operation timeout"),
    Kind(
        "NCCL connection",
        r"NCCL WARN .*(?:[Cc]onnect to \S+ failed|Connection closed by remote peer"
        r"|Call to \w+ (?:from|to) \S+ failed)|Connect to \S+<\d+> failed",
    ),
    Kind("NCCL network", r"NET/IBP? ?: ?Got completion (?:from peer|with)"),
    Kind(
        "NCCL error",
        r"NCCL error|ncclSystemError|ncclRemoteError|ncclInternalError|ncclUnhandledCudaError",
    ),
    Kind("bus error", r"\bBus error\b|\bSIGBUS\b"),
    Kind("segmentation fault", r"\bSegmentation fault\b|\bSIGSEGV\b"),
    Kind("host out of memory", r"oom[-_]kill|Out Of Memory|DataLoader worker .* killed by signal"),
    Kind("disk", r"No space left on device|Disk quota exceeded|Stale file handle"),
    Kind("file system", r"Input/output error"),
    Kind("Python traceback", r"Traceback \(most recent call last\)", False),
)


class Trouble(Struct, frozen=True, kw_only=True):
    """One line that was found; `line` is made visible and short. `peer`: an address in it."""

    kind: str
    line: str
    host: str = ""
    rank: str = ""
    peer: str = ""
    path: str = ""

    @property
    def where(self) -> str:
        """`rank 17 on node-3`, or empty."""
        return Origin(host=self.host, rank=self.rank).text


class Finder:
    """Looks for all kinds at once, and for a user's own patterns, which are told by their name.

    Lines that match `ignore` are no trouble.
    """

    def __init__(
        self,
        own: "dict[str, re.Pattern[str]]",
        ignore: "list[re.Pattern[str]]",
        builtin: bool = True,
    ) -> None:
        self._own, self._ignore = own, ignore
        self._names = {f"k{n}": kind.name for n, kind in enumerate(KINDS)}
        parts = [f"(?P<k{n}>{kind.pattern})" for n, kind in enumerate(KINDS)]
        self._known = re.compile("|".join(parts)) if builtin else None

    def find(self, text: str, path: str = "", node: str = "") -> list[tuple[int, Trouble]]:
        """With the position of each; at most MOST of a kind."""
        found: list[tuple[int, Trouble]] = []
        counts: dict[str, int] = {}
        for position, name in self._hits(text):
            counts[name] = counts.get(name, 0) + 1
            if counts[name] > MOST:
                continue
            line = _line(text, position)
            if not any(pattern.search(line) for pattern in self._ignore):
                found.append((position, _trouble(name, line, path, node)))
        return sorted(found, key=lambda pair: pair[0])

    def _hits(self, text: str) -> list[tuple[int, str]]:
        hits = [(m.start(), name) for name, p in self._own.items() for m in p.finditer(text)]
        if self._known:
            hits += [(m.start(), self._names[str(m.lastgroup)]) for m in self._known.finditer(text)]
        return sorted(hits)


def _trouble(name: str, line: str, path: str, node: str) -> Trouble:
    from sentinel.checks.log.peers import address

    source = origin(line, node)
    return Trouble(
        kind=name,
        line=shortened(visible(line.strip()), 300),
        host=visible(source.host),
        rank=source.rank,
        peer=address(line),
        path=path,
    )


def _line(text: str, position: int) -> str:
    begin = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[begin : end if end >= 0 else len(text)]
