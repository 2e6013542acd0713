"""`sentinel gpus report`: collects in one archive what a vendor needs for an RMA."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import tarfile
from collections.abc import Iterator, Mapping

from msgspec import Struct

from sentinel.checks.diag.archive import get_default_directory, list_outputs
from sentinel.cli import gpu_tables
from sentinel.cli.gpu_ledger import Ledger, load_gpu_details
from sentinel.config.settings import Settings
from sentinel.core.clock import SECOND
from sentinel.core.errors import SentinelError
from sentinel.core.gpu_ledger import LedgerEntry
from sentinel.core.long_lines import decode_lines
from sentinel.core.node_answers import Answered
from sentinel.proc.whole_files import write_output_file
from sentinel.wiring import actions, app

COMMAND_TIMEOUT_S = 60.0
BUG_REPORT_TIMEOUT_S = 600.0
"""Seconds at most: nvidia-bug-report.sh takes minutes on eight GPUs."""

BUG_REPORT_PATH = "/run/sentinel-nvidia-bug-report.log"
"""On the node, in a directory where only root may write: in /tmp a user could have made a link
there. The script needs root, and appends .gz."""


class BundleResult(Struct, frozen=True, kw_only=True):
    """The path of the archive, and what is missing in it."""

    path: str
    missing: list[str]


class CannotWriteBundle(SentinelError):
    """The file cannot be written."""

    exit_code = 73
    """EX_CANTCREAT of sysexits(3)."""


def write_rma_bundle(of: Ledger, entry: LedgerEntry, args: argparse.Namespace) -> BundleResult:
    """Write history, archived diagnostics, nvidia-smi and kernel lines: whatever is available."""
    missing: list[str] = []
    name = re.sub(r"[^A-Za-z0-9._-]", "_", entry.serial or entry.subject)
    path = args.output or f"rma-{name}.tar.gz"
    parts = {"history.json": _encode_history(of, entry)}
    parts |= dict(_read_archived_diags(of, entry, args.archive, missing))
    if entry.node:
        parts |= dict(_collect_node_files(of.settings, entry, args.bug_report, missing))
    parts["missing.txt"] = "\n".join([*missing, ""]).encode()
    try:
        _write_archive(path, {f"rma-{name}/{part}": content for part, content in parts.items()}, of)
    except OSError as error:
        raise CannotWriteBundle(f"{path}: {error.strerror}") from error
    return BundleResult(path=path, missing=missing)


def _write_archive(path: str, parts: Mapping[str, bytes], of: Ledger) -> None:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for name, content in parts.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), of.now.wall // SECOND
            archive.addfile(info, io.BytesIO(content))
    write_output_file(path, whole.getvalue())


def _encode_history(of: Ledger, entry: LedgerEntry) -> bytes:
    told = gpu_tables.build_gpu_document(
        load_gpu_details(of, entry, events=100_000), app.get_time_zone(of.settings)
    )
    return json.dumps(told, indent=1).encode()


def _read_archived_diags(
    of: Ledger, entry: LedgerEntry, archive: str | None, missing: list[str]
) -> Iterator[tuple[str, bytes]]:
    """Archived outputs of the nodes in which the GPU was; the time in a name shows during which
    stay it was made."""
    nodes = {stay.node for stay in of.gpus.read_stays(entry.subject)} | {entry.node}
    directory = archive or get_default_directory()
    found = 0
    for file in list_outputs(directory):
        if file.node in nodes:
            try:
                with open(os.path.join(directory, file.name), "rb") as opened:
                    yield f"diag/{file.name}", opened.read(64 * 2**20)
                    found += 1
            except OSError as error:
                missing.append(f"{file.name}: {error.strerror}")
    if not found:
        missing.append(f"no archived diagnostic of {', '.join(sorted(nodes))} in {directory}")


def _collect_node_files(
    settings: Settings, entry: LedgerEntry, bug_report: bool, missing: list[str]
) -> Iterator[tuple[str, bytes]]:
    remote, _ = actions.connect_remote(settings)
    for name, (argv, limit) in _list_bundle_commands(entry, bug_report).items():
        answer = remote.run([entry.node], argv, limit=limit)[entry.node]
        if not isinstance(answer, Answered):
            missing.append(f"{name}: {entry.node}: {answer.why}")
        elif answer.code:
            said = decode_lines(answer.err).strip().partition("\n")[0]
            missing.append(f"{name}: exit code {answer.code}: {said}")
        else:
            yield name, _select_nvidia_lines(answer.out) if name == "dmesg.txt" else answer.out
    if bug_report:
        remote.run(
            [entry.node],
            ["rm", "-f", "--", BUG_REPORT_PATH, f"{BUG_REPORT_PATH}.gz"],
            limit=COMMAND_TIMEOUT_S,
        )


def _list_bundle_commands(
    entry: LedgerEntry, bug_report: bool
) -> dict[str, tuple[list[str], float]]:
    """Commands whose output goes into the archive, by name, with their time limits."""
    wanted = {
        "nvidia-smi-q.txt": (["nvidia-smi", "-q", "-i", entry.subject], COMMAND_TIMEOUT_S),
        "nvidia-smi-q.xml": (["nvidia-smi", "-q", "-x"], COMMAND_TIMEOUT_S),
        "dmesg.txt": (["dmesg", "-T", "--facility=kern"], COMMAND_TIMEOUT_S),
    }
    if bug_report:
        script = ["nvidia-bug-report.sh", "--output-file", BUG_REPORT_PATH]
        wanted["nvidia-bug-report.txt"] = (script, BUG_REPORT_TIMEOUT_S)
        wanted["nvidia-bug-report.log.gz"] = (["cat", f"{BUG_REPORT_PATH}.gz"], COMMAND_TIMEOUT_S)
    return wanted


_NVIDIA_LINE = re.compile(rb"\[[^]]{1,40}\] (?:NVRM|nvidia[\w-]*)[: ]", re.IGNORECASE)


def _select_nvidia_lines(out: bytes) -> bytes:
    """Only records that begin with NVIDIA's drivers: the others may be users' text."""
    return b"\n".join([*(line for line in out.split(b"\n") if _NVIDIA_LINE.match(line)), b""])
