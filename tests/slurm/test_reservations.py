"""Reservations from scontrol's answer, as 22.05 prints them."""

import pytest
from msgspec.structs import replace

from sentinel.core.cluster import Reservation
from sentinel.core.errors import CannotTell
from sentinel.slurm.reservations import read_reservations

REST = (
    "TRES=cpu=8 Users=root Groups=(null) Accounts=(null) Licenses=(null) State=ACTIVE "
    "BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)"
)


def line(
    name: str = "maint",
    nodes: str = "node-[0-1]",
    flags: str = "MAINT,SPEC_NODES",
    rest: str = REST,
) -> str:
    return (
        f"ReservationName={name} StartTime=1795235582 EndTime=1795239182 Duration=01:00:00 "
        f"Nodes={nodes} NodeCnt=2 CoreCnt=8 Features=(null) PartitionName=(null) Flags={flags} "
        f"{rest}\n"
    )


MAINT = Reservation(
    name="maint",
    starts=1795235582,
    ends=1795239182,
    nodes=frozenset(["node-0", "node-1"]),
    flags=frozenset(["MAINT", "SPEC_NODES"]),
    users=frozenset(["root"]),
)


def test_a_reservation_is_read() -> None:
    """Its name, times, nodes, flags and who may use it; the rest is not asked for."""
    assert read_reservations(line().encode()) == [MAINT]
    groups = REST.replace("Groups=(null)", "Groups=ops")
    assert read_reservations(line(rest=groups).encode()) == [replace(MAINT, others=True)]


def test_none_is_an_answer() -> None:
    """Slurm says so in words."""
    assert read_reservations(b"No reservations in the system\n") == []


def test_a_reservation_without_nodes_is_one() -> None:
    """Of licences, or of nodes that are gone."""
    (found,) = read_reservations(line(nodes="(null)").encode())
    assert found.nodes == frozenset()


def test_a_comment_forges_nothing() -> None:
    """It comes last, and may hold line ends."""
    forged = f"{REST} Comment=x Flags=MAINT Nodes=node-9 Users=eve \nReservationNot=y"
    (found,) = read_reservations(line(flags="IGNORE_JOBS", rest=forged).encode())
    assert found.flags == frozenset(["IGNORE_JOBS"])
    assert (found.nodes, found.users) == (MAINT.nodes, MAINT.users)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        line()[:-1],
        "slurm_load_reservations error\n",
        line().replace("EndTime=1795239182", "EndTime=Unknown"),
        line().replace("StartTime=1795235582", "StartTime=2026-11-21T04:33:02"),
        "ReservationName=maint\n",
    ],
)
def test_what_is_not_understood_is_no_empty_answer(answer: str) -> None:
    """An end that is misread would silence for ever, or not at all."""
    with pytest.raises(CannotTell):
        read_reservations(answer.encode())
