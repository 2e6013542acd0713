"""What the proof says about a node's GPUs. Pure; a node without GPUs in Slurm has nothing to show."""

from __future__ import annotations

import re

from sentinel.checks.drained.people import unread
from sentinel.checks.drained.sight import Item, Rules, Sight
from sentinel.core import gres as core
from sentinel.core.probe import Identity, KernelLog, NodeProbe, Unread
from sentinel.core.text import shortened, visible

LOOK_BACK = 600
"""Seconds before the drain from which on an Xid counts: a task may hang because of it."""

OF_PROGRAMS = frozenset({13, 31, 43, 45})
"""Xids of what a program did, or of its being killed; docs.nvidia.com/deploy/xid-errors."""

_XID = re.compile(r"NVRM: Xid \([^)]*\): (\d+)")
_WORSE = re.compile(r"SXid \([^)]*\): \d+, (?!Non-fatal|Data)|NVRM: GPU .*fallen off the bus")


def expected(gres: str, told: int | None = None) -> int | None:
    """How many GPUs a node must show: 0 where it has none, None where MIG hides the number."""
    return core.gpus(gres) if told is None else told


def processes(sight: Sight, probe: NodeProbe, rules: Rules) -> Item:
    """nvidia-smi was asked, and answered with none."""
    if _none(sight, rules):
        return Item(name="gpu processes", good=True, text="no GPUs in Slurm")
    told = probe.gpu_processes
    if told is None or isinstance(told, Unread):
        return Item(name="gpu processes", good=None, text=unread(told))
    if not told:
        return Item(name="gpu processes", good=True, text="none")
    shown = ", ".join(f"{p.name}({p.pid}) on {p.gpu}" for p in told[:5])
    return Item(name="gpu processes", good=False, text=visible(shown))


def present(sight: Sight, probe: NodeProbe, rules: Rules) -> Item:
    """As many as Slurm promises to jobs."""
    if _none(sight, rules):
        return Item(name="gpus", good=True, text="no GPUs in Slurm")
    told = probe.gpus
    if told is None or isinstance(told, Unread):
        return Item(name="gpus", good=None, text=unread(told))
    there, must = told.count("<gpu id="), expected(sight.node.gres, rules.gpus)
    good = there > 0 if must is None else there >= must
    wanted = "at least one" if must is None else str(must)
    return Item(name="gpus", good=good, text=f"{there} of {wanted} there")


def xids(sight: Sight, probe: NodeProbe, rules: Rules) -> Item:
    """No error of the driver since shortly before the drain."""
    if not rules.xids or _none(sight, rules):
        return Item(name="xids", good=True, text="not asked for" if rules.xids else "switched off")
    log, identity = probe.kernel, probe.identity
    if log is None or isinstance(log, Unread):
        return Item(name="xids", good=None, text=unread(log))
    if isinstance(identity, Unread) or sight.node.reason_time is None:
        return Item(name="xids", good=None, text="nobody knows since when to look")
    since = sight.node.reason_time - LOOK_BACK - (identity.time - identity.uptime)
    return _xids(log, since, identity)


def _xids(log: KernelLog, since: float, identity: Identity) -> Item:
    found = [line.text for line in log.lines if line.at >= since and _is_error(line.text)]
    if found:
        text = f"{len(found)} errors, the last: {shortened(found[-1], 160)}"
        return Item(name="xids", good=False, text=visible(text))
    first = log.lines[0].at if log.lines else 0.0
    if first > max(since, 60.0):
        return Item(name="xids", good=None, text="the kernel's log does not go back to the drain")
    return Item(name="xids", good=True, text="none since ten minutes before the drain")


def _is_error(text: str) -> bool:
    match = _XID.search(text)
    if match:
        return int(match[1]) not in OF_PROGRAMS
    return bool(_WORSE.search(text))


def _none(sight: Sight, rules: Rules) -> bool:
    return expected(sight.node.gres, rules.gpus) == 0
