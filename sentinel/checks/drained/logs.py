"""What the logs of slurmctld and slurmd say about nodes. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.text import shortened, visible
from sentinel.slurm.slurmctld_log import EPILOG, EVENT, UNTOLD, expanded

MOST_LINES = 5
LONGEST_LINE = 240

# "state set to IDLE" says nothing here: a cancelled reboot logs it too, and leaves the node drained.
_TELLING = re.compile(r"CANCELLED AT|NOT ENDING|UNKILLABLE|Kill task failed|reason set|state set")


class History(Struct, frozen=True):
    """The reasons a node was given, oldest first, since the log saw it given to a job.

    `whole`: it did see that, and no drained node is: all reasons of its absence are here.
    `trouble`: why the log, which somebody named, was not read.
    """

    reasons: tuple[str, ...] = ()
    whole: bool = False
    trouble: str = ""


def histories(log: str, nodes: Collection[str], trouble: str = "") -> Mapping[str, History]:
    """Of these nodes, by what slurmctld's log holds."""
    found, wanted = dict.fromkeys(nodes, History(trouble=trouble)), frozenset(nodes)
    meant: dict[str, frozenset[str]] = {}
    for event in EVENT.finditer(log):
        if at_work := event["allocated"] or event["started"]:
            if at_work not in meant:
                meant[at_work] = wanted & expanded(at_work)
            found.update(dict.fromkeys(meant[at_work], History(whole=True)))
        elif (node := event["given"] or event["drained"] or event["failed"]) in found:
            reason = EPILOG if event["failed"] else (event["reason"] or UNTOLD).strip()
            found[node] = replace(found[node], reasons=(*found[node].reasons, reason))
    return found


def telling(log: str) -> Sequence[str]:
    """The lines of a log that may be of interest."""
    return [line for line in log.splitlines() if _TELLING.search(line)]


def about(lines: Iterable[str], node: str) -> Sequence[str]:
    """Those that have the name as a word."""
    word = re.compile(rf"(?<![\w.-]){re.escape(node)}(?![\w.-])")
    return [line for line in lines if word.search(line)]


def shown(lines: Sequence[str]) -> str:
    """The last of them, ready to be shown."""
    last = lines[-MOST_LINES:]
    return "\n".join(shortened(visible(line.strip()), LONGEST_LINE) for line in last)
