"""Asks for nodes (`scontrol -o -a show node`), and reads the answer.

There is one line per node. The order of the fields is that of slurm_sprint_node_table()
(src/api/node_info.c), the same from 20.11 to 26.05. Everything before `Reason=` is Slurm's own; the
reason, and the comment after it, are free text of administrators and health checks."""

from __future__ import annotations

from collections.abc import Iterator

from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell
from sentinel.core.hostlist import expand_printed
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.long_lines import cut_line, decode_document
from sentinel.slurm.node_states import BASES
from sentinel.slurm.words import parse_epoch

NODES_QUESTION = ("scontrol", "-o", "-a", "show", "node")

# 20.11 prints one suffix, and replaces the base state by some words: node_state_string()
# in src/common/slurm_protocol_defs.c at slurm-20-11-9-1. MAINT, RESERVED and PERFCTRS stand
# for idle nodes; REBOOT may hide DOWN, so its base is not known.
_SUFFIXES = {
    "$": "MAINTENANCE",
    "^": "REBOOT_ISSUED",
    "@": "REBOOT_REQUESTED",
    "#": "POWERING_UP",
    "%": "POWERING_DOWN",
    "~": "POWERED_DOWN",
    "!": "POWER_DOWN",
    "*": "NOT_RESPONDING",
    "-": "PLANNED",
}
_STATE_WORDS = {
    "MAINT": ("IDLE", "MAINTENANCE"),
    "RESERVED": ("IDLE", "RESERVED"),
    "PERFCTRS": ("IDLE", "PERFCTRS"),
    "REBOOT": ("UNKNOWN", "REBOOT_REQUESTED"),
}
_STATE_FLAGS = {"POWER": "POWERED_DOWN"}

_NODE_NAME = lazy_pattern(r"NodeName=(\S+) ")
_STATE = lazy_pattern(r" State=(\S+) ")
_FIELD = lazy_pattern(r" (Gres|ActiveFeatures|CPUTot|Version|Partitions|BootTime|NodeAddr)=(\S*)")
_FREE = " (Reason|Comment|Extra|InstanceId|InstanceType|ReservationName|TLSCert\\w+|Topology|Parameters)="
_FREE_TEXT = lazy_pattern(_FREE)
_RAW = lazy_pattern(_FREE.replace("Reason|", ""))
NO_COMMENT = " Comment=(null)"
"""20.11 prints this as the last field of a node without a comment, so the next line does not
continue a comment."""

_STAMP = lazy_pattern(rf" \[([^\s\[\]]+)@(\d+|Unknown)\](?=\s*$|\s{{8}}|\s*{_FREE})")


def read_nodes(out: bytes) -> list[Node]:
    """All nodes of an answer. Raises CannotTell unless every line is whole and has a state."""
    try:
        return [node for line in _node_lines(decode_document(out)) for node in _read_node(line)]
    except ValueError as error:
        raise CannotTell(f"scontrol's answer about nodes is not understood: {error}") from None


def read_state(word: str) -> tuple[str, frozenset[str]]:
    """The base state and the flags, in the words of 21.08 and later. A base state that no version
    until 26.05 has becomes a flag, with UNKNOWN as the base."""
    first, *flags = word.split("+")
    base = first.rstrip("".join(_SUFFIXES))
    found = {_SUFFIXES[mark] for mark in first[len(base) :]}
    found |= {_STATE_FLAGS.get(flag, flag) for flag in flags if flag}
    if base not in BASES:
        base, flag = _STATE_WORDS.get(base, ("UNKNOWN", base))
        found.add(flag)
    return base, frozenset(found)


def _node_lines(answer: str) -> Iterator[str]:
    """One line per node. A comment may hold line ends, which Slurm prints as they are; a reason
    does not (strtok_r() in src/api/node_info.c). Raises ValueError for a line that a wrapper
    printed."""
    if not answer.endswith("\n"):
        raise ValueError("it is cut off" if answer else "it is empty")
    parts: list[str] = []
    may_go_on = True
    for line in answer[:-1].split("\n"):
        begins = line.startswith("NodeName=")
        if parts and begins:
            yield " ".join(parts)
            parts = []
        if parts and not (may_go_on and not parts[-1].endswith(NO_COMMENT)):
            raise ValueError(f"{line[:80]!r} is about no node")
        may_go_on = bool(_RAW.search(line)) or (bool(parts) and may_go_on)
        parts.append(line)
    yield " ".join(parts)


def _read_node(line: str) -> Iterator[Node]:
    name, state = _NODE_NAME.match(line), _STATE.search(line)
    if not name or not state:
        raise ValueError(f"no NodeName and State in {line[:80]!r}")
    base, flags = read_state(state[1])
    head, reason, user, time = _split_reason(line, state.end())
    fields = dict(_FIELD.findall(head))
    for one in expand_printed(name[1]):
        yield Node(
            name=one,
            state=base,
            flags=flags,
            reason=cut_line(reason),
            reason_user=user,
            reason_time=time,
            partitions=tuple(filter(None, fields.get("Partitions", "").split(","))),
            gres=fields.get("Gres", "").replace("(null)", ""),
            features=fields.get("ActiveFeatures", "").replace("(null)", ""),
            cpus=int(fields["CPUTot"]) if "CPUTot" in fields else 0,
            boot_time=parse_epoch(fields.get("BootTime", "").encode()),
            version=fields.get("Version", ""),
            address=fields.get("NodeAddr", ""),
            comment=cut_line(_split_free_text(line, "Comment", state.end())),
            extra=cut_line(_split_free_text(line, "Extra", state.end())),
        )


def _split_reason(line: str, start: int) -> tuple[str, str, str, int | None]:
    """The text before the free texts, the reason, its user, and its time (epoch seconds).

    A reason may hold ` Comment=` or ` [root@1]`; the last stamp is the one that Slurm itself adds.
    """
    free = _FREE_TEXT.search(line, start)
    if not free or free[1] != "Reason":
        return line[: free.start() if free else None], "", "", None
    head, told = line[: free.start()], line[free.end() :]
    stamps = list(_STAMP.finditer(told))
    if not stamps:
        return head, _before_free_text(told), "", None
    stamp = stamps[-1]
    more = _before_free_text(told[stamp.end() :])
    reason = f"{told[: stamp.start()]} {more}" if more else told[: stamp.start()]
    return head, reason, stamp[1], parse_epoch(stamp[2].encode())


def _split_free_text(line: str, field: str, start: int) -> str:
    """The last such field of the line. A reason may hold ` Comment=`, so an empty comment may be read
    as not empty, but never the other way round."""
    mark = f" {field}="
    found = line.rfind(mark, start)
    told = "" if found < 0 else _before_free_text(line[found + len(mark) :])
    return "" if told == "(null)" else told


def _before_free_text(told: str) -> str:
    end = _FREE_TEXT.search(told)
    return told[: end.start() if end else None].strip()
