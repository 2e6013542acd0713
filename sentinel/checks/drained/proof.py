"""The proof that a drained node is clean, item by item. Pure; what was not seen is not clean.

What the proof says about a node's GPUs. Pure; a node without GPUs in Slurm has nothing to show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sentinel.checks import hanging
from sentinel.checks.drained import leftover_processes
from sentinel.checks.drained.leftover_processes import explain_unread
from sentinel.checks.drained.node_evidence import NodeEvidence, ProofItem, ProofRules
from sentinel.checks.drained.reasons import (
    find_hidden_reason,
    find_note,
    find_reason_author,
    has_prefix,
    is_absence_watched,
    may_be_old_reason,
)
from sentinel.core.long_lines import decode_lines
from sentinel.core.model import Status
from sentinel.core.node_answers import Answered
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.nodes.probe import KernelLine, KernelLog, NodeIdentity, NodeProbe, Unread
from sentinel.slurm import gres as core
from sentinel.slurm.job_states import EXPEDITED
from sentinel.slurm.node_states import UP, format_state, unfit_reason, unknown_flags

if TYPE_CHECKING:
    from sentinel.gpu.model import Gpu
    from sentinel.gpu.xid import Event


XID_LOOK_BACK_S = 3600
"""Xids count if they are at most this many seconds older than the drain. What hangs because of an
Xid ends late: collective calls wait 10 minutes, in older PyTorch 30, and then comes
UnkillableStepTimeout. An hour also covers a wrong clock of the node, as far as munge accepts it (5
minutes)."""

PROGRAM_XIDS = frozenset({13, 31, 43, 45})
"""Xids that a program causes, or its being killed; docs.nvidia.com/deploy/xid-errors."""

_DIAG_PATTERN = re.compile(r"^(\S*/)?(nvvs\b|dcgmi\s+diag\b)|^\[nvvs\]")
"""dcgmi diag, or its worker; by the kernel's short name where command lines were not read."""


def get_expected_gpus(gres: str, told: int | None = None) -> int | None:
    """How many GPUs a node must show. 0 if it has none, None if MIG hides the number."""
    return core.count_gres_gpus(gres) if told is None else told


def prove_no_gpu_processes(sight: NodeEvidence, probe: NodeProbe, rules: ProofRules) -> ProofItem:
    """Whether nvidia-smi lists no process, and no diagnostic is between two of its tests."""
    if _has_no_gpus(sight, rules):
        return ProofItem(name="gpu processes", good=True, text="no GPUs in Slurm")
    told = probe.gpu_processes
    if told is None or isinstance(told, Unread):
        return ProofItem(name="gpu processes", good=None, text=explain_unread(told))
    found = [f"{p.name or 'a process'} (pid {p.pid}) on {p.gpu}" for p in told]
    if isinstance(probe.processes, tuple):
        found += [
            f"a diagnostic (pid {p.pid})"
            for p in probe.processes
            if _DIAG_PATTERN.search(p.command)
        ]
    if not found:
        return ProofItem(name="gpu processes", good=True, text="none")
    return ProofItem(name="gpu processes", good=False, text=visible(", ".join(found[:5])))


def prove_gpus_present(sight: NodeEvidence, probe: NodeProbe, rules: ProofRules) -> ProofItem:
    """Whether the node has as many GPUs as Slurm promises to jobs, and none has a problem."""
    if _has_no_gpus(sight, rules):
        return ProofItem(name="gpus", good=True, text="no GPUs in Slurm")
    if probe.gpus is None or isinstance(probe.gpus, Unread):
        return ProofItem(name="gpus", good=None, text=explain_unread(probe.gpus))
    from sentinel.gpu import smi
    from sentinel.gpu.errors import Unreadable

    try:
        found = smi.parse(probe.gpus).gpus
    except Unreadable as error:
        return ProofItem(name="gpus", good=None, text=visible(f"not understood: {error}"))
    if sick := [
        f"{g.uuid or g.bus or 'one of them'}: {why}" for g in found if (why := _explain_sick_gpu(g))
    ]:
        more = f" (and {len(sick) - 1} more)" if len(sick) > 1 else ""
        return ProofItem(name="gpus", good=False, text=visible(f"{sick[0]}{more}"))
    if odd := [f"{g.uuid or g.bus}: {why}" for g in found if (why := _explain_unseen_gpu(g))]:
        return ProofItem(name="gpus", good=None, text=visible(odd[0]))
    there, must = len(found), get_expected_gpus(sight.node.gres, rules.gpus)
    good = there > 0 if must is None else there >= must
    wanted = "at least one" if must is None else str(must)
    return ProofItem(name="gpus", good=good, text=f"{there} of {wanted} there")


