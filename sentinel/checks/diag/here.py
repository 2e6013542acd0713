"""A quick diagnostic of this machine, for epilogs: the wrong answer would take a node out."""

from __future__ import annotations

import os

from msgspec import Struct

from sentinel import proc
from sentinel.checks.diag import archive
from sentinel.core.clock import Instant
from sentinel.core.text import shortened, visible
from sentinel.gpu.dcgm import Ran, Verdict, judge

KILLED = 124
"""timeout(1)'s exit code for what it had to end."""


class Said(Struct, frozen=True, kw_only=True):
    """One line, and whether a fault of the hardware is confirmed."""

    text: str
    confirmed: bool
    outcome: str


def look(level: int, limit: float, gpus: str, place: str | None, now: Instant) -> Said:
    """Test these GPUs (DCGM's numbers, `0,1`; empty: all). Never raises but for bad arguments."""
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
