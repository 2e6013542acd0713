"""What actions on nodes share: texts that scontrol takes as meant, and what a node looks like."""

from __future__ import annotations

from sentinel.slurm.node_states import (
    LONGEST_REASON,
    SEEN,
    TAG,
    changed,
    described,
    seen,
    state_of,
    tagged,
)

__all__ = ["LONGEST_REASON", "SEEN", "TAG", "changed", "described", "seen", "state_of", "tagged"]
