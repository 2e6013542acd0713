"""Finds out where every process of a job stands, by one round trip to all its nodes.

The decisions are in sentinel.stacks.parse. stacks.sh runs on the nodes.
"""

from sentinel.slurm.job import NoSuchJob, StackTarget
from sentinel.stacks.gather import StacksLooker, StacksRequest

__all__ = ["NoSuchJob", "StackTarget", "StacksLooker", "StacksRequest"]
