"""The common part of actions on nodes: texts that are safe for scontrol, and descriptions of nodes."""

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
