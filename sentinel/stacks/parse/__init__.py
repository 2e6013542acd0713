"""Parses, groups and words the stacks of all processes of a job. Pure.

sentinel.stacks asks the nodes. This package interprets the answers.
"""

from sentinel.stacks.parse.group import RankGroup, group_ranks
from sentinel.stacks.parse.model import JobProcess, MissedNode, NodeStacks, StackFrame, StacksDump
from sentinel.stacks.parse.words import dump_headline, dump_lines, interpret_dump

__all__ = [
    "JobProcess",
    "MissedNode",
    "NodeStacks",
    "RankGroup",
    "StackFrame",
    "StacksDump",
    "dump_headline",
    "dump_lines",
    "group_ranks",
    "interpret_dump",
]
