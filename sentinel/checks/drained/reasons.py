"""Which reasons a node may have to be given back, and which must never be lost. Pure.

Slurm keeps one reason per node: "Kill task failed" replaces "RMA GPU3" (slurmstepd calls
update_node(), src/slurmctld/node_mgr.c), so the reasons before it count as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sentinel.core.actions import Reading

KILL = "Kill task failed"
"""stepd_drain_node() in src/slurmd/slurmstepd/step_terminate_monitor.c, up to 24.11 all of it."""

# " (JobId=1 StepId=batch)" since 25.05.
_KILL = re.compile(re.escape(KILL) + r"(?: \(JobId=(\d+)[^()]*\))?")

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


def note_in(reason: str) -> str:
    """What a person wrote behind Slurm's own "Kill task failed"; empty where nobody did.

    Any other prefix was chosen by an administrator, together with what may follow it.
    """
    match = _KILL.match(reason)
    rest = _plain(reason)[match.end() :] if match else ""
    return rest.strip(" :-;,")


def hidden(readings: Sequence[Reading], earlier: Sequence[str], prefixes: Sequence[str]) -> str:
    """The newest other reason of this absence from service; empty if there was none.

    `readings` are the ledger's, newest first; `earlier` what slurmctld's log holds, oldest first.
    """
    reasons = [*(r.reason for r in _absence(readings)), *reversed(earlier)]
    return next((r for r in map(_plain, reasons) if _foreign(r, prefixes)), "")


def seen_from_the_start(readings: Sequence[Reading]) -> bool:
    """Whether the ledger holds how this absence from service began: a node that was out at the
    very first look may have had any reason before."""
    absence = [*_absence(readings)]
    return len(absence) < len(readings) or bool(absence and absence[-1].left)


def _absence(readings: Sequence[Reading]) -> Iterable[Reading]:
    for reading in readings:
        if not reading.out:
            return
        yield reading


def _foreign(reason: str, prefixes: Sequence[str]) -> bool:
    return reason not in _HARMLESS and (not fits(reason, prefixes) or bool(note_in(reason)))


def _plain(reason: str) -> str:
    return _APPENDED.sub("", reason).strip()
