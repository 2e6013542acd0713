"""The `idle` kind: GPUs that a job holds and does not use."""

from sentinel.checks.idle.check import IdleCheck

__all__ = ["IdleCheck"]
