"""Every reason that Slurm itself gives to a node, which user signs it, and what Slurm appends to
reasons. Pure.

Texts: drain_nodes() and set_node_reason() in src/slurmctld, stepd_drain_node() in src/slurmd, 20.11
to 26.11 (release candidate)."""

from __future__ import annotations

import re

from msgspec import Struct

BY_STEPD = ("root",)
BY_SLURMCTLD = ("root", "slurm")
"""Names of SlurmUser. If it has another name, a reason of Slurm counts as a person's, so nothing is
undone."""

STEP = r"(?: \(JobId=(\d+)(?: StepId=[\w.+-]+)?\))?"
JOB = r"(?: \(JobId=\d+(?:[_+]\d+\(\d+\))?(?: StepId=[\w.+-]+)?\))?"
"""The job that Slurm names behind a reason since 25.05: of an array 12_3(15), of a heterogeneous
job 12+1(13). Any other text in the brackets is a person's."""
# The numbers behind a reason that something is low, and further things that are
# (validate_node_specs() in src/slurmctld/node_mgr.c).
_NUMBERS = r"(?: \(reported:[\d.]+ < [\d.]+% of configured:[\d.]+\))?"
LOW = rf"{_NUMBERS}(?:, (?:Low [\w*]+(?: count)?{_NUMBERS}|CoreSpec differ))*"


class OwnReason(Struct, frozen=True):
    """A reason that Slurm itself gives.

    `text` is the beginning of the reason. `page` is its class on the page. `signers` are the users
    who give it. `whole` is a regular expression for what follows in Slurm's own words.
    """

    text: str
    page: str
    signers: tuple[str, ...] = BY_SLURMCTLD
    whole: str = JOB


OPERATOR_PREFIXES = (
    "slurm-operator:",
    "k8s:",
    "[node_problem]",
    "[user_problem]",
    "[hardware_problem]",
    "[software_problem]",
    "[compute_maintenance]",
    "[HC]",
    "Soperator ",
)
"""Beginnings of reasons that belong to software which runs Slurm inside Kubernetes. That software
gives them, acts on them and takes them back. Slinky (slurm-operator,
internal/controller/nodeset/slurmcontrol), CoreWeave's SUNK (its syncer removes `k8s:` only),
Nebius' soperator (internal/consts, before and since 1.21)."""

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
    OwnReason("Low RealMemory", "memory", whole=LOW),
    OwnReason("Low TmpDisk", "file_system", whole=LOW),
    OwnReason("Low CPUs", "hardware", whole=LOW),
    OwnReason("Low socket*core*thread count", "hardware", whole=LOW),
    OwnReason("NO NETWORK ADDRESS FOUND", "network", whole=""),
)
_FORMS = tuple((one, re.compile(re.escape(one.text) + one.whole)) for one in OWN_REASONS)

# Texts that slurmctld appends: set_node_reason() since 23.02 (power_save.c, node_mgr.c), "reboot
# issued" in all versions. They say what the node does now, and not why it was drained.
_APPENDED = re.compile(
    r"(?: ?: (?:Not responding|reboot issued|reboot timed out|ResumeTimeout reached)){1,9}$"
)


def own_reason(reason: str) -> tuple[OwnReason, re.Match[str]] | None:
    """The reason of Slurm's own with which a text begins, and the match that shows how much of the
    text it is; None if the text begins with no such reason."""
    found = ((one, form.match(reason)) for one, form in _FORMS)
    return next(((one, match) for one, match in found if match), None)


def find_slurms_reason(reason: str) -> OwnReason | None:
    """The reason of Slurm's own that the whole text is, but for what slurmctld appends. None if the text
    has words of somebody else."""
    given = without_appended(reason)
    own = own_reason(given)
    return own[0] if own and own[1].end() == len(given) else None


def without_appended(reason: str) -> str:
    """A reason without the text that slurmctld has appended to it, which is not why the node is
    out."""
    return _APPENDED.sub("", reason).strip()


# Reasons that other tools set. The first match counts. The reasons of LBNL NHC begin with "NHC".
_REASON_REGEXES = (
    ("kill_task_failed", r"kill task failed"),
    ("not_responding", r"not responding|unexpectedly rebooted|ResumeTimeout"),
    ("sentinel", r"^sentinel:"),
    ("gpu", r"gpu|nvidia|xid|dcgm|nvlink|gres/"),
    ("prolog_epilog", r"prolog|epilog"),
    ("memory", r"low realmemory|\bmemory\b|\bdimm\b|\becc\b"),
    ("file_system", r"lustre|gpfs|nfs|mount|disk|file ?system|beegfs|tmpdisk"),
    (
        "network",
        r"infiniband|openib|\bib\b|\brdma\b|\bhca\b|mlx\d|\bnic\b|ethernet|\blink\b|network",
    ),
    ("health_check", r"^nhc|health"),
    ("hardware", r"\brma\b|hardware|\bpsu\b|\bfan\b|power|broken|replace"),
    ("maintenance", r"maint|upgrade|update|reboot|firmware"),
)
_REASON_PATTERNS = tuple(
    (name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _REASON_REGEXES
)
REASON_CLASSES = ("none", *(name for name, _ in _REASON_REGEXES), "other")
"""Every class there is: few, whatever people write."""


def classify_reason(reason: str) -> str:
    """The reason's class, one of REASON_CLASSES."""
    if not reason:
        return "none"
    if own := find_slurms_reason(reason):
        return own.page
    given = without_appended(reason)
    return next((name for name, pattern in _REASON_PATTERNS if pattern.search(given)), "other")


HARDWARE_CLASSES = frozenset({"gpu", "memory", "network", "hardware"})
"""Classes of reasons by which a part of the node may be broken."""

_PLANNED_PATTERN = re.compile(r"maint|upgrade|update|firmware|^\W*reboot", re.IGNORECASE)
"""Words of planned work. A reboot behind a fault is what the fault needs."""


def is_hardware_reason(reason: str) -> bool:
    """Whether the node was drained because a part of it may be broken. Planned work on a part, such
    as an update of the GPU's driver, is none."""
    text = without_appended(reason).removeprefix("sentinel:").strip()
    return classify_reason(text) in HARDWARE_CLASSES and not _PLANNED_PATTERN.search(text)
