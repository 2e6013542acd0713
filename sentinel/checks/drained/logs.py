"""What the logs of slurmctld and slurmd say about a node. Pure; both are evidence, never needed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sentinel.core.text import shortened, visible

MOST_LINES = 5
LONGEST_LINE = 240

# "[2026-11-21T04:25:00.123] update_node: node node-2 reason set to: bad dimm": update_node() in
# src/slurmctld/node_mgr.c.
_SET = re.compile(r"update_node: node (\S+) (reason|state) set to:? (.*)")
_BACK = re.compile(r"IDLE|RESUME|UNDRAIN|POWER", re.IGNORECASE)
_TELLING = re.compile(r"CANCELLED AT|NOT ENDING|UNKILLABLE|Kill task failed|reason set|state set")


def lines_about(log: str, node: str) -> str:
    """The last telling lines with that name as a word, ready to be shown."""
    word = re.compile(rf"(?<![\w.-]){re.escape(node)}(?![\w.-])")
    return _last(line for line in log.splitlines() if word.search(line) and _TELLING.search(line))


def telling(log: str) -> str:
    """The last telling lines of a log that is about one node anyway."""
    return _last(line for line in log.splitlines() if _TELLING.search(line))


def reasons(log: str, node: str) -> Sequence[str]:
    """The reasons that the node was given since it was last put to work, oldest first."""
    found: list[str] = []
    for match in _SET.finditer(log):
        if match[1] != node:
            continue
        if match[2] == "reason":
            found.append(match[3].strip())
        elif _BACK.search(match[3]):
            found.clear()
    return found


def _last(lines: Iterable[str]) -> str:
    chosen = list(lines)[-MOST_LINES:]
    return "\n".join(shortened(visible(line.strip()), LONGEST_LINE) for line in chosen)
