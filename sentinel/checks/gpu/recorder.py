"""Reads files of the 15-second recorder: is every GPU of a job busy all the time?"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from sentinel import proc
from sentinel.checks.turns import take_turns
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.core.model import Finding, Status
from sentinel.core.text import visible
from sentinel.core.turns import interleave
from sentinel.core.values import Duration, Share
from sentinel.gpu import dmon
from sentinel.gpu.errors import Unreadable
from sentinel.user_files.files import UserFiles
from sentinel.user_files.session import shared_reader
from sentinel.user_files.whose import Whose

HEAD_BYTES, TAIL_BYTES = 4096, 2 * 2**20
"""Bytes that are read of a file: the names of its columns, and the last 20,000 lines or more."""
FILE_LIMIT_S = 5.0
"""How many seconds one access to a file may take."""
MOST = 512
"""How many files of a pattern one run reads at most."""


class Busy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a GPU that trains is at work: no more than `share` of its samples below these.

    The defaults are those of large runs on H100: 90 % utilisation, 350 W; the share leaves room
    for checkpoints.

    utilization: A sample below this percentage counts as idle.
    power: A sample below so many watts counts as idle.
    pcie_rx: A sample above so many MB/s is a data loader or an offload gone wrong.
    share: So many of the samples may be bad.
    last: How far back the recorder's samples are looked at.
    """

    utilization: float = 90
    power: float = 350
    pcie_rx: float = 20_000
    share: Share = Share(5)
    last: Duration = Duration(1800)


def look(patterns: Sequence[str], busy: Busy, limit: float) -> list[Finding]:
    """A finding for each file that was written lately; the file's name is the subject."""
    with shared_reader():
        return _look_at_files(patterns, busy, limit)


def _look_at_files(patterns: Sequence[str], busy: Busy, limit: float) -> list[Finding]:
    found, deadline = [], time.monotonic() + limit
    files = UserFiles(min(FILE_LIMIT_S, limit), limit, {})
    for pattern in patterns:
        try:
            recorded = _files(pattern, busy.last, max(1.0, deadline - time.monotonic()))
        except CannotTell as error:  # of all GPUs, the others are known
            found.append(_unread(pattern, str(error)))
            continue
        if (surplus := len(recorded) - MOST) > 0:
            found.append(_left_out(pattern, surplus))
        turns = take_turns(recorded[:MOST], lambda one: one[1])
        found += [_judged(files, *one, busy) for one in turns]
    return found


def _unread(path: str, why: str) -> Finding:
    name = visible(os.path.basename(path))
    return Finding(subject=name, status=Status.UNKNOWN, summary=visible(why))


def _left_out(pattern: str, surplus: int) -> Finding:
    return Finding(
        subject=visible(os.path.basename(pattern)),
        status=Status.UNKNOWN,
        summary=f"{surplus} files beyond the {MOST} that are read are not looked at;"
        " write patterns that fit fewer",
    )


def _files(pattern: str, last: float, limit: float) -> list[tuple[str, str]]:
    """Files with the uids of their owners, who take turns, so that nobody's files push out those of
    others. They are found by find(1) in a child, since a directory may hang. Links are left out: anybody
    may lay one beside the files, and it could lead to nothing, or to a device."""
    directory, name = os.path.split(pattern)
    minutes = max(1, int(last // 60))
    argv = ["find", "-H", directory, "-maxdepth", "1", "-name", name, "-type", "f"]
    done = _run([*argv, "-mmin", f"-{minutes}", "-printf", "%U %p\\0"], limit)
    rows = (os.fsdecode(raw).partition(" ") for raw in done.split(b"\0") if raw)
    by_path = sorted((path, uid) for uid, _, path in rows)
    return interleave(by_path, lambda one: one[1])


def _judged(files: UserFiles, path: str, uid: str, busy: Busy) -> Finding:
    name = visible(os.path.basename(path))
    try:
        samples = dmon.parse(_read_ends(files, path, uid))
    except (Unreadable, CannotTell) as error:
        return _unread(path, str(error))
    count = max(1, int(busy.last // 15))
    per_gpu: dict[int, list[Mapping[str, float]]] = {}
    for sample in samples:
        per_gpu.setdefault(sample.gpu, []).append(sample.values)
    lazy = [
        text
        for gpu, all_of in sorted(per_gpu.items())
        for text in _lazy(gpu, all_of[-count:], busy)
    ]
    if not lazy:
        gpus = "1 GPU" if len(per_gpu) == 1 else f"{len(per_gpu)} GPUs"
        return Finding(subject=name, status=Status.OK, summary=f"{gpus} at work")
    return Finding(
        subject=name,
        status=Status.WARNING,
        summary=lazy[0] + (f" (and {len(lazy) - 1} more)" if len(lazy) > 1 else ""),
        details="\n".join(lazy),
    )


def _lazy(gpu: int, samples: Sequence[Mapping[str, float]], busy: Busy) -> Iterator[str]:
    """A text for each value that is too low, or too high, in more than the allowed share of a GPU's
    samples."""
    for column, limit, low, text in (
        ("sm", busy.utilization, True, "% utilisation"),
        ("pwr", busy.power, True, " W"),
        ("rxpci", busy.pcie_rx, False, " MB/s over PCIe"),
    ):
        known = [s[column] for s in samples if column in s]
        bad = [v for v in known if (v < limit if low else v >= limit)]
        if known and len(bad) * 100 > busy.share * len(known):
            word = "under" if low else "at or over"
            part = f"{100 * len(bad) / len(known):.0f}% of {len(known)} samples"
            yield f"GPU {gpu}: {word} {limit:g}{text} in {part}"


def _read_ends(files: UserFiles, path: str, uid: str) -> str:
    """The first two lines and the last ones, read with the rights of the file's owner. Raises
    CannotTell."""
    whose = Whose(user=uid, owned=True)
    _, begin = files.read_file(path, 0, HEAD_BYTES, whose)
    facts, end = files.read_file(path, -1, TAIL_BYTES, whose)
    head = b"".join(begin.splitlines(keepends=True)[:2])
    whole = end if facts.size <= TAIL_BYTES else end.partition(b"\n")[2]
    return decode_lines(head + whole)


def _run(argv: Sequence[str], limit: float) -> bytes:
    try:
        done = proc.run(argv, limit=limit)
    except (proc.CommandNotFound, proc.TimedOut, proc.TooMuchOutput) as error:
        raise CannotTell(f"{argv[0]}: {error}") from error
    if done.code and not done.out:  # one file that has just gone says nothing about the others
        said = visible(decode_lines(done.err).strip().partition("\n")[0])
        raise CannotTell(said or f"{argv[0]}: exit code {done.code}")
    return done.out
