"""What actions on nodes share: texts that scontrol takes as meant, and what a node looks like."""

from __future__ import annotations

from sentinel.core.nodestate import SEEN, changed, described, seen, state_of
from sentinel.core.text import shortened, visible

__all__ = ["LONGEST_REASON", "SEEN", "TAG", "changed", "described", "seen", "state_of", "tagged"]

TAG = "sentinel: "
"""Opens every reason of ours: daemons and administrators who are root sign alike."""

LONGEST_REASON = 300
_PLAIN = str.maketrans({'"': "'", "=": ":"})


def tagged(reason: str) -> str:
    """A reason for `scontrol update`: one visible line with our tag.

    Double quotes become single ones: scontrol drops one at the end (scontrol_update_node() in
    src/scontrol/update_node.c). `=` becomes `:`, so that no rule of sudoers, and no reader of
    `scontrol show node`, takes a word of it for another field.
    """
    text = " ".join(visible(reason).translate(_PLAIN).split())
    return shortened(text if text.startswith(TAG.strip()) else f"{TAG}{text}", LONGEST_REASON)
