"""`scontrol show partition`: how many nodes it has, how long they take to wake and to go to sleep."""

from __future__ import annotations

import re

from sentinel.core.cluster import Timeouts
from sentinel.core.errors import CannotTell
from sentinel.slurm.control import Config, span
from sentinel.slurm.words import parse_count, text

QUESTION = ("scontrol", "-o", "-a", "show", "partition")

_NAME = re.compile(r"^PartitionName=(\S+) ", re.MULTILINE)
_TOTAL = re.compile(r" TotalNodes=(\d+)")
_OWN = re.compile(r" (Resume|Suspend)Timeout=(\S+)")


def read_sizes(out: bytes) -> dict[str, int]:
    """How many nodes each partition has, 0 too; CannotTell."""
    sizes = {}
    for line in text(out).splitlines():
        name, total = _NAME.match(line), _TOTAL.search(line)
        if name is None:
            raise CannotTell(f"scontrol's answer about partitions is not understood: {line[:80]!r}")
        if total:
            sizes[name[1]] = parse_count(total[1])
    return sizes


def read_timeouts(config: Config, out: bytes) -> Timeouts:
    """slurm.conf's, and those of partitions that have their own (21.08 and later); CannotTell."""
    lines = text(out).splitlines()
    own = {}
    for line in lines:
        name = _NAME.match(line)
        if name is None:
            raise CannotTell(f"scontrol's answer about partitions is not understood: {line[:80]!r}")
        found = {key: span(value) for key, value in _OWN.findall(line)}
        own[name[1]] = (found.get("Resume"), found.get("Suspend"))
    return Timeouts(resume=config.resume_timeout, suspend=config.suspend_timeout, partitions=own)
