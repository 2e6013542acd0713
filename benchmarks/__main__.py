"""`make bench`: one benchmark after the other, ratios measured in this very run.

Not bench_log_replay: it keeps all cores busy for ten minutes.
"""

from importlib import import_module

for name in (
    "bench_start",
    "bench_slurm",
    "bench_remote",
    "bench_service",
    "bench_web",
    "bench_incidents",
    "bench_gpus",
    "bench_network",
    "bench_stacks",
    "bench_training",
    "bench_log_tail",
    "bench_du",
    "bench_forecast",
    "bench_zipapp",
):
    print(f"\n== {name} ==", flush=True)
    import_module(f"benchmarks.{name}").main()
