"""What actions on nodes share: texts that scontrol takes as meant, and what a node looks like."""

from __future__ import annotations

from sentinel.slurm.node_states import (
    LONGEST_REASON,
    SEEN,
    TAG,
    describe_changes,
    describe_node,
    format_state,
    reason_params,
    tag_reason,
)

__all__ = [
    "LONGEST_REASON",
    "SEEN",
    "TAG",
    "describe_changes",
    "describe_node",
    "format_state",
    "reason_params",
    "tag_reason",
]
