"""`scontrol -o show reservation`: what is asked, and reservations from its answer.

The order of the fields is that of slurm_sprint_reservation_info() (src/api/reservation_info.c):
the name comes first and a comment, free text of administrators, last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel.core.errors import CannotTell
from sentinel.core.hostlist import printed
from sentinel.slurm.model import Reservation
from sentinel.slurm.words import epoch, text

QUESTION = ("scontrol", "-o", "show", "reservation")

_NONE = "No reservations in the system"
_LINE = re.compile(r"ReservationName=(.*?) StartTime=(\S+) EndTime=(\S+) ")
_NODES = re.compile(r" Nodes=(\S*) ")
_FLAGS = re.compile(r" Flags=(\S*)")


def read_reservations(out: bytes) -> list[Reservation]:
    """All reservations of an answer, running or to come; CannotTell where one is not understood."""
    answer = text(out)
    if answer.strip() == _NONE:
        return []
    try:
        return [_read(line) for line in _lines(answer)]
    except ValueError as error:
        raise CannotTell(f"scontrol's answer about reservations: {error}") from None


def _lines(answer: str) -> Iterator[str]:
    """A line for each; what a comment holds after a line end begins none."""
    if not answer.endswith("\n"):
        raise ValueError("it is cut off" if answer else "it is empty")
    lines = [line for line in answer.split("\n") if line.startswith("ReservationName=")]
    if not lines:
        raise ValueError(f"it names none: {answer[:80]!r}")
    yield from lines


def _read(line: str) -> Reservation:
    found, nodes, flags = _LINE.match(line), _NODES.search(line), _FLAGS.search(line)
    if not (found and nodes and flags):
        raise ValueError(f"fields are missing: {line[:80]!r}")
    begin, end = epoch(found[2].encode()), epoch(found[3].encode())
    if begin is None or end is None:
        raise ValueError(f"a time is missing: {line[:80]!r}")
    return Reservation(
        name=found[1],
        starts=begin,
        ends=end,
        nodes=frozenset(() if nodes[1] == "(null)" else printed(nodes[1])),
        flags=frozenset(flags[1].split(",")),
    )
