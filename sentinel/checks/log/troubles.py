"""Lines that say that something has gone wrong, as data. Pure.

The texts are those of PyTorch (c10d and the caching allocator), NCCL (src/misc/socket.cc,
src/transport/net_ib), glibc's signal names, slurmstepd and the kernel.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from sentinel.checks.log.origin import Origin, origin
from sentinel.core.text import shortened, visible

LONGEST = 1000
"""Characters of a line that are looked at on each side of what was found there: nobody's line
shall cost its length squared."""

BEFORE = 150
"""Characters that are shown before it: structured logs write lines of many thousands."""

MOST = 20
"""Troubles that one look keeps: the first ones are the causes, the rest are their echo."""


class Kind(Struct, frozen=True):
    """A sort of trouble: its name, the text that shows it, and words of which one is in any such
    text: looking for words costs a hundredth of looking for the pattern."""

    name: str
    pattern: str
    words: tuple[str, ...]

    def hits(self, text: str) -> Iterator[tuple[int, str]]:
        """Where it is found, with the name."""
        if any(word in text for word in self.words):
            yield from ((match.start(), self.name) for match in re.finditer(self.pattern, text))


KINDS = (
    Kind("CUDA out of memory", r"CUDA out of memory|OutOfMemoryError", ("ut of memory", "OutOfM")),
    Kind("CUDA error", r"CUDA error: |CUDA driver error", ("CUDA error", "CUDA driver error")),
    Kind("NCCL timeout", r"Watchdog caught collective operation timeout", ("Watchdog caught",)),
    Kind(
        "NCCL connection",
        r"NCCL WARN .{0,300}(?:[Cc]onnect to \S+ failed|Connection closed by remote peer"
        r"|Call to \w+ (?:from|to) \S+ failed)|Connect to \S+<\d+> failed",
        ("onnect to ", "closed by remote peer", "Call to "),
    ),
    Kind("NCCL network", r"NET/IBP? ?: ?Got completion (?:from peer|with)", ("Got completion",)),
    Kind(
        "NCCL error",
        r"NCCL error|nccl(?:System|Remote|Internal|UnhandledCuda)Error",
        ("NCCL error", "ncclSys", "ncclRem", "ncclInt", "ncclUnh"),
    ),
    Kind("bus error", r"\bBus error\b|\bSIGBUS\b", ("Bus error", "SIGBUS")),
    Kind("segmentation fault", r"\bSegmentation fault\b|\bSIGSEGV\b", ("Segmentation", "SIGSEGV")),
    Kind(
        "host out of memory",
        r"oom[-_]kill|Out Of Memory|DataLoader worker .{0,200} killed by signal",
        ("oom_kill", "oom-kill", "Out Of Memory", "killed by signal"),
    ),
    Kind(
        "disk",
        r"No space left on device|Disk quota exceeded|Stale file handle",
        ("No space left", "quota exceeded", "Stale file"),
    ),
    Kind("file system", r"Input/output error", ("Input/output error",)),
    Kind("Python traceback", r"Traceback \(most recent call last\)", ("Traceback (most",)),
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
        self._known = KINDS if builtin else ()

    def find(self, text: str, path: str = "", node: str = "") -> list[tuple[int, Trouble]]:
        """With the position of each; one of a line, and at most MOST of a kind."""
        found: list[tuple[int, Trouble]] = []
        counts: dict[str, int] = {}
        end = -1
        for position, name in self._hits(text):
            if position <= end or counts.get(name, 0) == MOST:
                continue
            begin, end = _line(text, position)
            head = text[begin : min(end, begin + LONGEST)]
            near = text[max(begin, position - LONGEST) : min(end, position + LONGEST)]
            if any(pattern.search(part) for pattern in self._ignore for part in {head, near}):
                continue
            counts[name] = counts.get(name, 0) + 1
            shown = _shown(near, min(LONGEST, position - begin))
            found.append((position, _trouble(name, shown, origin(head, node), near, path)))
        return found

    def _hits(self, text: str) -> list[tuple[int, str]]:
        """By position; of two on one place the more specific kind, which stands first."""
        hits = [(m.start(), name) for name, p in self._own.items() for m in p.finditer(text)]
        hits += [hit for kind in self._known for hit in kind.hits(text)]
        return sorted(hits, key=lambda hit: hit[0])


def _trouble(name: str, shown: str, source: Origin, near: str, path: str) -> Trouble:
    from sentinel.checks.log.peers import address

    return Trouble(
        kind=name,
        line=shown,
        host=visible(source.host),
        rank=source.rank,
        peer=address(near),
        path=path,
    )


def _shown(line: str, at: int) -> str:
    """From its beginning, or from a little before what was found in it."""
    start = at - BEFORE if at > 2 * BEFORE else 0
    return ("…" if start else "") + shortened(visible(line[start:].strip()), 300)


def _line(text: str, position: int) -> tuple[int, int]:
    """Where the line around a position begins and ends."""
    end = text.find("\n", position)
    return text.rfind("\n", 0, position) + 1, end if end >= 0 else len(text)
