"""Which node and rank a line comes from, by the marks that launchers put before lines. Pure."""

import re

from msgspec import Struct

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
