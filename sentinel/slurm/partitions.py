"""Reads `scontrol show partition`: how many nodes a partition has, whether it takes and starts jobs,
and how long its nodes may take to wake and to go to sleep."""

from __future__ import annotations

import re

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
    sizes = {}
    for line in decode_lines(out).splitlines():
        name, total = _PARTITION_NAME.match(line), _TOTAL.search(line)
        if name is None:
            raise CannotTell(f"scontrol's answer about partitions is not understood: {line[:80]!r}")
        if total:
            sizes[name[1]] = parse_count(total[1])
    return sizes


def read_partition_states(out: bytes) -> dict[str, str]:
    """The state of each partition: UP, DOWN, DRAIN or INACTIVE. Raises CannotTell."""
    states = {}
    for line in decode_lines(out).splitlines():
        name, state = _PARTITION_NAME.match(line), _STATE.search(line)
        if name is None:
            raise CannotTell(f"scontrol's answer about partitions is not understood: {line[:80]!r}")
        if state:
            states[name[1]] = state[1]
    return states


def read_node_timeouts(config: SlurmConfig, out: bytes) -> Timeouts:
    """The timeouts of slurm.conf, and those of partitions that have their own (21.08 and later).
    Raises CannotTell."""
    lines = decode_lines(out).splitlines()
    own = {}
    for line in lines:
        name = _PARTITION_NAME.match(line)
        if name is None:
            raise CannotTell(f"scontrol's answer about partitions is not understood: {line[:80]!r}")
        found = {key: parse_span_s(value) for key, value in _OWN.findall(line)}
        own[name[1]] = (found.get("Resume"), found.get("Suspend"))
    return Timeouts(resume=config.resume_timeout, suspend=config.suspend_timeout, partitions=own)
