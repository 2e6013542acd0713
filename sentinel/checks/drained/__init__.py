"""The `drained` kind: nodes that Slurm took out of service, proven clean or told why not."""

from sentinel.checks.drained.check import DrainedCheck

__all__ = ["DrainedCheck"]
