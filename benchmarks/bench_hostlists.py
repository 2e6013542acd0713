"""Host lists against Slurm itself: what `scontrol show hostnames` of this machine makes of random
lists, name by name in its order, and of what sentinel folds them to. Not in `make bench`: minutes.

    python -m benchmarks.bench_hostlists [LISTS] [SEED]
"""

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import row
from sentinel.core.hostlist import expand_hostlist, fold_hostlist


def main() -> None:
    """Ends with 1 where one list differs."""
    lists = int(sys.argv[1]) if sys.argv[1:] else 100_000
    seed = int(sys.argv[2]) if sys.argv[2:] else 1
    if not shutil.which("scontrol"):
        print("scontrol is not installed: nothing to compare with")
        return
    from tests.lab.hostlists import Scontrol, drawn

    rng, bad, names, own = random.Random(seed), [], 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        slurm = Scontrol(Path(folder))
        for _ in range(lists):
            text = drawn(rng)
            theirs, began = slurm.names(text), time.perf_counter()
            ours = list(expand_hostlist(text))
            folded = fold_hostlist(ours)
            own += time.perf_counter() - began
            names += len(ours)
            if ours != theirs or sorted(slurm.names(folded) or ()) != sorted(ours):
                bad.append((text, folded))
    row("lists compared", f"{lists:,}", f"{names:,} names")
    row("differ", f"{len(bad):,}", str(bad[:3]))
    row("expand and fold", f"{own / lists * 1e6:.0f} µs a list")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
