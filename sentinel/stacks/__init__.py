"""Where every process of a job stands: one round trip to all its nodes, and what came back.

The decisions are in sentinel.stacks.parse; stacks.sh runs on the nodes.
"""

from sentinel.stacks.gather import Asked, Looker
from sentinel.stacks.job import NoJob, Target

__all__ = ["Asked", "Looker", "NoJob", "Target"]
