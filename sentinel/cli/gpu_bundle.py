"""`sentinel gpus report`: what a vendor asks for before an RMA, gathered in one archive."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import tarfile
from collections.abc import Iterator

from msgspec import Struct

from sentinel import app, hands
from sentinel.cli import gpu_tables
from sentinel.core import gpubook
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import SentinelError
from sentinel.core.gpus import Entry, Gpus
from sentinel.core.remote import Answered
from sentinel.core.settings import Settings

ASKED = 60.0
BUG_REPORT = 600.0
"""Seconds: nvidia-bug-report.sh takes minutes on eight GPUs."""


class Made(Struct, frozen=True, kw_only=True):
    """Where it is, and what could not be had."""

    path: str
    missing: list[str]


class NoBundle(SentinelError):
    """The file cannot be written."""

    exit_code = 73
    """EX_CANTCREAT of sysexits(3)."""


def make(
    settings: Settings, gpus: Gpus, entry: Entry, now: Instant, args: argparse.Namespace
) -> Made:
    """History, archived diagnostics, nvidia-smi, kernel lines: whatever can be had."""
    missing: list[str] = []
    name = re.sub(r"[^A-Za-z0-9._-]", "_", entry.serial or entry.subject)
    path = args.output or f"rma-{name}.tar.gz"
    parts = {"history.json": _history(settings, gpus, entry, now)}
    parts |= dict(_archived(settings, gpus, entry, args.archive, missing))
    if entry.node:
        parts |= dict(_from_node(settings, entry, args.bug_report, missing))
    parts["missing.txt"] = "\n".join([*missing, ""]).encode()
    try:
        with tarfile.open(path, "w:gz") as archive:
            for part, content in parts.items():
                info = tarfile.TarInfo(f"rma-{name}/{part}")
                info.size, info.mtime = len(content), now.wall // SECOND
                archive.addfile(info, io.BytesIO(content))
    except OSError as error:
        raise NoBundle(f"{path}: {error.strerror}") from error
    return Made(path=path, missing=missing)


def _history(settings: Settings, gpus: Gpus, entry: Entry, now: Instant) -> bytes:
    events = gpus.events(entry.subject, 100_000)
    shown = gpu_tables.Shown(
        entry=entry,
        standing=gpubook.standing(entry, now, gpus.policy),
        stays=tuple(gpus.stays(entry.subject)),
        events=tuple(events),
        terms=tuple(gpubook.terms(entry, events, now.wall, gpus.policy)),
        policy=gpus.policy,
    )
    return json.dumps(gpu_tables.plain(shown, app.zone(settings)), indent=1).encode()


def _archived(
    settings: Settings, gpus: Gpus, entry: Entry, archive: str | None, missing: list[str]
) -> Iterator[tuple[str, bytes]]:
    """Diagnostics of the nodes it was in; which stay each is of, the time in its name says."""
    from sentinel.checks.diag.archive import files, usual_place

    nodes = {stay.node for stay in gpus.stays(entry.subject)} | {entry.node}
    directory = archive or usual_place()
    found = 0
    for file in files(directory):
        if file.node in nodes:
            try:
                with open(os.path.join(directory, file.name), "rb") as opened:
                    yield f"diag/{file.name}", opened.read(64 * 2**20)
                    found += 1
            except OSError as error:
                missing.append(f"{file.name}: {error.strerror}")
    if not found:
        missing.append(f"no archived diagnostic of {', '.join(sorted(nodes))} in {directory}")


def _from_node(
    settings: Settings, entry: Entry, bug_report: bool, missing: list[str]
) -> Iterator[tuple[str, bytes]]:
    remote, _ = hands.remote(settings)
    wanted = {
        "nvidia-smi-q.txt": (["nvidia-smi", "-q", "-i", entry.subject], ASKED),
        "nvidia-smi-q.xml": (["nvidia-smi", "-q", "-x"], ASKED),
        "dmesg.txt": (["dmesg", "-T"], ASKED),
    }
    report = "/tmp/sentinel-nvidia-bug-report"  # noqa: S108 - on the node, named by the tool's own way
    if bug_report:
        argv = ["nvidia-bug-report.sh", "--output-file", report]
        wanted["nvidia-bug-report.txt"] = (argv, BUG_REPORT)
        wanted["nvidia-bug-report.log.gz"] = (["cat", f"{report}.gz"], ASKED)
    for name, (argv, limit) in wanted.items():
        answer = remote.run([entry.node], argv, limit=limit)[entry.node]
        if not isinstance(answer, Answered):
            missing.append(f"{name}: {entry.node}: {answer.why}")
        elif answer.code:
            said = answer.err.decode("utf-8", "replace").strip().partition("\n")[0]
            missing.append(f"{name}: exit code {answer.code}: {said}")
        else:
            yield name, _kernel(answer.out) if name == "dmesg.txt" else answer.out


def _kernel(out: bytes) -> bytes:
    """Only what NVIDIA's drivers said: the rest may be of users."""
    lines = [line for line in out.split(b"\n") if b"NVRM" in line or b"nvidia" in line.lower()]
    return b"\n".join([*lines, b""])
