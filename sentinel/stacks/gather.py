"""All nodes of a job asked at once, and again another way where the first one failed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.errors import CannotTell
from sentinel.core.settings import SlurmSettings
from sentinel.core.values import Duration
from sentinel.nodes.connect import connect
from sentinel.nodes.model import Answered, Partial, Unreached
from sentinel.nodes.settings import RemoteSettings
from sentinel.slurm.client import Client
from sentinel.slurm.job import NoJob, Target, alive, find, find_job
from sentinel.stacks import script, step
from sentinel.stacks.parse.model import Dump, Missed, NodeStacks
from sentinel.stacks.parse.read import packed, read_node, unfolded
from sentinel.stacks.script import Wish

FIRST = 0.55
"""Part of the time that the step gets; the second way has the rest."""
SLACK = 2.0
"""Seconds of a way's time for getting there and back."""
SHORTEST = 3.0
"""Seconds below which no further way is tried."""

Reported = Mapping[str, NodeStacks | str]


class Asked(Struct, frozen=True, kw_only=True):
    """One question. `limit`: seconds for all of it; `tool`: a path of py-spy on the nodes."""

    job: str
    limit: float = 20.0
    native: bool = False
    tool: str = ""


class Looker:
    """Looks at jobs of one cluster. `now`: seconds since 1970 for the dump's own time."""

    def __init__(
        self,
        client: Client,
        slurm: SlurmSettings,
        remote: RemoteSettings,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._slurm, self._remote, self._now = client, slurm, remote, now

    def look(self, asked: Asked) -> tuple[Target, Dump]:
        """The job and where its processes stand; what was not reached is in `missed`.

        Raises NoJob where nothing runs, CannotTell where Slurm does not answer.
        """
        began = time.monotonic()
        target = find(self._client, asked.job)
        deadline = began + asked.limit
        tool = asked.tool or self._remote.py_spy
        wish = Wish(job_id=target.job.job_id, native=asked.native, tool=tool)
        reported = self._by_step(target, wish, deadline)
        reported = {**reported, **self._second(target, wish, reported, deadline)}
        dump = Dump(
            job=target.job.id,
            name=target.job.name,
            user=target.job.user,
            at=int(self._now()),
            nodes=tuple(n for n in reported.values() if isinstance(n, NodeStacks)),
            missed=tuple(Missed(n, w) for n, w in reported.items() if isinstance(w, str)),
        )
        dump = replace(dump, seconds=round(time.monotonic() - began, 2))
        return target, replace(dump, ended=self._ended(target))

    def _by_step(self, target: Target, wish: Wish, deadline: float) -> dict[str, NodeStacks | str]:
        names = [n for n in target.nodes if n not in target.lost]
        reported: dict[str, NodeStacks | str] = dict.fromkeys(
            target.nodes, "Slurm does not reach it"
        )
        if not names:
            return reported
        seconds, mark = (deadline - time.monotonic()) * FIRST, os.urandom(16).hex()
        out, said = step.run(
            target.job,
            names,
            script.text(wish, mark, seconds - SLACK),
            seconds=seconds,
            prefix=self._slurm.command_prefix,
            options=self._remote.srun_options,
        )
        found = packed(out, mark)
        for name in names:
            told = _read(found[name], name, target.job.user) if name in found else None
            reported[name] = told or said or "srun ended without its answer"
        return reported

    def _second(
        self, target: Target, wish: Wish, reported: Reported, deadline: float
    ) -> dict[str, NodeStacks | str]:
        """Nodes that the step did not bring, by the configured way."""
        left = [name for name, told in reported.items() if isinstance(told, str)]
        seconds = deadline - time.monotonic()
        if not left or seconds < SHORTEST:
            return {}
        connecting = Duration(max(1.0, min(float(self._remote.connect_timeout), seconds / 2)))
        settings = replace(self._remote, timeout=Duration(seconds), connect_timeout=connecting)
        mark = os.urandom(16).hex()
        text = os.fsencode(script.text(wish, mark, seconds - SLACK))
        way = connect(settings, job=wish.job_id)
        answers = way.run(left, script.ARGV, limit=seconds, stdin=text)
        return {
            name: _answer(answers[name], mark, name, target.job.user, str(reported[name]))
            for name in left
        }

    def _ended(self, target: Target) -> str:
        try:
            job = find_job(self._client, target.job.id)
        except NoJob:
            return "Slurm has forgotten it"
        except CannotTell:
            return ""
        return "" if alive(job) and job.state != "COMPLETING" else job.state


def _answer(
    answer: Answered | Unreached, mark: str, node: str, user: str, before: str
) -> NodeStacks | str:
    if isinstance(answer, Answered | Partial):
        for data in packed(answer.out, mark).values():
            return _read(data, node, user)
    why = answer.why if not isinstance(answer, Answered) else f"exit code {answer.code}"
    return f"{why} ({before})"


def _read(data: bytes, node: str, user: str) -> NodeStacks | str:
    """Whoever may not see the user's processes must not take them for gone."""
    try:
        told = read_node(unfolded(data), node)
    except CannotTell as error:
        return str(error)
    if not told.processes and not told.sees(user):
        return f"{told.user} may not see processes of {user} there"
    return told
