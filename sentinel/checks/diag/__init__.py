"""The `diag` kind: dcgmi diag over nodes in waves, followed, archived, and read right."""

from sentinel.checks.diag.check import DiagCheck

__all__ = ["DiagCheck"]
