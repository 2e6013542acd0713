"""The `log` kind: does a log still grow, or the number in it still advance.

check.py gathers (jobs, their output, the file) and judge.py decides, which is pure.
"""

from sentinel.checks.log.check import Log

__all__ = ["Log"]
