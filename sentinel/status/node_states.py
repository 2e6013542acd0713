"""One word for a node's state, as sinfo would say it, and one for why it is out of service. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

WORST = (
    "down", "fail", "drained", "draining", "unknown", "rebooting", "maint", "powered_down",
    "completing", "reserved", "planned", "allocated", "mixed", "idle",
)  # fmt: skip
"""The states in the order in which a person wants to see them."""

OUT = frozenset(WORST[:8])
"""Those in which a node takes no jobs."""

# The flag decides before the base state; sinfo(1), NODE STATE CODES.
_BY_FLAG = (
    (("NOT_RESPONDING", "INVALID_REG"), "down"),
    (("FAIL",), "fail"),
    (("REBOOT_ISSUED", "REBOOT_REQUESTED"), "rebooting"),
    (("POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWERING_UP", "POWER_UP"), "powered_down"),
)
_LATER = (
    (("MAINTENANCE",), "maint"),
    (("COMPLETING",), "completing"),
    (("RESERVED",), "reserved"),
    (("PLANNED",), "planned"),
)
_BUSY = frozenset({"ALLOCATED", "MIXED"})

# What reasons say in the field; the first that fits. Slurm's own: "Kill task failed"
# (slurmstepd), "Not responding", "Low RealMemory", "Prolog error", "Epilog error", "gres/gpu count
# reported lower than configured" (src/slurmctld, src/slurmd); LBNL NHC begins its own with "NHC".
_CLASSES = (
    ("kill_task_failed", r"kill task failed"),
    ("not_responding", r"not responding|unexpectedly rebooted|ResumeTimeout"),
    ("sentinel", r"^sentinel:"),
    ("gpu", r"gpu|nvidia|xid|dcgm|nvlink|gres/"),
    ("prolog_epilog", r"prolog|epilog"),
    ("memory", r"low realmemory|\bmemory\b|\bdimm\b|\becc\b"),
    ("file_system", r"lustre|gpfs|nfs|mount|disk|file ?system|beegfs|tmpdisk"),
    (
        "network",
        r"infiniband|openib|\bib\b|\brdma\b|\bhca\b|mlx\d|\bnic\b|ethernet|\blink\b|network",
    ),
    ("health_check", r"^nhc|health"),
    ("hardware", r"\brma\b|hardware|\bpsu\b|\bfan\b|power|broken|replace"),
    ("maintenance", r"maint|upgrade|update|reboot|firmware"),
)
# What slurmctld hangs on somebody's reason (set_node_reason(), since 23.02) is not why it is out.
_APPENDED = re.compile(r"(?: : (?:Not responding|reboot issued|ResumeTimeout reached))+$")
_PATTERNS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _CLASSES)
CLASSES = ("none", *(name for name, _ in _CLASSES), "other")
"""Every class there is: few, whatever people write."""


def state_word(state: str, flags: Collection[str]) -> str:
    """One of WORST."""
    if state == "DOWN":
        return "down"
    by_flag = _first(_BY_FLAG, flags)
    if by_flag:
        return by_flag
    if "DRAIN" in flags:
        return "draining" if state in _BUSY or "COMPLETING" in flags else "drained"
    return _first(_LATER, flags) or (state.lower() if state.lower() in WORST else "unknown")


def reason_class(reason: str) -> str:
    """One of CLASSES."""
    if not reason:
        return "none"
    given = _APPENDED.sub("", reason)
    return next((name for name, pattern in _PATTERNS if pattern.search(given)), "other")


def rank(word: str) -> int:
    """Where the word stands in WORST."""
    return WORST.index(word) if word in WORST else len(WORST)


def _first(table: tuple[tuple[tuple[str, ...], str], ...], flags: Collection[str]) -> str:
    return next((word for names, word in table if any(n in flags for n in names)), "")
