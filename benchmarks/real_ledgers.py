"""What the GPUs of real trainings were held for: MLPerf's public logs through `report --from`'s reader.

`python -m benchmarks.real_ledgers DIR…`: each DIR was cloned by the reader, as by
`git clone --depth 1 https://github.com/mlcommons/training_results_v4.1`. Every `result_N.txt` is a
training of its own; the same file twice is one. A second reading by the marks alone, which shares no
code with the first, has to agree to the millisecond.
"""

import hashlib
import json
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timezone
from pathlib import Path
from typing import Any

from benchmarks.measure import machine
from sentinel.checks.log.past_runs import PastOptions, read_past_runs
from sentinel.report.run_account import RunAccount, account_run

FAR_US = 10**17
MIN_SHOWN = 5
"""A kind of training with fewer logs has no row of its own."""


def main() -> None:
    """A row for each kind of training."""
    places = [Path(word) for word in sys.argv[1:]]
    if not places:
        sys.exit(__doc__)
    began, kinds, left_out = (
        time.process_time(),
        defaultdict[str, list[RunAccount]](list),
        Counter[str](),
    )
    checked = differing = 0
    for path in list_results(places):
        ledger = read_past_runs(
            [str(path)], PastOptions(zone=timezone.utc, now=FAR_US, run="x", gpus=1)
        )
        told = account_run("x", ledger.rows, 0, FAR_US)
        if not told.held or not told.knows_useful:
            left_out["no marks" if not told.held else "not successful"] += 1
            continue
        if (marks := read_marks(path)) is not None:
            checked += 1
            if disagrees(told, marks):
                differing += 1
                print(f"differs: {path}: {marks}", file=sys.stderr)
        kinds[path.parent.name].append(told)
    print(machine())
    print_table(kinds)
    several = [one for found in kinds.values() for one in found]
    print(
        f"{len(several)} logs; left out: {dict(left_out)}; {checked} checked by hand's rule, {differing} differ"
    )
    print(f"{time.process_time() - began:.1f} s of processor time")


def list_results(places: Sequence[Path]) -> list[Path]:
    """Each log once. What power meters wrote repeats lines of the run's own log."""
    found = dict[bytes, Path]()
    for place in places:
        for path in sorted(place.rglob("result_*.txt")):
            if "power" not in path.parts[:-1]:
                found.setdefault(hashlib.sha256(path.read_bytes()).digest(), path)
    return [*found.values()]


def read_marks(path: Path) -> tuple[int, int, int] | None:
    """Milliseconds of start-up, training, and evaluation, if each mark but evaluations is there once a
    rank and the file holds one training. None of any other."""
    times = defaultdict[str, list[int]](list)
    for line in path.read_text(errors="replace").splitlines():
        mark = parse_mark(line)
        if mark:
            times[mark["key"]].append(int(mark["time_ms"]))
    if not (times["init_start"] and times["run_start"] and len(times["run_stop"]) == 1):
        return None
    start, stop = min(times["run_start"]), times["run_stop"][0]
    begins, ends = sorted(times["eval_start"]), sorted(times["eval_stop"])
    if len(begins) != len(ends) or any(a > b for a, b in zip(begins, ends, strict=True)):
        return None
    if any(b > c for b, c in zip(ends, begins[1:], strict=False)) or (ends and ends[-1] > stop):
        return None
    spent = sum(ends) - sum(begins)
    return start - min(times["init_start"]), stop - start - spent, spent


def parse_mark(line: str) -> dict[str, Any] | None:
    """The object of a line of MLLOG."""
    _, found, text = line.partition(":::MLLOG ")
    try:
        mark = json.JSONDecoder().raw_decode(text)[0] if found else None
    except ValueError:
        return None
    return mark if isinstance(mark, dict) and "key" in mark and "time_ms" in mark else None


def disagrees(told: RunAccount, marks: tuple[int, int, int]) -> bool:
    """Whether the ledger says anything else."""
    parts = [told.parts[name] for name in ("startup", "useful", "evaluation")]
    return any(abs(part - 1000 * mark) > 1000 for part, mark in zip(parts, marks, strict=True))


def print_table(kinds: dict[str, list[RunAccount]]) -> None:
    """Medians of shares, and the range of the useful one."""
    print("| training | logs | held | start-up | evaluation | useful | least and most useful |")
    print("|---|---|---|---|---|---|---|")
    for kind, several in sorted(kinds.items()):
        if len(several) >= MIN_SHOWN:
            print_row(kind, several)
    print_row("all", [one for several in kinds.values() for one in several])


def print_row(kind: str, several: Sequence[RunAccount]) -> None:
    """One row of the table."""
    hours = statistics.median(one.held for one in several) / 60e6
    shares = {
        name: sorted(100 * one.parts[name] / one.held for one in several)
        for name in ("startup", "evaluation", "useful")
    }
    middle = {name: statistics.median(found) for name, found in shares.items()}
    print(
        f"| {kind} | {len(several)} | {hours:.1f} min | {middle['startup']:.1f} % |"
        f" {middle['evaluation']:.1f} % | {middle['useful']:.1f} % |"
        f" {shares['useful'][0]:.1f} to {shares['useful'][-1]:.1f} % |"
    )


if __name__ == "__main__":
    main()
