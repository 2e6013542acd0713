"""One word for a node's state, as sinfo would say it, and one for why it is out of service. Pure."""

from __future__ import annotations

from collections.abc import Collection

from sentinel.slurm.node_states import page_word

STATES_WORST_FIRST = (
    "down", "fail", "drained", "draining", "unknown", "rebooting", "maint", "powered_down",
    "completing", "blocked", "reserved", "planned", "allocated", "mixed", "idle",
)  # fmt: skip
"""The states in the order in which a person wants to see them."""

OUT_OF_SERVICE_STATES = frozenset(STATES_WORST_FIRST[:8])
"""Those in which a node takes no jobs."""


def get_state_word(state: str, flags: Collection[str]) -> str:
    """The state's word, one of WORST."""
    return page_word(state, flags)


def rank_state(word: str) -> int:
    """The position of the word in WORST."""
    return STATES_WORST_FIRST.index(word) if word in STATES_WORST_FIRST else len(STATES_WORST_FIRST)