def _explain_sick_gpu(gpu: Gpu) -> str:
    """Why the GPU keeps the node drained: its fabric is not ready, so that no program can use CUDA
    (error 802), or it has a critical problem, or any problem and waits for a repair or reset. Empty
    if nothing does."""
    from sentinel.checks.gpu import judge

    if gpu.fabric:
        return (
            f"its NVLink fabric is not ready ({gpu.fabric}); does nvidia-fabricmanager run there?"
        )
    found = judge.problems(gpu, judge.Limits(), judge.Limits())
    waits = any(part is not None and part.pending for part in (gpu.remapped, gpu.retired))
    waits = waits or bool(gpu.repairs) or gpu.recovery not in ("", "None")
    return next((text for status, text in found if waits or status is Status.CRITICAL), "")


def _explain_unseen_gpu(gpu: Gpu) -> str:
    """Why the GPU's health is not known: a field was not read, or has a value not known here."""
    if gpu.troubles:
        return f"not read: {gpu.troubles[0]}"
    unknown = next((word for word in gpu.unknown if not word.mild), None)
    return f"{unknown.field} says '{unknown.word}', which sentinel does not know" if unknown else ""


def prove_no_xids(sight: NodeEvidence, probe: NodeProbe, rules: ProofRules) -> ProofItem:
    """Whether the driver has reported no error since shortly before the drain."""
    if not rules.xids or _has_no_gpus(sight, rules):
        return ProofItem(
            name="xids", good=True, text="not asked for" if rules.xids else "switched off"
        )
    log, identity = probe.kernel, probe.identity
    if log is None or isinstance(log, Unread):
        return ProofItem(name="xids", good=None, text=explain_unread(log))
    if isinstance(identity, Unread) or sight.wrong_since is None:
        return ProofItem(name="xids", good=None, text="not known since when to look")
    # The later of the two clocks counts, so that a slow clock does not hide what came shortly
    # before.
    booted = max(identity.time, sight.now) - identity.uptime
    return _judge_kernel_log(log, sight.wrong_since - XID_LOOK_BACK_S - booted)


def _judge_kernel_log(log: KernelLog, since: float) -> ProofItem:
    if not log.lines:
        return ProofItem(name="xids", good=None, text="the kernel's log is empty")
    if found := _find_device_errors([line for line in log.lines if line.at >= since]):
        text = f"{len(found)} errors, the last: {shortened(found[-1], 160)}"
        return ProofItem(name="xids", good=False, text=visible(text))
    if log.lines[0].at > max(since, 60.0):
        return ProofItem(
            name="xids", good=None, text="the kernel's log does not go back to the drain"
        )
    return ProofItem(name="xids", good=True, text="none since an hour before the drain")


def _find_device_errors(lines: Sequence[KernelLine]) -> list[str]:
    """The lines about a device in trouble, without those about a program that uses it."""
    from sentinel.gpu import xid

    texts = [line.text for line in lines]
    found = xid.read(texts, [line.level for line in lines]).events
    return [texts[event.line].partition("\n")[0] for event in found if _is_device_error(event)]


def _is_device_error(event: Event) -> bool:
    if event.kind == "xid":
        return event.code not in PROGRAM_XIDS
    if event.kind == "sxid":
        return event.fatal is not False
    return event.kind in ("init", "driver") or event.fatal is True


def _has_no_gpus(sight: NodeEvidence, rules: ProofRules) -> bool:
    return get_expected_gpus(sight.node.gres, rules.gpus) == 0


VFORK_WAITS = frozenset({"kernel_clone", "_do_fork", "do_fork", "wait_for_vfork_done"})
"""Kernel functions in which a parent waits in state D until its child has replaced itself
(vfork(2))."""

MIN_BLOCKED_AGE_S = 3
"""Seconds of age below which state D may be the probe's own ps waiting for its pages."""

BOOT_SLACK_S = 120
"""Seconds by which slurmd's and the node's own account of its boot may differ."""


_NOT_WATCHED_TEXT = (
    "it was drained while sentinel did not look, so an earlier reason may have been overwritten; "
    "undrain it by hand once, or give `slurmctld_log`"
)


def prove_by_slurm(sight: NodeEvidence, rules: ProofRules) -> list[ProofItem]:
    """The conditions that Slurm and the ledger show. If one fails, the node must not be touched."""
    return [_prove_drained(sight), _prove_not_reserved(sight), _prove_reasons(sight, rules)]


def prove_by_node(sight: NodeEvidence, rules: ProofRules) -> list[ProofItem]:
    """The conditions that the node itself shows."""
    if sight.node_probe is None:
        return [ProofItem(name="responds", good=None, text=_describe_no_answer(sight))]
    return [item(sight, sight.node_probe, rules) for item in NODE_PROOFS]


