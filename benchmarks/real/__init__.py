"""Sentinel's judgement of training logs, replayed over real ones; see docs/benchmarks.md."""
