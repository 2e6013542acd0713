"""The `checkpoint` kind: is there a complete one, how old, how large, and what is at risk.

files.py looks (in children with a limit), judge.py decides, which is pure. Checks about the same
training take `CheckpointPlace` into their settings and tell `work_at_risk`.
"""

from sentinel.checks.checkpoint.check import CheckpointCheck
from sentinel.checks.checkpoint.risk import describe_work_at_risk
from sentinel.core.checkpoints import CheckpointPlace, CheckpointRule

__all__ = ["CheckpointCheck", "CheckpointPlace", "CheckpointRule", "describe_work_at_risk"]