def prove_by_commands(sight: NodeEvidence, rules: ProofRules) -> list[ProofItem]:
    """The results of the configured proofs. They run only if everything else is good."""
    return [_prove_by_command(name, sight) for name in rules.proofs]


def can_ask_node(sight: NodeEvidence) -> bool:
    """Whether the node can be asked: it is reachable, and not in somebody's reservation."""
    flags = sight.node.flags
    return sight.node.state in UP and not flags & {"NOT_RESPONDING", "MAINTENANCE"}


def is_proven(items: Sequence[ProofItem]) -> bool:
    """Whether all conditions are met. No conditions are not enough."""
    return bool(items) and all(item.good for item in items)


def is_momentary(items: Sequence[ProofItem]) -> bool:
    """Whether all conditions that are not met may be met in the next run of the check."""
    return not is_proven(items) and all(item.good or item.moment for item in items)


def _prove_drained(sight: NodeEvidence) -> ProofItem:
    node, text = sight.node, format_state(sight.node)
    if sight.expediting:
        return _make_bad_item("drained", _describe_expediting(sight))
    strange = unknown_flags(node)
    if why := unfit_reason(replace(node, flags=node.flags.difference(strange))):
        return ProofItem(name="drained", good=False, text=f"it is {why}")
    if strange:
        text = f"it is {strange[0]}, a state that this version of sentinel does not know"
        return ProofItem(name="drained", good=None, text=visible(text))
    if sight.paused:
        return _make_bad_item("drained", f"job {', '.join(sight.paused)} is suspended there")
    if node.state != "IDLE":
        return ProofItem(name="drained", good=False, text=f"jobs still run there ({text})")
    return ProofItem(name="drained", good=True, text=f"{text}, no job there")


def _describe_expediting(sight: NodeEvidence) -> str:
    """A job that is requeued with `expedite` starts when the epilogs on all its nodes have ended."""
    jobs, since = ", ".join(sight.expediting), sight.node.reason_time
    text = f"job {jobs} is EXPEDITING there: it starts again when its epilog here has ended"
    if since is None or sight.now - since < EXPEDITED:
        return visible(text)
    return visible(
        f"{text}, which it has not for {duration_text(sight.now - since)}; it needs a person: end "
        f"what hangs there, set the node DOWN, or give the job up (scancel {jobs})"
    )


def _prove_not_reserved(sight: NodeEvidence) -> ProofItem:
    reserved = "MAINTENANCE" in sight.node.flags
    text = "in a maintenance reservation" if reserved else "in no maintenance reservation"
    return ProofItem(name="reservation", good=not reserved, text=text)


def _prove_reasons(sight: NodeEvidence, rules: ProofRules) -> ProofItem:
    """All reasons of this absence from service must be allowed. Earlier absences do not count."""
    if sight.completing is not None and "DRAIN" not in sight.node.flags:
        return ProofItem(
            name="history", good=True, text="it is not drained, so no reason can be overwritten"
        )
    if objection := _find_persons_objection(sight, rules):
        return _make_bad_item("history", objection)
    if sight.readings is None:
        return ProofItem(
            name="history",
            good=None,
            text="unknown: this command does not read the service's records",
        )
    if found := find_hidden_reason(sight.readings, sight.history.reasons, rules.reasons):
        return _make_bad_item("history", f"its reason replaced another one: '{visible(found)}'")
    if may_be_old_reason(sight.node, sight.readings):
        return _make_bad_item(
            "history", "its reason is an older one; why it left service now is not known"
        )
    if trouble := sight.history.trouble:
        text = visible(f"not known: slurmctld's log: {trouble}")
        return ProofItem(name="history", good=None, text=text)
    if not (is_absence_watched(sight.readings) or sight.history.whole):
        return ProofItem(name="history", good=None, text=_NOT_WATCHED_TEXT)
    return ProofItem(name="history", good=True, text="no other reason since it left service")


def _find_persons_objection(sight: NodeEvidence, rules: ProofRules) -> str:
    """What shows that a person keeps the node out of service, by what Slurm has of it now. Empty if
    nothing does."""
    node = sight.node
    if not has_prefix(node.reason, rules.reasons):
        return f"it is drained for another reason: '{visible(node.reason)}'"
    if giver := find_reason_author(node):
        return f"its reason was given by {visible(giver)}, not by Slurm"
    if note := find_note(node.reason, rules.reasons):
        return f"its reason goes on with somebody's note: '{visible(note)}'"
    return f"somebody left a note since it was drained: {sight.note}" if sight.note else ""


