"""Finds out which node and rank a line comes from, by the marks that launchers put before lines.
Pure."""

import re

from msgspec import Struct

_TIME_PATTERN = re.compile(r"^\[?\d{4}[-/]\d\d[-/]\d\d[T ][\d:.,]{8,18}Z?\]?:? ")
"""Times that container runtimes and loggers put before lines with marks of their own."""

_MARK_PATTERNS = (
    # `[node-3:17]: text`, and `[17]: text` from pdsh and ompi
    re.compile(r"^\[(?P<host>[A-Za-z][\w.-]*)[:,](?P<rank>\d{1,6})\](?=:)"),
    # Open MPI and UCX: host and process
    re.compile(
        r"^(?:\[\d{9,11}\.\d{3,6}\] )?\[(?P<host>[A-Za-z][\w.-]*):\d+ *(?::[\da-f]{1,9}){0,2}\] "
    ),
    re.compile(r"^\[(?P<rank>\d{1,5})\]:? "),  # six digits are the numbers of lines
    # Open MPI, --tag-output
    re.compile(r"^\[\d{1,6},(?P<rank>\d{1,6})\]<std(?:out|err)>: ?"),
    # a worker of Ray
    re.compile(r"^\((?:[\w.]+ )?pid=\d+(?:, ip=(?P<host>[\w.:-]+))?\) "),
    # torchrun --tee, and messages of PyTorch's distributed package
    re.compile(r"^\[(?:default|rank|Rank )(?P<rank>\d{1,6})\]"),
    re.compile(r"^\[\w+ Rank (?P<rank>\d{1,6})\]"),
    # NCCL: host:pid:thread [device]
    re.compile(r"^(?P<host>[A-Za-z][\w.-]*):\d+:\d+ \[-?\d+\] "),
)
_PLAIN_MARK_PATTERNS = (
    # Slurm with many slurmd on a host, as Debian builds it
    re.compile(r"^slurmstepd-(?P<host>[\w.-]{1,63}): "),
    # srun --label
    re.compile(r"^ {0,5}(?P<rank>\d{1,6}): "),
    # pdsh, clush
    re.compile(
        r"^(?P<host>(?!\S{0,200}(?:Error|Exception|Warning|Exit):)(?=[A-Za-z][A-Za-z_.-]*\d)[\w.-]+|\d{1,3}(?:\.\d{1,3}){3}): "
    ),
)
"""These marks count only at the beginning of a line. After a time they could be anything, e.g. a
logger's name or a count."""

MAX_PREFIX_CHARS = 300  # characters that are searched for marks
_LOCAL_RANK_PATTERN = re.compile(r"^\[default\d")
_WITHIN_LINE_PATTERN = re.compile(r"\[rank(\d{1,6})\]:")


class LineOrigin(Struct, frozen=True):
    """The origin of a line. Fields are empty if they were not printed. `rank` is "local N" if only
    the local rank is known."""

    host: str = ""  # Name of the node.
    rank: str = ""

    @property
    def shown_text(self) -> str:
        """For example `rank 17 on node-3`."""
        rank = f"rank {self.rank}" if self.rank and not self.rank.startswith("local") else ""
        rank = rank or (self.rank.replace("local", "local rank") if self.rank else "")
        return " on ".join(part for part in (rank, self.host) if part)


def find_line_origin(line: str, node: str = "", at: int = 0) -> LineOrigin:
    """The origin, by the marks at the beginning of the line. There may be several marks.

    `node` is the node that wrote the file; it counts if no mark names a host. `at` is where the
    text begins. A progress bar may stand before it, because a bar does not end its line.
    """
    host = rank = local = ""
    rest = line[:MAX_PREFIX_CHARS]
    for _ in range(4):
        if time := _TIME_PATTERN.match(rest):
            rest = rest[time.end() :]
        marks = _MARK_PATTERNS if time else (*_MARK_PATTERNS, *_PLAIN_MARK_PATTERNS)
        match = next((m for m in (mark.match(rest) for mark in marks) if m), None)
        if match is None:
            break
        found = match.groupdict()
        host = host or found.get("host") or ""
        if _LOCAL_RANK_PATTERN.match(rest):
            local = local or f"local {found['rank']}"
        else:
            rank = rank or found.get("rank") or ""
        rest = rest[match.end() :].lstrip(": ")
    if not rank and not local:
        rank = next(
            iter(_WITHIN_LINE_PATTERN.findall(line[max(0, at - MAX_PREFIX_CHARS) : at + 1])[-1:]),
            "",
        )
    return LineOrigin(host=host or node, rank=rank or local)
