"""Every word that Slurm prints for a node's state, and what it means. Pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timezone
from typing import Any, Literal

from msgspec import Struct

from sentinel.core.cluster import Node
from sentinel.core.text import shortened, visible


class NodeWord(Struct, frozen=True, kw_only=True):
    """All that anybody asks of a base state or of a flag of a node.

    `page`: the word that the page shows for it, empty where the others decide. `can_work`: Slurm
    gives the node jobs, now or as soon as its own have ended or it is awake; "busy": until its own
    have ended. `may_act`: something may be done to the node. `is_out`: something is wrong with the
    node, or somebody took it out. `is_free`: nobody else has a claim on an idle node. `is_heard`:
    slurmctld hears from it. `asleep`: power saving, so that its silence means nothing. `wakes`: it
    is powered up for its job. `comes_and_goes`: the cluster makes such nodes as it needs them. `passing`: what the node passes through, where that has to end.
    """

    page: str = ""
    can_work: bool | Literal["busy"] = True
    may_act: bool = True
    is_out: bool = False
    is_free: bool = True
    is_heard: bool = True
    asleep: bool = False
    wakes: bool = False
    comes_and_goes: bool = False
    passing: Literal["", "waking", "powering down", "rebooting", "completing"] = ""


def _unfit_word(page: str = "", **more: Any) -> NodeWord:
    """A word for a node that does not work and to which nothing may be done."""
    return NodeWord(page=page, **{"can_work": False, "may_act": False, "is_free": False, **more})


def _sleeping_word(**more: Any) -> NodeWord:
    return NodeWord(
        page="powered_down", may_act=False, is_free=False, is_heard=False, asleep=True, **more
    )


BASES: dict[str, NodeWord] = {
    "IDLE": NodeWord(page="idle"),
    "MIXED": NodeWord(page="mixed", is_free=False),
    "ALLOCATED": NodeWord(page="allocated", is_free=False),
    "DOWN": _unfit_word("down", is_out=True, is_heard=False),
    "ERROR": _unfit_word("down", is_out=True, is_heard=False),
    "FUTURE": _unfit_word("unknown", is_heard=False),
    "UNKNOWN": _unfit_word("unknown", is_heard=False),
}
"""`node_states` in src/common/slurm_protocol_defs.c, 20.11 to 26.11 (release candidate)."""

FLAGS: dict[str, NodeWord] = {
    "NOT_RESPONDING": _unfit_word("down", is_out=True, is_heard=False),
    "INVALID_REG": _unfit_word("down", is_out=True),
    "FAIL": _unfit_word("fail", is_out=True),
    "REBOOT_ISSUED": _unfit_word("rebooting", passing="rebooting"),
    # "scontrol reboot" without ASAP: the node takes jobs until it is idle once.
    "REBOOT_REQUESTED": _unfit_word("rebooting", can_work="busy"),
    "POWERING_UP": _sleeping_word(wakes=True, passing="waking"),
    "POWERING_DOWN": _sleeping_word(passing="powering down"),
    "POWERED_DOWN": _sleeping_word(wakes=True),
    "POWER_DOWN": _sleeping_word(),
    "POWER_UP": _sleeping_word(wakes=True),
    "DRAIN": NodeWord(page="drained", can_work=False, is_out=True, is_free=False),
    "MAINTENANCE": _unfit_word("maint"),
    "COMPLETING": NodeWord(page="completing", may_act=False, is_free=False, passing="completing"),
    # A job with `--exclusive=topo` keeps others off the rest of its block until it ends.
    "BLOCKED": NodeWord(page="blocked", may_act=False, is_free=False),
    "RESERVED": NodeWord(page="reserved", is_free=False),
    "PLANNED": NodeWord(page="planned", is_free=False),
    "PERFCTRS": NodeWord(is_free=False),
    "EXTERNAL": NodeWord(may_act=False, is_free=False),  # the node has no slurmd
    "RESUME": NodeWord(may_act=False, is_free=False),  # the node is being returned to service
    "CLOUD": NodeWord(comes_and_goes=True),
    "DYNAMIC": NodeWord(comes_and_goes=True),
    "DYNAMIC_FUTURE": NodeWord(comes_and_goes=True),
    "DYNAMIC_NORM": NodeWord(comes_and_goes=True),
}
"""`node_state_flags` there, in the order in which they decide the page's word; meanings: sinfo(1),
NODE STATE CODES."""

_UNKNOWN = NodeWord(page="unknown", can_work=False, may_act=False, is_free=False)
"""A flag that no known Slurm prints: nothing is done to the node, and it does not count as out."""

UP = frozenset(name for name, base in BASES.items() if base.can_work)
"""Base states of a node that works."""

ASLEEP = frozenset(name for name, flag in FLAGS.items() if flag.asleep)
"""Flags of power saving: Slurm wakes such a node for the job that needs it (slurm.conf(5))."""


def flag_meaning(flag: str) -> NodeWord:
    """The meaning of a flag; one that is in no table is unknown."""
    return FLAGS.get(flag, _UNKNOWN)


def base_meaning(state: str) -> NodeWord:
    """The meaning of a base state; one that is in no table is UNKNOWN."""
    return BASES.get(state, BASES["UNKNOWN"])


def unknown_flags(node: Node) -> list[str]:
    """Flags of the node whose meaning is not known here."""
    return sorted(flag for flag in node.flags if flag not in FLAGS)


def unfit_flags(node: Node) -> list[str]:
    """Flags with which nothing may be done to the node; unknown flags too."""
    return sorted(flag for flag in node.flags if not flag_meaning(flag).may_act)


def is_heard(node: Node) -> bool:
    """Whether slurmctld hears from the node, as far as is known."""
    words = [base_meaning(node.state), *map(flag_meaning, node.flags)]
    return all(word.is_heard for word in words)


def can_work(node: Node) -> bool | None:
    """Whether Slurm gives the node jobs, now or when its jobs have ended or it is awake. None if
    that depends on a flag that is not known."""
    silence = {"NOT_RESPONDING"} if node.flags & ASLEEP else set()
    known = [flag_meaning(flag) for flag in node.flags - silence if flag in FLAGS]
    busy = node.state in ("MIXED", "ALLOCATED")
    able = [base_meaning(node.state), *known]
    if not all(word.can_work is True or (word.can_work == "busy" and busy) for word in able):
        return False
    return None if unknown_flags(node) else True


def page_word(state: str, flags: Collection[str]) -> str:
    """The one word that the page shows for a state with its flags, as sinfo would say it."""
    if state == "DOWN" or any(flag not in FLAGS for flag in flags):
        return "down" if state == "DOWN" else "unknown"
    busy, sleeps = state in ("MIXED", "ALLOCATED"), bool(ASLEEP.intersection(flags))
    for name, flag in FLAGS.items():
        silent = name == "NOT_RESPONDING" and sleeps
        if name not in flags or not flag.page or silent or (flag.can_work == "busy" and busy):
            continue
        draining = name == "DRAIN" and (busy or "COMPLETING" in flags)
        return "draining" if draining else flag.page
    return base_meaning(state).page


TAG = "sentinel: "
"""Every reason that sentinel gives begins with this: the user alone does not tell, since other
daemons and administrators are root too."""

LONGEST_REASON = 300
_PLAIN = str.maketrans({'"': "'", "=": ":"})


def format_state(node: Node) -> str:
    """`IDLE+DRAIN`, flags in a fixed order."""
    return "+".join([node.state, *sorted(node.flags)])


def unfit_reason(node: Node) -> str:
    """Why nothing may be done to the node now, as `DOWN and NOT_RESPONDING`; empty if something may
    be done."""
    flags = unfit_flags(node)
    return "" if node.state in UP and not flags else " and ".join([node.state, *flags])


def describe_node(node: Node) -> str:
    """State, reason, who gave it and when, in one line."""
    if not node.reason:
        return format_state(node)
    when = _iso_time(node.reason_time)
    return visible(
        f"{format_state(node)}, reason '{node.reason}' by {node.reason_user or '?'} at {when}"
    )


def reason_params(node: Node) -> dict[str, str]:
    """The parameters that tie a request to the node's present reason: the node must still have it."""
    time = "" if node.reason_time is None else str(node.reason_time)
    return {"reason": node.reason, "reason_user": node.reason_user, "reason_time": time}


def tag_reason(reason: str) -> str:
    """A reason for `scontrol update`: one visible line with our tag.

    Double quotes become single ones: scontrol drops one at the end (scontrol_update_node() in
    src/scontrol/update_node.c). `=` becomes `:`, so that no rule of sudoers, and no reader of
    `scontrol show node`, takes a word of it for another field.
    """
    text = " ".join(visible(reason).translate(_PLAIN).split())
    return shortened(text if text.startswith(TAG.strip()) else f"{TAG}{text}", LONGEST_REASON)


def _iso_time(time: int | None) -> str:
    if time is None:
        return "an unknown time"
    return datetime.fromtimestamp(time, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
