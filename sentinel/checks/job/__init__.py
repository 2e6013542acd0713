"""The `job` kind: does a training run, will it go on, and if not, what happened to it?

check.py gathers the facts (queue, users, files, ends). judge.py decides, and is pure.
"""

from sentinel.checks.job.check import JobCheck

__all__ = ["JobCheck"]
