"""Judges what is left over on GPUs, and DCGM's daemon with its log. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sentinel.checks.host.judge import Trouble, note_count
from sentinel.core.host_parts import HostEngine
from sentinel.core.model import Status
from sentinel.core.values import duration_text, size_text
from sentinel.nodes.probe import NodeProbe

MAX_ENGINE_BYTES = 4 * 2**30
"""Of resident memory. It has some hundred megabytes (github.com/NVIDIA/DCGM/issues/269)."""
MAX_LOG_BYTES = 5 * 10**9
MAX_LOG_GROWTH = 100 * 10**6
"""Bytes within LOG_WINDOW_S. Logs of 250 MB a day were met (github.com/NVIDIA/DCGM/issues/279)."""
LOG_WINDOW_S = 86400.0
MAX_NAMED_GPUS = 4


def find_held_memory(probe: NodeProbe, most: float) -> Mapping[str, int]:
    """The GPUs that have more memory in use than that although no process is on any GPU of the
    node, with the bytes."""
    if not isinstance(probe.gpu_memory, Mapping) or not isinstance(probe.gpu_processes, tuple):
        return {}
    if probe.gpu_processes:
        return {}
    return {gpu: used for gpu, used in probe.gpu_memory.items() if used is not None and used > most}


def judge_held_memory(held: Mapping[str, int], is_idle: bool | None) -> Trouble | None:
    """The trouble of a node whose GPUs hold memory. A job may use it in a way that the driver shows
    no process for, so it is one only if Slurm says that no job has the node (`is_idle`)."""
    if not held or is_idle is False:
        return None
    named = ", ".join(
        f"{gpu} {size_text(used)}" for gpu, used in list(held.items())[:MAX_NAMED_GPUS]
    )
    more = f" and {len(held) - MAX_NAMED_GPUS} more" if len(held) > MAX_NAMED_GPUS else ""
    text = f"memory of GPUs is in use, but the driver shows no process there: {named}{more}"
    if is_idle is None:
        return "gpus", Status.UNKNOWN, f"{text}; Slurm does not tell whether a job has the node"
    return "gpus", Status.WARNING, f"{text}; Slurm has no job there"


def judge_engine(
    engine: HostEngine, counts: dict[str, list[tuple[float, int]]], now: float
) -> Iterator[tuple[bool, Trouble]]:
    """The troubles of the daemon and of its logs, each with whether it may pass."""
    if engine.answers is False:
        text = f"nv-hostengine does not answer (dcgmi waited {engine.patience} s)"
        yield True, ("nv-hostengine", Status.WARNING, text)
    if engine.memory > MAX_ENGINE_BYTES:
        text = f"nv-hostengine has {size_text(engine.memory)} of memory: it leaks"
        yield False, ("nv-hostengine", Status.WARNING, text)
    for path, size in engine.logs.items():
        track = counts.setdefault(f"size {path}", [])
        rise = note_count(track, size, LOG_WINDOW_S, now)
        grown = f"{path} of DCGM grew by {size_text(rise)} in {duration_text(now - track[0][0])}"
        if rise > MAX_LOG_GROWTH:
            yield False, ("dcgm-log", Status.WARNING, f"{grown}, to {size_text(size)}")
        elif size > MAX_LOG_BYTES:
            yield False, ("dcgm-log", Status.WARNING, f"{path} of DCGM has {size_text(size)}")
