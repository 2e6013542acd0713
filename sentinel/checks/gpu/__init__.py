"""The `gpu` kind: GPUs that are missing, failing, hot, or known lemons."""

from sentinel.checks.gpu.check import GpuCheck

__all__ = ["GpuCheck"]
