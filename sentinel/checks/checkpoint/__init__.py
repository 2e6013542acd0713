"""The `checkpoint` kind: is there a complete one, how old, how large, and what is at risk.

files.py looks (in children with a limit), judge.py decides, which is pure. Checks about the same
training may ask `newest` what would be lost if it died now.
"""

from sentinel.checks.checkpoint.check import Checkpoint
from sentinel.checks.checkpoint.files import Folder
from sentinel.checks.checkpoint.judge import Found, at_risk, newest
from sentinel.checks.checkpoint.settings import Rule, Where

__all__ = ["Checkpoint", "Folder", "Found", "Rule", "Where", "at_risk", "newest"]
