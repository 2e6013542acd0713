"""Lines that say that something has gone wrong: which of the known ones, from whom. Pure."""

import re

from msgspec import Struct

from sentinel.checks.log.known_troubles import AFTER, GATES, KINDS, Kind
from sentinel.core.text import shortened, visible

# Which node and rank a line comes from, by the marks that launchers put before lines. Pure.


_MARKS = (
    # `[node-3:17]: text`, and `[17]: text` as pdsh and ompi do
    re.compile(r"^\[(?P<host>[A-Za-z][\w.-]*)[:,](?P<rank>\d{1,6})\]"),
    re.compile(r"^\[(?P<rank>\d{1,6})\]:? "),
    # torchrun --tee, and PyTorch's own distributed messages
    re.compile(r"^\[(?:default|rank|Rank )(?P<rank>\d{1,6})\]"),
    re.compile(r"^\[\w+ Rank (?P<rank>\d{1,6})\]"),
    # srun --label
    re.compile(r"^ {0,5}(?P<rank>\d{1,6}): "),
    # NCCL: host:pid:thread [device]
    re.compile(r"^(?P<host>[A-Za-z][\w.-]*):\d+:\d+ \[-?\d+\] "),
    # pdsh, clush
    re.compile(r"^(?P<host>[A-Za-z][\w.-]*\d[\w.-]*): "),
)
PREFIX = 300  # characters in which marks are looked for
_LOCAL = re.compile(r"^\[default\d")


class Origin(Struct, frozen=True):
    """Either may be empty: not told. `rank` is "local N" where only that is known."""

    host: str = ""
    rank: str = ""

    @property
    def text(self) -> str:
        """`rank 17 on node-3`."""
        rank = f"rank {self.rank}" if self.rank and not self.rank.startswith("local") else ""
        rank = rank or (self.rank.replace("local", "local rank") if self.rank else "")
        return " on ".join(part for part in (rank, self.host) if part)


def origin(line: str, node: str = "") -> Origin:
    """By the prefixes of the line, which may stand one after the other; `node` wrote the file."""
    host = rank = ""
    rest = line[:PREFIX]
    for _ in range(3):
        match = next((m for m in (mark.match(rest) for mark in _MARKS) if m), None)
        if match is None:
            break
        found = match.groupdict()
        host = host or found.get("host") or ""
        if not rank and found.get("rank"):
            rank = f"local {found['rank']}" if _LOCAL.match(rest) else found["rank"]
        rest = rest[match.end() :].lstrip(": ")
    return Origin(host=host or node, rank=rank)


LONGEST = 1000
"""Characters of a line that are looked at on each side of what was found there: nobody's line
shall cost its length squared."""

BEFORE = 150
"""Characters that are shown before it: structured logs write lines of many thousands."""

MOST = 20
"""Troubles that one look keeps: the first ones are the causes, the rest are their echo."""


DIAGNOSTIC = re.compile(
    r"UCX +(?:DIAG|DEBUG|INFO)\b|^(?:\[\w+\]:)?[VIW]\d{4} \d\d:[\d:.]+ [^\n]{0,200}\] Traceback "
    r"|\bsysctl: |/(?:proc|sys)/\S+: Read-only file system|Read-only file system: '/(?:proc|sys)/"
)
"""Errors of system calls that UCX gets over by itself (src/ucs/debug/log.c of openucx/ucx),
tracebacks that a warning of PyTorch shows, as torch.compile does (torch/_logging/_internal.py), and the
kernel's settings, which a container may not write (45 of MLPerf's v3.1 logs: `vm.drop_caches`)."""


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
        for position, name, kind in self._hits(text):
            if position <= end or counts.get(name, 0) == MOST:
                continue
            begin, end = _line(text, position)
            head = text[begin : min(end, begin + LONGEST)]
            near = text[max(begin, position - LONGEST) : min(end, position + LONGEST)]
            if any(
                pattern.search(part)
                for pattern in (*self._ignore, DIAGNOSTIC)
                for part in {head, near}
            ):
                continue
            counts[name] = counts.get(name, 0) + 1
            shown = _shown(near, min(LONGEST, position - begin))
            source = _named(kind, text[max(begin, position - BEFORE) : position + AFTER]) or origin(
                head, node
            )
            found.append((position, _trouble(name, shown, source, near, path)))
        return found

    def _hits(self, text: str) -> list[tuple[int, str, Kind | None]]:
        """By position; of two on one place the more specific kind, which stands first."""
        hits = [(m.start(), name, None) for name, p in self._own.items() for m in p.finditer(text)]
        suspect = self._known if any(gate in text for gate in GATES) else ()
        known = [hit for kind in suspect for hit in kind.hits(text)]
        every = [*hits, *((at, kind.name, kind) for at, kind in known)]
        return sorted(every, key=lambda hit: hit[0])


def _named(kind: Kind | None, near: str) -> Origin | None:
    """Who is named by what is said, rather than by the line's own marks."""
    match = re.search(kind.names, near) if kind and kind.names else None
    if not match:
        return None
    said = {name.rstrip("23"): value for name, value in match.groupdict().items() if value}
    return Origin(host=said.get("host", ""), rank=said.get("rank", ""))


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