def _prove_responds(sight: NodeEvidence, probe: NodeProbe, rules: ProofRules) -> ProofItem:
    """Whether the node itself answers. The answer of another host to which its name leads does not
    count."""
    told = probe.identity
    if isinstance(told, Unread):
        return _make_unread_item("responds", told)
    name = visible(told.hostname)
    if _is_same_host(sight, told, rules):
        return ProofItem(name="responds", good=True, text=f"it answers as {name}")
    return _make_bad_item("responds", f"{name} answered in its place")


def _is_same_host(sight: NodeEvidence, told: NodeIdentity, rules: ProofRules) -> bool:
    """Whether the answer is from this node: by its name, or by its boot if no other node has that
    name.

    Clusters at one site may use the same names with a different domain (`n0001.east`,
    `n0001.west`). So the part before the first dot is not enough.
    """
    node, full = sight.node.name.lower(), told.hostname.lower()
    others, name = rules.names - {node}, full.partition(".")[0]
    if full == node or (full not in others and full.startswith(f"{node}.")):
        return True
    if any(full == other or full.startswith(f"{other}.") for other in others):
        return False
    if name == node.partition(".")[0] and all(o.partition(".")[0] != name for o in others):
        return True
    booted = sight.node.boot_time
    near = booted is not None and abs(told.time - told.uptime - booted) < BOOT_SLACK_S
    return near and name not in rules.names


def _describe_no_answer(sight: NodeEvidence) -> str:
    if sight.answer is None:
        return "it was not asked"
    kind = "".join(f" {c.lower()}" if c.isupper() else c for c in type(sight.answer).__name__)
    why = getattr(sight.answer, "why", "")
    return visible(f"{kind.strip()}: {why}" if why else kind.strip())


def _prove_not_blocked(sight: NodeEvidence, probe: NodeProbe, rules: ProofRules) -> ProofItem:
    """Whether no process hangs in state D. Kernel threads and a process that has forked wait so
    too."""
    told = probe.blocked
    if told is None or isinstance(told, Unread):
        return _make_unread_item("blocked", told)
    stuck = [b for b in told if not b.kernel and b.wait not in VFORK_WAITS]
    if not stuck:
        return ProofItem(name="blocked", good=True, text="no task in state D")
    lasting = [b for b in stuck if b.pid in _find_lasting_pids(probe)]
    shown = ", ".join(
        f"{b.name} (pid {b.pid}) {hanging.describe_wait(b, probe)}" for b in (lasting or stuck)[:5]
    )
    if not lasting:
        text = f"in state D just now, which may pass; the next look tells: {shown}"
        return ProofItem(name="blocked", good=None, text=visible(text), moment=True)
    more = f" and {len(lasting) - 5} more" if len(lasting) > 5 else ""
    return _make_bad_item(
        "blocked", visible(f"processes hang in the kernel (state D): {shown}{more}")
    )


def _find_lasting_pids(probe: NodeProbe) -> frozenset[int]:
    """Processes that are older than the probe. If their age is not known, all in state D."""
    told, identity = probe.processes, probe.identity
    if not isinstance(told, tuple) or isinstance(identity, Unread):
        return (
            frozenset(b.pid for b in probe.blocked)
            if isinstance(probe.blocked, tuple)
            else frozenset()
        )
    return frozenset(p.pid for p in told if p.started < identity.time - MIN_BLOCKED_AGE_S)


def _prove_by_command(name: str, sight: NodeEvidence) -> ProofItem:
    answer = sight.ran.get(name)
    if answer is None:
        text = "runs only after all else is proven"
        # lasts only as long as the other conditions
        return ProofItem(name=name, good=None, text=text, moment=True)
    if not isinstance(answer, Answered):
        return ProofItem(name=name, good=None, text=visible(f"did not end: {answer.why}"))
    said = decode_lines(answer.err.strip() or answer.out.strip())
    last = shortened(visible(said.rpartition("\n")[2]), 200)
    text = f"exit code {answer.code}" + (f": {last}" if last else "")
    return ProofItem(name=name, good=answer.code == 0, text=text)


def _make_bad_item(name: str, text: str) -> ProofItem:
    return ProofItem(name=name, good=False, text=text)


def _make_unread_item(name: str, told: Unread | None) -> ProofItem:
    return ProofItem(name=name, good=None, text=leftover_processes.explain_unread(told))


NODE_PROOFS: tuple[Callable[[NodeEvidence, NodeProbe, ProofRules], ProofItem], ...] = (
    _prove_responds,
    _prove_not_blocked,
    leftover_processes.prove_no_job_processes,
    leftover_processes.prove_no_user_processes,
    prove_no_gpu_processes,
    prove_gpus_present,
    prove_no_xids,
)
