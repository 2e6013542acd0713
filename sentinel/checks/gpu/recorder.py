"""Files of the 15-second recorder: is every GPU of a job at work all the time?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Status
from sentinel.core.text import visible
from sentinel.core.values import Duration, Share
from sentinel.gpu import dmon
from sentinel.gpu.errors import Unreadable

LINES = 20_000
MOST = 512
"""Files looked at in one run."""


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
    """A finding for each file that was written to lately; its name is the subject."""
    found = []
    for pattern in patterns:
        paths = _files(pattern, busy.last, limit)
        if (surplus := len(paths) - MOST) > 0:
            found.append(_left_out(pattern, surplus))
        for path in paths[:MOST]:
            found.append(_judged(path, busy, limit))
    return found


def _left_out(pattern: str, surplus: int) -> Finding:
    return Finding(
        subject=visible(os.path.basename(pattern)),
        status=Status.UNKNOWN,
        summary=f"{surplus} files beyond the {MOST} that are read are not looked at;"
        " write patterns that fit fewer",
    )


def _files(pattern: str, last: float, limit: float) -> list[str]:
    """By find(1), in a child: a directory may hang."""
    directory, name = os.path.split(pattern)
    minutes = max(1, int(last // 60))
    argv = ["find", "-L", directory, "-maxdepth", "1", "-name", name]
    done = _run([*argv, "-type", "f", "-mmin", f"-{minutes}", "-print0"], limit)
    names = [os.fsdecode(raw) for raw in done.split(b"\0") if raw]
    return sorted(names)


def _judged(path: str, busy: Busy, limit: float) -> Finding:
    name = visible(os.path.basename(path))
    try:
        head = _run(["head", "-n", "2", "--", path], limit).decode("utf-8", "replace")
        tail = _run(["tail", "-n", str(LINES), "--", path], limit).decode("utf-8", "replace")
        samples = dmon.parse(head + tail)
    except (Unreadable, CannotTell) as error:
        return Finding(subject=name, status=Status.UNKNOWN, summary=visible(str(error)))
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
        return Finding(subject=name, status=Status.OK, summary=f"{len(per_gpu)} GPUs at work")
    return Finding(
        subject=name,
        status=Status.WARNING,
        summary=lazy[0] + (f" (and {len(lazy) - 1} more)" if len(lazy) > 1 else ""),
        details="\n".join(lazy),
    )


def _lazy(gpu: int, samples: Sequence[Mapping[str, float]], busy: Busy) -> Iterator[str]:
    """What of a GPU is below, or over, for more than the share of its samples."""
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


def _run(argv: Sequence[str], limit: float) -> bytes:
    try:
        done = proc.run(argv, limit=limit)
    except (proc.CommandNotFound, proc.TimedOut, proc.TooMuchOutput) as error:
        raise CannotTell(f"{argv[0]}: {error}") from error
    if done.code:
        said = visible(done.err.decode("utf-8", "replace").strip().partition("\n")[0])
        raise CannotTell(said or f"{argv[0]}: exit code {done.code}")
    return done.out
