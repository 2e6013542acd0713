"""Where every process of a job stands: one round trip to all its nodes, and what came back.

The decisions are in sentinel.stacks.parse; stacks.sh runs on the nodes.
"""

from sentinel.slurm.job import NoJob, Target
from sentinel.stacks.gather import Asked, Looker

__all__ = ["Asked", "Looker", "NoJob", "Target"]
