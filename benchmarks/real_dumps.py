"""Whom the flight recorder's dumps of real hangs accuse, against the ranks that were made to fail.

Run alone: python -m benchmarks.real_dumps DIR, where DIR is a clone of
https://github.com/NVIDIA/nvidia-resiliency-ext. A case is a folder with dumps and a
fault_injection.log (`Fault ranks: [12, 14]`).
"""

import json
import re
import sys
from pathlib import Path

from sentinel.core.text import format_ranges
from sentinel.stacks.recordings import RecordingsOrder, read_recordings

TRUTH = re.compile(r"Fault ranks: (\[[0-9, ]*\])")


def main() -> None:
    """Print a line a case, with the words where a rank was missed or wrongly named."""
    print("hang | fault in ranks | named | missed | wrong")
    counted = [case(log) for log in sorted(Path(sys.argv[1]).rglob("fault_injection.log"))]
    faults, missed, wrong = (sum(row) for row in zip(*counted, strict=True))
    print(f"{len(counted)} hangs: {faults - missed} of {faults} ranks named, {wrong} wrong")


def case(log: Path) -> tuple[int, int, int]:
    """Ranks with a fault, those of them that were missed, and others that were named."""
    truth = {int(rank) for found in TRUTH.findall(log.read_text()) for rank in json.loads(found)}
    found = read_recordings(RecordingsOrder(places=(f"{log.parent.resolve()}/",)))
    named = {rank for one in found.joint_standstill.culprits for rank in one.ranks}
    shown = [format_ranges(some) or "-" for some in (truth, named, truth - named, named - truth)]
    print(log.parent.name, *shown, sep=" | ")
    if truth != named:
        print(f"  {found.standstill_words}")
    return len(truth), len(truth - named), len(named - truth)


if __name__ == "__main__":
    main()
