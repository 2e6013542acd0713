"""Reads `scontrol show partition`: how many nodes a partition has, whether it takes and starts jobs,
and how long its nodes may take to wake and to go to sleep."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel.core.cluster import Timeouts
from sentinel.core.errors import CannotTell
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.long_lines import decode_lines
from sentinel.slurm.control import SlurmConfig, parse_span_s
from sentinel.slurm.words import parse_count

PARTITIONS_QUESTION = ("scontrol", "-o", "-a", "show", "partition")

_PARTITION_NAME = lazy_pattern(r"^PartitionName=(\S+) ", re.MULTILINE)
_TOTAL = lazy_pattern(r" TotalNodes=(\d+)")
_STATE = lazy_pattern(r" State=(\S+)")
_OWN = lazy_pattern(r" (Resume|Suspend)Timeout=(\S+)")


def read_node_counts(out: bytes) -> dict[str, int]:
    """The number of nodes of each partition, also if it is 0. Raises CannotTell."""
    found = ((name, _TOTAL.search(line)) for name, line in _read_lines(out))
    return {name: parse_count(total[1]) for name, total in found if total}


def read_partition_states(out: bytes) -> dict[str, str]:
    """The state of each partition: UP, DOWN, DRAIN or INACTIVE. Raises CannotTell."""
    found = ((name, _STATE.search(line)) for name, line in _read_lines(out))
    return {name: state[1] for name, state in found if state}


def read_node_timeouts(config: SlurmConfig, out: bytes) -> Timeouts:
    """The timeouts of slurm.conf, and those of partitions that have their own (21.08 and later).
    Raises CannotTell."""
    own = {}
    for name, line in _read_lines(out):
        found = {key: parse_span_s(value) for key, value in _OWN.findall(line)}
        own[name] = (found.get("Resume"), found.get("Suspend"))
    return Timeouts(resume=config.resume_timeout, suspend=config.suspend_timeout, partitions=own)


def _read_lines(out: bytes) -> Iterator[tuple[str, str]]:
    """The name of each partition, and its line. Raises CannotTell."""
    for line in decode_lines(out).splitlines():
        name = _PARTITION_NAME.match(line)
        if name is None:
            raise CannotTell(f"scontrol's answer about partitions is not understood: {line[:80]!r}")
        yield name[1], line
