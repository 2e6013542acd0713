"""Takes a closer look at a quiet job: its nodes two or three times, with GPUs and kernels, NCCL's
RAS, and the flight recorder.

It uses only the connection to nodes, once per node and look. It makes no Slurm step and no row in
accounting. It stops and writes nothing, and nobody is notified.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.node_answers import Remote
from sentinel.stacks import script
from sentinel.stacks.gather import read_answer
from sentinel.stacks.parse import ras
from sentinel.stacks.parse.devices import gpu_facts, kernel_facts
from sentinel.stacks.parse.model import MissedNode, NodeStacks, StacksDump
from sentinel.stacks.parse.other_witnesses import ras_facts, recorder_facts
from sentinel.stacks.parse.two_looks import is_partial_look, stack_facts
from sentinel.stacks.parse.verdict import WitnessFact
from sentinel.stacks.recordings import RecordingsOrder, prefixes_beside, read_recordings
from sentinel.stacks.script import ScriptOptions

PAUSE = 1 / 3
"""The share of the time between two looks. In a run of a minute, it is 12 s, in which a slow step
ends."""
LOOK = 1 / 4
"""The share of the time for one look at all nodes."""
SAMPLE = 16
"""How many nodes of a large job are examined first. In a hung job, nearly all nodes wait in the
same way."""
RECORDER = 1 / 12
"""The share of the time for the flight recorder's dumps."""


class CloserLook(Struct, frozen=True, kw_only=True):
    """The result of this many `looks`. `launched` has the number of operations by communicator,
    from RAS. `partial`: one look lacks a part that the other has."""

    facts: tuple[WitnessFact, ...] = ()
    launched: Mapping[str, int] = {}
    partial: bool = False
    looks: int = 2


def look_closer(
    remote: Remote,
    job: Job,
    nodes: Sequence[str],
    *,
    log: str,
    quiet: float,
    before: Mapping[str, int],
    limit: float,
    looks: int = 3,
    pause: float | None = None,
) -> CloserLook:
    """Take two looks at these nodes. If one of them lacks something, take a third, if `looks` and
    the time allow it.

    Dumps beside `log` count if they were written since the last advance, `quiet` seconds ago.
    `before` is an earlier `launched`. `limit` is the time for all of it in seconds. `pause` are the
    seconds between two looks.
    """
    began, since = time.monotonic(), time.time() - quiet
    pause = limit * PAUSE if pause is None else pause
    plain = ScriptOptions(job_id=job.job_id, user=job.user)
    first = _look_once(remote, job, nodes, plain, limit * LOOK)
    if not first.nodes:
        return CloserLook(partial=True)
    time.sleep(pause)
    wish = replace(plain, asker=nodes[0], evidence=True)
    second = _look_once(remote, job, nodes, wish, limit * LOOK)
    taken = [first, second]
    rest = limit * (1 - LOOK - RECORDER) - (time.monotonic() - began)
    if looks > len(taken) and is_partial_look(first, second) and rest >= pause / 2:
        time.sleep(min(pause, rest))
        taken.append(_look_once(remote, job, nodes, plain, limit * LOOK))
    pair = choose_whole_looks(taken)
    found = [*stack_facts(*pair), *_recorder_facts(log, job, since, limit * RECORDER)]
    found += [*gpu_facts(second), *kernel_facts(second, quiet + time.monotonic() - began)]
    launched = dict[str, int]()
    for text in (node.ras for node in second.nodes if node.ras):
        with suppress(CannotTell):
            told = ras.read_ras(text)
            launched |= told.launched
            found += ras_facts((*told.find_behind(before), *told.lost_processes), second)
    return CloserLook(
        facts=tuple(found), launched=launched, partial=is_partial_look(*pair), looks=len(taken)
    )


def choose_whole_looks(taken: Sequence[StacksDump]) -> tuple[StacksDump, StacksDump]:
    """Two looks where neither lacks a part that the other has, the latest first. If there are none,
    the last two."""
    pairs = [*combinations(taken, 2)][::-1]
    return next((pair for pair in pairs if not is_partial_look(*pair)), (taken[-2], taken[-1]))


def sample_nodes(nodes: Sequence[str]) -> list[str]:
    """Some of them, evenly spread, the first and the last among them."""
    if len(nodes) <= SAMPLE:
        return [*nodes]
    last = len(nodes) - 1
    return [nodes[round(n * last / (SAMPLE - 1))] for n in range(SAMPLE)]


def _look_once(
    remote: Remote, job: Job, nodes: Sequence[str], wish: ScriptOptions, limit: float
) -> StacksDump:
    mark = os.urandom(16).hex()
    text = os.fsencode(script.script_text(wish, mark, limit - 2))
    try:
        answers = remote.run(nodes, script.ARGV, limit=limit, stdin=text)
    except SentinelError as error:
        return StacksDump(job=job.id, missed=tuple(MissedNode(node, str(error)) for node in nodes))
    told = {node: read_answer(answers[node], mark, node, job.user) for node in nodes}
    return StacksDump(
        job=job.id,
        nodes=tuple(n for n in told.values() if isinstance(n, NodeStacks)),
        missed=tuple(MissedNode(n, w) for n, w in told.items() if isinstance(w, str)),
    )


def _recorder_facts(log: str, job: Job, since: float, limit: float) -> tuple[WitnessFact, ...]:
    places = prefixes_beside(log)
    if not places:
        return ()
    try:
        found = read_recordings(
            RecordingsOrder(places=places, user=job.user, since=since, limit=limit)
        )
    except CannotTell:
        return ()
    return recorder_facts(found.joint_standstill)
