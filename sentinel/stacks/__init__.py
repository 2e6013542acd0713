"""Where every process of a job stands: one round trip to all its nodes, and what came back.

The decisions are in sentinel.stacks.parse; stacks.sh runs on the nodes.
"""

from sentinel.slurm.job import NoSuchJob, StackTarget
from sentinel.stacks.gather import StacksLooker, StacksRequest

__all__ = ["NoSuchJob", "StackTarget", "StacksLooker", "StacksRequest"]
