"""Finds facts of verdict.RULE in the answers of NCCL's flight recorders and RAS. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sentinel.stacks.parse.model import StacksDump
from sentinel.stacks.parse.ras import OddProcess
from sentinel.stacks.parse.seats import find_seats
from sentinel.stacks.parse.standstill import Standstill
from sentinel.stacks.parse.standstill_words import describe_standstill as recorded
from sentinel.stacks.parse.two_looks import merge_facts
from sentinel.stacks.parse.verdict import WitnessFact


def recorder_facts(found: Standstill) -> tuple[WitnessFact, ...]:
    """The facts in the flight recorder's dumps."""
    return tuple(
        WitnessFact(
            sign="recorded",
            words=recorded(Standstill(culprits=(one,), ranks=found.ranks, circle=found.circle)),
            ranks=one.ranks,
            collective=one.collective,
            waiting=one.waiting,
            line=one.place,
        )
        for one in found.culprits
    )


def ras_facts(odd: Iterable[OddProcess], dump: StacksDump) -> tuple[WitnessFact, ...]:
    """The facts in RAS's answer. The rank is found by the pid, if only one process has it, because
    RAS counts ranks in each communicator and not in the job."""
    sitting = [s for s in find_seats(dump) if s.process]
    times = Counter(s.process.pid for s in sitting if s.process)
    by_pid = {s.process.pid: s for s in sitting if s.process and times[s.process.pid] == 1}
    found = []
    for one in odd:
        seat = by_pid.get(one.pid)
        rank = (seat.rank,) if seat and seat.rank is not None else ()
        node = (seat.node,) if seat else (one.host,)
        sign = "behind" if one.operation else "lost"
        found.append(WitnessFact(sign=sign, words=one.odd_words, ranks=rank, nodes=node))
    return merge_facts(found)
