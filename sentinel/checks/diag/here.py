"""A quick diagnostic of this machine, for epilogs: the wrong answer would take a node out."""

from __future__ import annotations

import os

from msgspec import Struct

from sentinel import proc
from sentinel.checks.diag import archive
from sentinel.core.clock import Instant
from sentinel.core.text import shortened, visible
from sentinel.gpu import smi
from sentinel.gpu.dcgm import Ran, Verdict, judge
from sentinel.gpu.errors import Unreadable

KILLED = 124
"""timeout(1)'s exit code for what it had to end."""


class Said(Struct, frozen=True, kw_only=True):
    """One line, and whether a fault of the hardware is confirmed."""

    text: str
    confirmed: bool
    outcome: str


def look(level: int, limit: float, gpus: str, place: str | None, now: Instant) -> Said:
    """Test these GPUs (DCGM's numbers, `0,1`; empty: all). Never raises but for bad arguments."""
    if level > 1 and (why := _in_use(gpus)):
        return _said(Verdict(outcome="inconclusive", why=why, level=level), "")
    chosen = ["-i", gpus] if gpus else []
    argv = ["dcgmi", "diag", "-r", str(level), "-j", *chosen]
    try:
        done = proc.run(argv, limit=limit, max_output=archive.LONGEST)
    except proc.NotFound as error:
        return _said(Verdict(outcome="inconclusive", why=str(error), level=level), "")
    except proc.TimedOut:
        late = Ran(out="", code=KILLED, level=level, late=True)
        return _said(judge(late), "")
    except proc.TooMuch as error:
        return _said(Verdict(outcome="inconclusive", why=str(error), level=level), "")
    out = done.out.decode("utf-8", "replace")
    text = out if out.strip() else done.err.decode("utf-8", "replace")
    code = done.code if done.code >= 0 else 128 - done.code
    count = len(gpus.split(",")) if gpus else 0
    verdict = judge(Ran(out=text, code=code, level=level, gpus=count))
    return _said(verdict, _kept(place, level, out, code, now) if place else "")


def _in_use(gpus: str) -> str:
    """Why they are not to be put under load: Slurm names a GPU to the epilog of each job that had a
    part of it, while others compute on the rest (shards and MPS: gres_common_prep_set_env() in
    src/plugins/gres/common/gres_common.c). Level 1 loads nothing."""
    try:
        found = smi.parse(_smi())
    except Unreadable as error:
        return f"nobody can see who computes on the GPUs: {error}"
    known = len(found.gpus) == found.attached  # else nobody knows which one has which number
    for number, gpu in enumerate(found.gpus):
        meant = not gpus or not known or str(number) in gpus.split(",")
        if meant and any("C" in process.kind for process in gpu.processes):
            return f"busy: a process computes on GPU {number}"
    return ""


def _said(verdict: Verdict, trouble: str) -> Said:
    also = f" ({trouble})" if trouble else ""
    text = f"dcgmi diag -r {verdict.level}: {verdict.outcome}: {verdict.why}{also}"
    return Said(
        text=visible(shortened(text, 400)), confirmed=verdict.confirmed, outcome=verdict.outcome
    )


def _kept(place: str, level: int, out: str, code: int, now: Instant) -> str:
    """Into the archive, where the service finds it; why not, if that fails."""
    node = os.uname().nodename.partition(".")[0]
    path = os.path.join(place, archive.name_of(level, node, now))
    smi = _smi()
    try:
        os.makedirs(place, exist_ok=True)
        for suffix, text in (("", out), (".gpus", smi), (".rc", f"{code}\n")):
            with open(path + suffix, "x", encoding="utf-8", errors="replace") as file:
                file.write(text)
    except OSError as error:
        return f"not archived: {error.strerror}"
    return ""


def _smi() -> str:
    try:
        return proc.run(["nvidia-smi", "-q", "-x"], limit=15).out.decode("utf-8", "replace")
    except (proc.NotFound, proc.TimedOut, proc.TooMuch):
        return ""
