"""`make bench`: one benchmark after the other, ratios measured in this very run.

    python -m benchmarks [NAME ...]        # such as `web slurm`; all of them without a name

Not bench_hostlists and bench_log_replay: each keeps all cores busy for ten minutes. Nor bench_soak,
which takes a quarter of an hour.
"""

import sys
from importlib import import_module

NAMES = (
    "start",
    "slurm",
    "remote",
    "service",
    "web",
    "incidents",
    "report",
    "gpus",
    "network",
    "stacks",
    "training",
    "log_tail",
    "redos",
    "user_logs",
    "wishes",
    "du",
    "forecast",
    "zipapp",
    "tick",
    "growth",
)

chosen = [name.removeprefix("bench_") for name in sys.argv[1:]]
if unknown := [name for name in chosen if name not in NAMES]:
    sys.exit(f"no benchmark {', '.join(unknown)}; there are: {' '.join(NAMES)}")
del sys.argv[1:]  # each has options of its own
for name in chosen or NAMES:
    print(f"\n== bench_{name} ==", flush=True)
    import_module(f"benchmarks.bench_{name}").main()
