"""Which reasons a node may have to be given back, and which must never be lost. Pure.

Slurm keeps one reason per node: "Kill task failed" replaces "RMA GPU3" (slurmstepd calls
update_node(), src/slurmctld/node_mgr.c), so the reasons before it count as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sentinel.actions.model import Reading
from sentinel.slurm.model import Node

KILL = "Kill task failed"
"""stepd_drain_node() in src/slurmd/slurmstepd/step_terminate_monitor.c, up to 24.11 all of it."""

# " (JobId=1 StepId=batch)" since 25.05; anything else in the brackets is a person's.
_KILL = re.compile(re.escape(KILL) + r"(?: \(JobId=(\d+)(?: StepId=[\w.+-]+)?\))?")

# The other reasons that slurmctld gives in these words and no more (drain_nodes(), 20.11 to 26.05).
# "Prolog error: 571 xid 13 errors" is a health check's, which only begins as Slurm's own does.
_OWN = re.compile(
    r"(?:Prolog error|Epilog error|batch job complete failure|Duplicate jobid)(?: \(JobId=[^()]*\))?"
)

# What slurmctld itself appends: set_node_reason() since 23.02, "reboot issued" in all versions.
_APPENDED = re.compile(r"(?: ?: (?:Not responding|reboot issued|ResumeTimeout reached))+$")
_HARMLESS = frozenset({"", "Not responding", "cold-start"})


def fits(reason: str, prefixes: Iterable[str]) -> bool:
    """Whether a reason begins with one of these."""
    return any(reason.startswith(prefix) for prefix in prefixes)


def job_of(reason: str) -> str:
    """The id of the job whose task would not die, where Slurm tells it (25.05 and later)."""
    match = _KILL.match(reason)
    return (match[1] or "") if match else ""


def note_in(reason: str, prefixes: Iterable[str] = ()) -> str:
    """What somebody wrote behind a reason of Slurm's own; empty where nobody did.

    Of any other reason, and of one with a prefix that goes on behind Slurm's own words, an
    administrator chose the prefix together with what may follow it.
    """
    match = _KILL.match(reason)
    if match is None and (own := _OWN.match(reason)) and fits(own[0], prefixes):
        match = own
    rest = _plain(reason)[match.end() :] if match else ""
    return rest.strip(" :-;,")


def typed_by(node: Node) -> str:
    """The person who gave Slurm's own "Kill task failed"; empty where Slurm may have done it.

    slurmstepd gives it as root; what slurmctld appends is signed by SlurmUser.
    """
    appended = _plain(node.reason) != node.reason.strip()
    if not _KILL.match(node.reason) or appended or node.reason_user in ("", "root"):
        return ""
    return node.reason_user


def left_over(node: Node, readings: Sequence[Reading]) -> bool:
    """Whether the node may have had its reason while it was still in service.

    Slurm from 23.11 on without accounting keeps the reason of a resumed node until its next job
    (clusteracct_storage_g_node_up()), and drain_nodes() then gives it no other one; what is
    appended to it (set_node_reason()) has a new time.
    """
    before = next((reading for reading in readings if not reading.out), None)
    if before is None or not before.reason:
        return False
    appended = _plain(node.reason) != node.reason.strip()
    same = (before.reason, before.user, before.reason_time)
    return same == (node.reason, node.reason_user, node.reason_time) or (
        appended and _plain(node.reason) == _plain(before.reason)
    )


def hidden(readings: Sequence[Reading], earlier: Sequence[str], prefixes: Sequence[str]) -> str:
    """The newest other reason of this absence from service; empty if there was none.

    `readings` are the ledger's, newest first; `earlier` what slurmctld's log holds, oldest first.
    """
    reasons = [*(r.reason for r in _absence(readings)), *reversed(earlier)]
    return next((r for r in map(_plain, reasons) if _foreign(r, prefixes)), "")


def seen_from_the_start(readings: Sequence[Reading]) -> bool:
    """Whether this absence from service began between two looks of the ledger that were close.

    Who was out at the very first look, or after a long time without any, may have had any reason
    before.
    """
    absence = [*_absence(readings)]
    return bool(absence) and absence[-1].left == absence[-1].seen


def _absence(readings: Sequence[Reading]) -> Iterable[Reading]:
    for reading in readings:
        if not reading.out:
            return
        yield reading


def _foreign(reason: str, prefixes: Sequence[str]) -> bool:
    return reason not in _HARMLESS and (
        not fits(reason, prefixes) or bool(note_in(reason, prefixes))
    )


def _plain(reason: str) -> str:
    return _APPENDED.sub("", reason).strip()
