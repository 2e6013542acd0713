"""Tests this machine quickly, for epilogs. A wrong result would take a node out."""

from __future__ import annotations

import os

from msgspec import Struct

from sentinel import proc
from sentinel.checks.diag import archive
from sentinel.core.clock import Instant
from sentinel.core.long_lines import decode_document, decode_lines
from sentinel.core.text import shortened, visible
from sentinel.gpu import smi
from sentinel.gpu.dcgm import Ran, Verdict, judge
from sentinel.gpu.errors import Unreadable

TIMEOUT_EXIT_CODE = 124
"""The exit code of timeout(1) for a command that it had to end."""


class EpilogVerdict(Struct, frozen=True, kw_only=True):
    """The result of the test for an epilog."""

    text: str  # The line.
    confirmed: bool  # Whether a fault of the hardware is confirmed.
    outcome: str  # The verdict in a word.


def test_this_machine(
    level: int, limit: float, gpus: str, place: str | None, now: Instant
) -> EpilogVerdict:
    """Test these GPUs (DCGM's numbers, `0,1`; empty: all). Raises only for invalid arguments."""
    if level > 1 and (why := _explain_busy_gpus(gpus)):
        return _make_epilog_verdict(Verdict(outcome="inconclusive", why=why, level=level), "")
    chosen = ["-i", gpus] if gpus else []
    argv = ["dcgmi", "diag", "-r", str(level), "-j", *chosen]
    try:
        done = proc.run(argv, limit=limit, max_output=archive.MAX_OUTPUT_BYTES)
    except proc.CommandNotFound as error:
        return _make_epilog_verdict(
            Verdict(outcome="inconclusive", why=str(error), level=level), ""
        )
    except proc.TimedOut:
        late = Ran(out="", code=TIMEOUT_EXIT_CODE, level=level, late=True)
        return _make_epilog_verdict(judge(late), "")
    except proc.TooMuchOutput as error:
        return _make_epilog_verdict(
            Verdict(outcome="inconclusive", why=str(error), level=level), ""
        )
    out = decode_document(done.out)
    text = out if out.strip() else decode_lines(done.err)
    code = done.code if done.code >= 0 else 128 - done.code
    count = len(gpus.split(",")) if gpus else 0
    verdict = judge(Ran(out=text, code=code, level=level, gpus=count))
    return _make_epilog_verdict(
        verdict, _archive_output(place, level, out, code, now) if place else ""
    )


def _explain_busy_gpus(gpus: str) -> str:
    """Why the GPUs must not be put under load; empty if they may.

    Slurm names a GPU to the epilog of each job that had a part of it, while other jobs compute on
    the rest (shards and MPS: gres_common_prep_set_env() in src/plugins/gres/common/gres_common.c).
    Level 1 puts no load on them."""
    try:
        found = smi.parse(_read_nvidia_smi())
    except Unreadable as error:
        return f"which processes use the GPUs cannot be seen: {error}"
    known = len(found.gpus) == found.attached  # otherwise the number of each GPU is not known
    for number, gpu in enumerate(found.gpus):
        meant = not gpus or not known or str(number) in gpus.split(",")
        if meant and any("C" in process.kind for process in gpu.processes):
            return f"busy: a process computes on GPU {number}"
    return ""


def _make_epilog_verdict(verdict: Verdict, trouble: str) -> EpilogVerdict:
    also = f" ({trouble})" if trouble else ""
    text = f"dcgmi diag -r {verdict.level}: {verdict.outcome}: {verdict.why}{also}"
    return EpilogVerdict(
        text=visible(shortened(text, 400)), confirmed=verdict.confirmed, outcome=verdict.outcome
    )


def _archive_output(place: str, level: int, out: str, code: int, now: Instant) -> str:
    """Store the output in the archive, where the service finds it. Returns why that failed, or an
    empty text."""
    node = os.uname().nodename.partition(".")[0]
    path = os.path.join(place, archive.make_output_name(level, node, now))
    smi = _read_nvidia_smi()
    try:
        os.makedirs(place, exist_ok=True)
        for suffix, text in (("", out), (".gpus", smi), (".rc", f"{code}\n")):
            with open(path + suffix, "x", encoding="utf-8", errors="replace") as file:
                file.write(text)
    except OSError as error:
        return f"not archived: {error.strerror}"
    return ""


def _read_nvidia_smi() -> str:
    try:
        return decode_document(proc.run(["nvidia-smi", "-q", "-x"], limit=15).out)
    except (proc.CommandNotFound, proc.TimedOut, proc.TooMuchOutput):
        return ""
