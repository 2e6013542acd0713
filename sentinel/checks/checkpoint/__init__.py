"""The `checkpoint` kind: is there a complete one, how old, how large, and what is at risk.

files.py looks (in children with a limit), judge.py decides, which is pure. Checks about the same
training take `Where` into their settings and tell `work_at_risk`.
"""

from sentinel.checks.checkpoint.check import Checkpoint
from sentinel.checks.checkpoint.risk import work_at_risk
from sentinel.core.checkpoints import Rule, Where

__all__ = ["Checkpoint", "Rule", "Where", "work_at_risk"]
