"""Reads `dcgmi diag` of DCGM 2.x to 4.x, as JSON or as a table, and judges what it proves."""

from sentinel.gpu.dcgm.model import Document, Fault, Result
from sentinel.gpu.dcgm.read import parse
from sentinel.gpu.dcgm.verdict import Blame, Outcome, Ran, Verdict, judge

__all__ = ["Blame", "Document", "Fault", "Outcome", "Ran", "Result", "Verdict", "judge", "parse"]
