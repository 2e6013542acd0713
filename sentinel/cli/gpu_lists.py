"""`sentinel gpus export|import`: lists of lemons that clusters and teams share."""

from __future__ import annotations

import argparse
import json
import os
import sys

from sentinel.cli.gpu_ledger import Ledger, open_ledger
from sentinel.core.clock import SECOND
from sentinel.core.gpu_ledger import GpuStanding, LedgerEntry
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.text import visible
from sentinel.gpu import shared_list
from sentinel.wiring.app import UsageError

GPU_UUID_PATTERN = lazy_pattern(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def export_lemons(args: argparse.Namespace) -> int:
    """Print the list. Returns 0."""
    key = read_key_file(args.key_file)
    with open_ledger(args) as of:
        found = [
            _build_list_entry(of, entry, standing)
            for subject, standing in sorted(of.gpus.read_standings(of.now).items())
            if standing.judged != "good"
            and (entry := of.gpus.read_entry(subject)) is not None
            and not entry.is_node
        ]
    cluster = of.settings.cluster or os.uname().nodename
    print(shared_list.written(cluster, of.now.wall // SECOND, found, key))
    return 0


def _build_list_entry(of: Ledger, entry: LedgerEntry, standing: GpuStanding) -> shared_list.Listed:
    happened = dict.fromkeys(e.what for e in of.gpus.read_events(entry.subject, 20))
    return shared_list.Listed(
        uuid=entry.subject,
        judged=standing.judged,
        serial=entry.serial,
        score=round(standing.score, 3),
        why=entry.reason or ", ".join(happened),
        node=entry.node,
        seen=entry.seen.wall // SECOND,
    )


def import_lemons(args: argparse.Namespace) -> int:
    """Mark the listed lemons. Returns 0. Suspects keep their own score, and marks of people here
    stay."""
    found = shared_list.read(_read_input_bytes(args.file), read_key_file(args.key_file))
    marked, left = [], []
    with open_ledger(args, writing=True) as of:
        for listed in found.gpus:
            if not _is_new_lemon(of, listed):
                left.append(listed.uuid)
                continue
            why = visible(f"{listed.why or 'lemon'} (list of {found.cluster})")
            by = visible(f"import from {found.cluster}")
            of.gpus.set_mark(listed.uuid, "lemon", why, by, of.now)
            marked.append(listed.uuid)
    if args.json:
        print(json.dumps({"marked": marked, "left": left}))
    else:
        print(f"{len(marked)} GPUs marked as lemons, {len(left)} left as they are")
    return 0


def _is_new_lemon(of: Ledger, listed: shared_list.Listed) -> bool:
    """Whether the entry of the list is a lemon to be marked here. A list is about GPUs: node names
    in it are ignored."""
    entry = of.gpus.read_entry(listed.uuid)
    marked = entry is not None and bool(entry.mark)
    return (
        listed.judged == "lemon"
        and GPU_UUID_PATTERN.fullmatch(listed.uuid) is not None
        and not marked
    )


def read_key_file(path: str | None) -> bytes:
    """The key in the file; empty without a file. Raises UsageError for a key that is too short."""
    if path is None:
        return b""
    key = _read_input_bytes(path).strip()
    if len(key) < 16:
        raise UsageError(
            f"{path}: a key has at least 16 characters; make one: openssl rand -hex 32"
        )
    return key


def _read_input_bytes(path: str) -> bytes:
    try:
        if path == "-":
            return sys.stdin.buffer.read()
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
