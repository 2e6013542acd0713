"""Every reason that Slurm itself gives to a node, who signs it, and what is appended to reasons. Pure.

Texts: drain_nodes() and set_node_reason() in src/slurmctld, stepd_drain_node() in src/slurmd, 20.11
to 26.11 (release candidate).
"""

from __future__ import annotations

import re

from msgspec import Struct

BY_STEPD = ("root",)
BY_SLURMCTLD = ("root", "slurm")
"""SlurmUser signs. Where it has another name the reason counts as a person's: nothing is undone."""

STEP = r"(?: \(JobId=(\d+)(?: StepId=[\w.+-]+)?\))?"
JOB = r"(?: \(JobId=\d+(?:[_+]\d+\(\d+\))?(?: StepId=[\w.+-]+)?\))?"
"""Since 25.05; of an array 12_3(15), of a heterogeneous job 12+1(13). Anything else in the brackets
is a person's."""


class OwnReason(Struct, frozen=True):
    """`text`: how the reason begins. `page`: its class on the page. `signers`: who gives it.
    `whole`: what may stand behind it in Slurm's own words, as a regular expression; None: anything,
    such as numbers."""

    text: str
    page: str
    signers: tuple[str, ...] = BY_SLURMCTLD
    whole: str | None = JOB


KILL = "Kill task failed"

OWN_REASONS = (
    OwnReason(KILL, "kill_task_failed", BY_STEPD, STEP),
    OwnReason("Prolog error", "prolog_epilog"),
    OwnReason("Epilog error", "prolog_epilog"),
    OwnReason("Prolog/Epilog failure", "prolog_epilog"),
    OwnReason("Job env setup error", "prolog_epilog"),
    OwnReason("SlurmdSpoolDir is full", "file_system"),
    OwnReason("batch job complete failure", "other"),
    OwnReason("Duplicate jobid", "other"),
    OwnReason("Not responding", "not_responding", whole=""),
    OwnReason("Node unexpectedly rebooted", "not_responding", whole=""),
    OwnReason("ResumeTimeout reached", "not_responding", whole=""),
    OwnReason("reboot issued", "maintenance", whole=""),
    OwnReason("reboot complete", "maintenance", whole=""),
    OwnReason("reboot timed out", "maintenance", whole=""),
    OwnReason("Low RealMemory", "memory", whole=None),
    OwnReason("Low TmpDisk", "file_system", whole=None),
    OwnReason("Low CPUs", "hardware", whole=None),
    OwnReason("Low socket*core*thread count", "hardware", whole=None),
    OwnReason("NO NETWORK ADDRESS FOUND", "network", whole=""),
)
_FORMS = tuple(
    (one, re.compile(re.escape(one.text) + (".*" if one.whole is None else one.whole), re.DOTALL))
    for one in OWN_REASONS
)

# set_node_reason() since 23.02 (power_save.c, node_mgr.c), "reboot issued" in all versions. They say
# how the node is now, and the node has to be proven clean anyway.
_APPENDED = re.compile(
    r"(?: ?: (?:Not responding|reboot issued|reboot timed out|ResumeTimeout reached)){1,9}$"
)


def own_reason(reason: str) -> tuple[OwnReason, re.Match[str]] | None:
    """The reason of Slurm's own that a text begins with, and how much of the text that is."""
    found = ((one, form.match(reason)) for one, form in _FORMS)
    return next(((one, match) for one, match in found if match), None)


def without_appended(reason: str) -> str:
    """A reason without what slurmctld has hung on it: that is not why the node is out."""
    return _APPENDED.sub("", reason).strip()
