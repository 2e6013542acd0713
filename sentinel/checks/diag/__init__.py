"""The `diag` kind: runs dcgmi diag over nodes in waves, archives the outputs, and judges them."""

from sentinel.checks.diag.check import DiagCheck

__all__ = ["DiagCheck"]
