"""What actions on nodes share: what a node looks like, and texts that scontrol takes as meant."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

from sentinel.core.slurm import Node
from sentinel.core.text import shortened, visible

TAG = "sentinel: "
"""Opens every reason of ours: daemons and administrators who are root sign alike."""

LONGEST_REASON = 300
_PLAIN = str.maketrans({'"': "'", "=": ":"})
SEEN = ("reason", "reason_user", "reason_time")
"""Params of a request that say which reason its proof is about; the node must still have it."""


def tagged(reason: str) -> str:
    """A reason for `scontrol update`: one visible line with our tag.

    Double quotes become single ones: scontrol drops one at the end (scontrol_update_node() in
    src/scontrol/update_node.c). `=` becomes `:`, so that no rule of sudoers, and no reader of
    `scontrol show node`, takes a word of it for another field.
    """
    text = " ".join(visible(reason).translate(_PLAIN).split())
    return shortened(text if text.startswith(TAG.strip()) else f"{TAG}{text}", LONGEST_REASON)


def state_of(node: Node) -> str:
    """`IDLE+DRAIN`, flags in a fixed order."""
    return "+".join([node.state, *sorted(node.flags)])


def described(node: Node) -> str:
    """State, reason, who gave it and when, in one line."""
    if not node.reason:
        return state_of(node)
    when = _iso(node.reason_time)
    return visible(
        f"{state_of(node)}, reason '{node.reason}' by {node.reason_user or '?'} at {when}"
    )


def seen(node: Node) -> dict[str, str]:
    """The params that tie a request to the node's present reason."""
    time = "" if node.reason_time is None else str(node.reason_time)
    return dict(zip(SEEN, (node.reason, node.reason_user, time), strict=True))


def changed(params: Mapping[str, str], node: Node) -> str:
    """What is different from what the request was made for; empty if nothing is."""
    for key, value in seen(node).items():
        if key in params and params[key] != value:
            name = key.replace("_", " ")
            return visible(f"its {name} changed from '{params[key]}' to '{value}'")
    return ""


def _iso(time: int | None) -> str:
    if time is None:
        return "an unknown time"
    return datetime.fromtimestamp(time, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
