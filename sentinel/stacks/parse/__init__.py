"""Where every process of a job stands: nouns, reading, grouping, wording. Pure.

sentinel.stacks asks the nodes; what it got back is understood here.
"""

from sentinel.stacks.parse.group import Group, grouped
from sentinel.stacks.parse.model import Dump, Frame, Missed, NodeStacks, Process
from sentinel.stacks.parse.words import headline, lines, reading

__all__ = [
    "Dump",
    "Frame",
    "Group",
    "Missed",
    "NodeStacks",
    "Process",
    "grouped",
    "headline",
    "lines",
    "reading",
]
