"""`make bench`: every benchmark in turn, ratios measured in this very run."""

from importlib import import_module

for name in (
    "bench_start",
    "bench_slurm",
    "bench_remote",
    "bench_service",
    "bench_web",
    "bench_gpus",
    "bench_log_tail",
    "bench_du",
    "bench_forecast",
    "bench_zipapp",
):
    print(f"\n== {name} ==", flush=True)
    import_module(f"benchmarks.{name}").main()
