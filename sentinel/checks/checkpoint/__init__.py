"""The `checkpoint` kind: is there a complete checkpoint, how old and large is it, and how much work
is at risk?

files.py reads the folder (in child processes with a limit). judge.py decides, and is pure. Checks
about the same training have `CheckpointPlace` in their settings and report `work_at_risk`.
"""

from sentinel.checks.checkpoint.check import CheckpointCheck
from sentinel.checks.checkpoint.risk import describe_work_at_risk
from sentinel.core.checkpoints import CheckpointPlace, CheckpointRule

__all__ = ["CheckpointCheck", "CheckpointPlace", "CheckpointRule", "describe_work_at_risk"]
