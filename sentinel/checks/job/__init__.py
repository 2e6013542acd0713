"""The `job` kind: is a training running, will it go on, and if not, what happened to it.

check.py gathers (queue, users, files, ends) and judge.py decides, which is pure.
"""

from sentinel.checks.job.check import JobCheck

__all__ = ["JobCheck"]
