"""Decides which reasons allow a node to be given back, and which must never be lost. Pure.

Slurm keeps one reason per node: "Kill task failed" replaces "RMA GPU3" (slurmstepd calls
update_node(), src/slurmctld/node_mgr.c), so the reasons before it count as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sentinel.core.actions import NodeReading
from sentinel.core.cluster import Node
from sentinel.slurm.drain_reasons import KILL, OPERATOR_PREFIXES, own_reason, without_appended

_HARMLESS_REASONS = frozenset({"", "Not responding", "cold-start"})


def has_prefix(reason: str, prefixes: Iterable[str]) -> bool:
    """Whether a reason begins with one of these. The reason of an operator of Kubernetes never
    does, because the operator takes it back itself."""
    return not reason.startswith(OPERATOR_PREFIXES) and any(
        reason.startswith(prefix) for prefix in prefixes
    )


def find_unkillable_job(reason: str) -> str:
    """The id of the job whose task would not die. Empty if Slurm does not tell it (before 25.05)."""
    own = own_reason(reason)
    return (own[1][1] or "") if own and own[0].text == KILL else ""


def find_note(reason: str, prefixes: Iterable[str] = ()) -> str:
    """The text that somebody added to one of Slurm's own reasons. Empty if there is none.

    For other reasons, and for a prefix that is longer than Slurm's own words, the administrator has
    chosen the prefix together with any text after it.
    """
    own = own_reason(reason)
    if own is None or not (own[0].text == KILL or has_prefix(own[1][0], prefixes)):
        return ""
    return without_appended(reason)[own[1].end() :].strip(" :-;,")


def find_reason_author(node: Node) -> str:
    """The person who gave a reason in Slurm's own words. Empty if it may be Slurm itself.

    Texts that slurmctld appends are signed by SlurmUser, whoever gave the text before them.
    """
    own = own_reason(node.reason)
    appended = without_appended(node.reason) != node.reason.strip()
    if own is None or appended or node.reason_user in ("", *own[0].signers):
        return ""
    return node.reason_user


def may_be_old_reason(node: Node, readings: Sequence[NodeReading]) -> bool:
    """Whether the node may have had its reason while it was still in service.

    Slurm from 23.11 on without accounting keeps the reason of a resumed node until its next job
    (clusteracct_storage_g_node_up()). drain_nodes() then gives the node no other reason. A text
    that is appended to it (set_node_reason()) has a new time.
    """
    before = next((reading for reading in readings if not reading.out), None)
    if before is None or not before.reason:
        return False
    appended = without_appended(node.reason) != node.reason.strip()
    same = (before.reason, before.user, before.reason_time)
    return same == (node.reason, node.reason_user, node.reason_time) or (
        appended and without_appended(node.reason) == without_appended(before.reason)
    )


def find_hidden_reason(
    readings: Sequence[NodeReading], earlier: Sequence[str], prefixes: Sequence[str]
) -> str:
    """The newest other reason of this absence from service; empty if there was none.

    `readings` are the ledger's, newest first; `earlier` what slurmctld's log holds, oldest first.
    """
    reasons = [*(r.reason for r in _iterate_absence(readings)), *reversed(earlier)]
    return next((r for r in map(without_appended, reasons) if _is_foreign_reason(r, prefixes)), "")


def is_absence_watched(readings: Sequence[NodeReading]) -> bool:
    """Whether this absence from service began between two observations by sentinel that were close.

    If a node was out of service at the first observation, or after a long time without any, it may
    have had any reason before.
    """
    absence = [*_iterate_absence(readings)]
    return bool(absence) and absence[-1].left == absence[-1].seen


def _iterate_absence(readings: Sequence[NodeReading]) -> Iterable[NodeReading]:
    for reading in readings:
        if not reading.out:
            return
        yield reading


def _is_foreign_reason(reason: str, prefixes: Sequence[str]) -> bool:
    return reason not in _HARMLESS_REASONS and (
        not has_prefix(reason, prefixes) or bool(find_note(reason, prefixes))
    )
