"""What the proof says about a node's GPUs. Pure; a node without GPUs in Slurm has nothing to show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sentinel.checks.drained.people import unread
from sentinel.checks.drained.sight import Item, Rules, Sight
from sentinel.core.model import Status
from sentinel.core.text import shortened, visible
from sentinel.nodes.probe import KernelLog, NodeProbe, Unread
from sentinel.slurm import gres as core

if TYPE_CHECKING:
    from sentinel.gpu.model import Gpu
    from sentinel.gpu.xid import Event

LOOK_BACK = 3600
"""Seconds before the drain from which on an Xid counts. What hangs because of it is ended late:
collective calls wait 10 minutes, in older PyTorch 30, and then comes UnkillableStepTimeout. An
hour also covers a clock of the node that is off by what munge lets pass (5 minutes)."""

OF_PROGRAMS = frozenset({13, 31, 43, 45})
"""Xids of what a program did, or of its being killed; docs.nvidia.com/deploy/xid-errors."""

_DIAG = re.compile(r"^(\S*/)?(nvvs\b|dcgmi\s+diag\b)|^\[nvvs\]")
"""dcgmi diag, or its worker; by the kernel's short name where command lines were not read."""


def expected(gres: str, told: int | None = None) -> int | None:
    """How many GPUs a node must show: 0 where it has none, None where MIG hides the number."""
    return core.gpus(gres) if told is None else told


def processes(sight: Sight, probe: NodeProbe, rules: Rules) -> Item:
    """nvidia-smi was asked, and answered with none; no diagnostic is between two of its tests."""
    if _none(sight, rules):
        return Item(name="gpu processes", good=True, text="no GPUs in Slurm")
    told = probe.gpu_processes
    if told is None or isinstance(told, Unread):
        return Item(name="gpu processes", good=None, text=unread(told))
    found = [f"{p.name}({p.pid}) on {p.gpu}" for p in told]
    if isinstance(probe.processes, tuple):
        found += [f"a diagnostic({p.pid})" for p in probe.processes if _DIAG.search(p.command)]
    if not found:
        return Item(name="gpu processes", good=True, text="none")
    return Item(name="gpu processes", good=False, text=visible(", ".join(found[:5])))


def present(sight: Sight, probe: NodeProbe, rules: Rules) -> Item:
    """As many as Slurm promises to jobs, and none with which something is wrong."""
    if _none(sight, rules):
        return Item(name="gpus", good=True, text="no GPUs in Slurm")
    if probe.gpus is None or isinstance(probe.gpus, Unread):
        return Item(name="gpus", good=None, text=unread(probe.gpus))
    from sentinel.gpu import smi
    from sentinel.gpu.errors import Unreadable

    try:
        found = smi.parse(probe.gpus).gpus
    except Unreadable as error:
        return Item(name="gpus", good=None, text=visible(f"not understood: {error}"))
    if sick := [f"{g.uuid or g.bus or 'one of them'}: {why}" for g in found if (why := _sick(g))]:
        more = f" (and {len(sick) - 1} more)" if len(sick) > 1 else ""
        return Item(name="gpus", good=False, text=visible(f"{sick[0]}{more}"))
    there, must = len(found), expected(sight.node.gres, rules.gpus)
    good = there > 0 if must is None else there >= must
    wanted = "at least one" if must is None else str(must)
    return Item(name="gpus", good=good, text=f"{there} of {wanted} there")


def _sick(gpu: Gpu) -> str:
    """What is wrong with it by its own account, or waits for the reset that an idle node can have."""
    from sentinel.checks.gpu import judge

    found = judge.problems(gpu, judge.Limits(), judge.Limits())
    waits = any(part is not None and part.pending for part in (gpu.remapped, gpu.retired))
    waits = waits or gpu.recovery not in ("", "None")
    return next((text for status, text in found if waits or status is Status.CRITICAL), "")


def xids(sight: Sight, probe: NodeProbe, rules: Rules) -> Item:
    """No error of the driver since shortly before the drain."""
    if not rules.xids or _none(sight, rules):
        return Item(name="xids", good=True, text="not asked for" if rules.xids else "switched off")
    log, identity = probe.kernel, probe.identity
    if log is None or isinstance(log, Unread):
        return Item(name="xids", good=None, text=unread(log))
    if isinstance(identity, Unread) or sight.since is None:
        return Item(name="xids", good=None, text="nobody knows since when to look")
    # Whichever of the clocks is behind must not hide what came shortly before.
    booted = max(identity.time, sight.now) - identity.uptime
    return _xids(log, sight.since - LOOK_BACK - booted)


def _xids(log: KernelLog, since: float) -> Item:
    if not log.lines:
        return Item(name="xids", good=None, text="the kernel's log is empty")
    if found := _errors([line.text for line in log.lines if line.at >= since]):
        text = f"{len(found)} errors, the last: {shortened(found[-1], 160)}"
        return Item(name="xids", good=False, text=visible(text))
    if log.lines[0].at > max(since, 60.0):
        return Item(name="xids", good=None, text="the kernel's log does not go back to the drain")
    return Item(name="xids", good=True, text="none since an hour before the drain")


def _errors(lines: Sequence[str]) -> list[str]:
    """The lines that tell of a device in trouble, and not of a program on it."""
    from sentinel.gpu import xid

    return [lines[event.line] for event in xid.read(lines).events if _is_error(event)]


def _is_error(event: Event) -> bool:
    if event.kind == "xid":
        return event.code not in OF_PROGRAMS
    if event.kind == "sxid":
        return event.fatal is not False
    return event.kind == "init" or event.fatal is True


def _none(sight: Sight, rules: Rules) -> bool:
    return expected(sight.node.gres, rules.gpus) == 0
