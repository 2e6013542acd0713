"""Where every process of a job stands: nouns, reading, grouping, wording. Pure.

sentinel.stacks asks the nodes; what it got back is understood here.
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
