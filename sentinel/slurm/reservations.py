"""Asks for reservations (`scontrol -o show reservation`), and reads the answer.

The order of the fields is that of slurm_sprint_reservation_info() (src/api/reservation_info.c): the
name comes first and a comment, free text of administrators, last. What may use it beside `Users` (groups,
accounts, since 25.05 QOS and partitions) stands between them, in an order that differs from release to
release, each `(null)` if it is not set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sentinel.core.cluster import Reservation
from sentinel.core.errors import CannotTell
from sentinel.core.hostlist import expand_printed
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.long_lines import decode_document
from sentinel.slurm.words import parse_epoch

RESERVATIONS_QUESTION = ("scontrol", "-o", "show", "reservation")

_NONE = "No reservations in the system"
_LINE_PATTERN = lazy_pattern(r"ReservationName=(.*?) StartTime=(\S+) EndTime=(\S+)( .*)")
_FIELD = lazy_pattern(r" (\w+)=(\S*)")
_OF_SLURM = ("Duration", "NodeCnt", "CoreCnt", "TRES", "State")  # they follow from the others
_NO_VALUES = frozenset({"(null)", "n/a", ""})

MADE_WITHIN_S = 3600
"""Seconds after which a reservation that begins at once is not made any more: one that begins later was
moved. Parameters from before 0.1.0 do not say when it was asked for."""

BY_SLURM = frozenset({"SPEC_NODES", "ALL_NODES"})
"""Flags that Slurm sets by itself if a reservation names nodes (scontrol(1))."""


def read_reservations(out: bytes) -> list[Reservation]:
    """All reservations of an answer, present and future ones. Raises CannotTell if one is not
    understood."""
    answer = decode_document(out)
    if answer.strip() == _NONE:
        return []
    try:
        return [_read_reservation(line) for line in _reservation_lines(answer)]
    except ValueError as error:
        raise CannotTell(f"scontrol's answer about reservations: {error}") from None


def is_as_asked(found: Reservation, params: Mapping[str, str]) -> bool:
    """Whether the reservation is still as an action `probation` with these parameters made it. If
    its times, users, node, flags or comment differ, somebody has changed it, and it is left to them."""
    return (
        found.name == params.get("name")
        and found.ends - found.starts == 60 * int(params["minutes"])
        and found.starts - int(params.get("asked", found.starts)) <= MADE_WITHIN_S
        and found.nodes == {params["node"]}
        and found.users == set(params["users"].split(","))
        and not found.others
        and found.flags <= BY_SLURM
    )


def _reservation_lines(answer: str) -> Iterator[str]:
    """One line for each reservation. Lines of a comment that holds line ends are left out. Raises
    ValueError."""
    if not answer.endswith("\n"):
        raise ValueError("it is cut off" if answer else "it is empty")
    lines = [line for line in answer.split("\n") if line.startswith("ReservationName=")]
    if not lines:
        raise ValueError(f"it names none: {answer[:80]!r}")
    yield from lines


def _read_reservation(line: str) -> Reservation:
    found = _LINE_PATTERN.match(line)
    fields, _, comment = found[4].partition(" Comment=") if found else ("", "", "")
    told = {**dict(_FIELD.findall(fields)), "Comment": comment}
    if not (found and "Nodes" in told and "Flags" in told):
        raise ValueError(f"fields are missing: {line[:80]!r}")
    begin, end = parse_epoch(found[2].encode()), parse_epoch(found[3].encode())
    if begin is None or end is None:
        raise ValueError(f"a time is missing: {line[:80]!r}")
    nodes, flags, users = (told.pop(name, "") for name in ("Nodes", "Flags", "Users"))
    others = (value for name, value in told.items() if name not in _OF_SLURM)
    return Reservation(
        name=found[1],
        starts=begin,
        ends=end,
        nodes=frozenset(() if nodes in _NO_VALUES else expand_printed(nodes)),
        flags=frozenset(filter(None, flags.split(","))),
        users=frozenset(() if users in _NO_VALUES else users.split(",")),
        others=not _NO_VALUES.issuperset(others),
    )
