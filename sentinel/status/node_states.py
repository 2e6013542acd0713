"""One word for a node's state, as sinfo would say it, and one for why it is out of service. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from sentinel.slurm.drain_reasons import own_reason, without_appended
from sentinel.slurm.node_states import page_word

STATES_WORST_FIRST = (
    "down", "fail", "drained", "draining", "unknown", "rebooting", "maint", "powered_down",
    "completing", "blocked", "reserved", "planned", "allocated", "mixed", "idle",
)  # fmt: skip
"""The states in the order in which a person wants to see them."""

OUT_OF_SERVICE_STATES = frozenset(STATES_WORST_FIRST[:8])
"""Those in which a node takes no jobs."""

# What reasons of others say in the field; the first that fits. LBNL NHC begins its own with "NHC".
_REASON_REGEXES = (
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
_REASON_PATTERNS = tuple(
    (name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _REASON_REGEXES
)
REASON_CLASSES = ("none", *(name for name, _ in _REASON_REGEXES), "other")
"""Every class there is: few, whatever people write."""


def get_state_word(state: str, flags: Collection[str]) -> str:
    """One of WORST."""
    return page_word(state, flags)


def classify_reason(reason: str) -> str:
    """One of CLASSES."""
    if not reason:
        return "none"
    given = without_appended(reason)
    own = own_reason(given)
    if own and own[1].end() == len(given):
        return own[0].page
    return next((name for name, pattern in _REASON_PATTERNS if pattern.search(given)), "other")


def rank_state(word: str) -> int:
    """Where the word stands in WORST."""
    return STATES_WORST_FIRST.index(word) if word in STATES_WORST_FIRST else len(STATES_WORST_FIRST)
