"""`sentinel gpus export|import`: lemons that clusters and teams share."""

from __future__ import annotations

import argparse
import json
import os
import sys

from sentinel.cli.gpus import BadGpus, opened
from sentinel.core import gpulist
from sentinel.core.clock import SECOND
from sentinel.core.text import visible


def export(args: argparse.Namespace) -> int:
    """0; the list is on stdout."""
    settings, clock, gpus = opened(args)
    now = clock.now()
    try:
        standings = gpus.standings(now)
        found = [
            gpulist.Listed(
                uuid=entry.subject,
                judged=standing.judged,
                serial=entry.serial,
                score=round(standing.score, 3),
                why=entry.reason
                or ", ".join(dict.fromkeys(e.what for e in gpus.events(entry.subject, 20))),
                node=entry.node,
                seen=entry.seen.wall // SECOND,
            )
            for subject, standing in sorted(standings.items())
            if standing.judged != "good"
            and (entry := gpus.entry(subject)) is not None
            and not entry.is_node
        ]
    finally:
        gpus.close()
    cluster = settings.cluster or os.uname().nodename
    print(gpulist.written(cluster, now.wall // SECOND, found, key_in(args.key_file)))
    return 0


def take_over(args: argparse.Namespace) -> int:
    """0. Suspects are left to their own score; what somebody here has said stays."""
    found = gpulist.read(_bytes(args.file), key_in(args.key_file))
    _, clock, gpus = opened(args, writing=True)
    new, kept = [], []
    try:
        for listed in found.gpus:
            entry = gpus.entry(listed.uuid)
            if listed.judged != "lemon" or (entry is not None and entry.mark):
                kept.append(listed.uuid)
                continue
            why = visible(f"{listed.why or 'lemon'} (list of {found.cluster})")
            gpus.mark(
                listed.uuid, "lemon", why, visible(f"import from {found.cluster}"), clock.now()
            )
            new.append(listed.uuid)
    finally:
        gpus.close()
    if args.json:
        print(json.dumps({"marked": new, "left": kept}))
    else:
        print(f"{len(new)} GPUs marked as lemons, {len(kept)} left as they are")
    return 0


def key_in(path: str | None) -> bytes:
    """A key file without a key would sign with nothing."""
    if path is None:
        return b""
    key = _bytes(path).strip()
    if len(key) < 16:
        raise BadGpus(f"{path}: a key has at least 16 characters; make one: openssl rand -hex 32")
    return key


def _bytes(path: str) -> bytes:
    try:
        if path == "-":
            return sys.stdin.buffer.read()
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise BadGpus(f"{path}: {error.strerror}") from error
