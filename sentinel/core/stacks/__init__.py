"""Where every process of a job stands: nouns, reading, grouping, wording. Pure.

sentinel.stacks asks the nodes; what it got back is understood here.
"""

from sentinel.core.stacks.group import Group, grouped
from sentinel.core.stacks.nouns import Dump, Frame, Missed, NodeStacks, Process
from sentinel.core.stacks.words import headline, lines, reading

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
