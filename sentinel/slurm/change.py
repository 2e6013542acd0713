"""Changing Slurm: `scontrol update` and the like, and what their answers prove."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from sentinel.core import node_answers
from sentinel.core.actions import Answer, Reply
from sentinel.core.clock import Instant
from sentinel.core.cluster import Controller, Job, Node, Reservation
from sentinel.core.errors import CannotTell
from sentinel.core.node_answers import Remote
from sentinel.core.text import visible
from sentinel.slurm import logfile
from sentinel.slurm.complaints import complaint, failure, left_out, told, worded
from sentinel.slurm.nodes import QUESTION, read_nodes
from sentinel.slurm.queue import columns, read_list
from sentinel.slurm.reservations import QUESTION as RESERVATIONS
from sentinel.slurm.reservations import read_reservations
from sentinel.slurm.rights import refusal
from sentinel.slurm.snapshot import Snapshot
from sentinel.slurm.words import nonce, text

# slurmctld's own refusals (src/common/slurm_errno.c) and scontrol's, made before anything was
# sent. Whatever else went wrong (time-outs, lost connections, munge) may have reached it.
_REFUSED = re.compile(
    r"Invalid (user id|node name|node state|feature|partition|job id|reservation)"
    r"|Access/permission denied|[Pp]ermission denied|not permitted"
    r"|submission failed: (Invalid|Job violates|Required|Requested|User's group)"
    r"|You must specify a reason|Requested operation is presently disabled"
    r"|Update of this parameter is not supported|Invalid input"
    r"|sudo: (a password is required|a terminal is required)|is not allowed to (execute|run)"
)
ON_NODE = 60.0
"""Seconds for one command on a node, where the way to nodes does not allow less."""

RECORDED = 3.0
"""Seconds within which slurmdbd should have heard of an event that has just been."""
EVENTS = ("sacctmgr", "-n", "-P", "show", "event", "start=now-1hour", "format=User,Reason")

_UNKNOWN_NODE = re.compile(r"Node \S+ not found|Invalid node name")


class SlurmHands:
    """core.ports.Hands by Slurm's commands. `prefix`: how changes are run, e.g. [sudo, -n];
    `remote`: the way to nodes, for actions that do something there; `log`: slurmctld's log on this
    host, where it is not at the place that slurm.conf names."""

    def __init__(
        self,
        snapshot: Snapshot,
        prefix: Sequence[str] = (),
        remote: Remote | None = None,
        *,
        log: str | None = None,
    ) -> None:
        self._snapshot, self._client = snapshot, snapshot.client
        self._prefix, self._remote, self._log = tuple(prefix), remote, log

    def nodes(self, after: Instant | None = None) -> Sequence[Node]:
        return self._snapshot.nodes(after)

    def controller(self) -> Controller:
        return self._snapshot.controller()

    def node(self, name: str) -> Node | None:
        """Asked anew; a host list or another expression is no name."""
        done = self._client.run(*QUESTION, name)
        if done.code:
            said = complaint(done.err) or text(done.out).strip()
            if _UNKNOWN_NODE.search(said):
                return None
            raise failure("scontrol", said, done.code)
        return next((n for n in read_nodes(done.out) if n.name == name), None)

    def change(self, argv: Sequence[str]) -> Reply:
        try:
            done = self._client.run(*self._prefix, *argv)
        except CannotTell as error:
            return Reply(Answer.UNSURE, str(error))
        said = complaint(done.err)
        if _REFUSED.search(said):
            return Reply(Answer.REFUSED, worded(said))
        if not done.code and not left_out(done.err):
            return Reply(Answer.ACCEPTED)
        return Reply(Answer.UNSURE, worded(said) or told(argv[0], "", done.code))

    def jobs_on(self, node: str) -> Sequence[Job]:
        """Asked anew, past every limit on whose jobs are of interest."""
        mark = nonce()
        return read_list(self._client.ask("squeue", "-a", "-o", columns(mark), "-w", node), mark)

    def waiting(self) -> Sequence[Job]:
        if refused := refusal(self._snapshot.rights(), None):
            raise CannotTell(refused)
        mark = nonce()
        asked = ("squeue", "-a", "-t", "PENDING", "-o", columns(mark))
        return read_list(self._client.ask(*asked), mark)

    def reservations(self) -> Sequence[Reservation]:
        return read_reservations(self._client.ask(*RESERVATIONS))

    def ask_node(self, node: str, argv: Sequence[str], stdin: bytes = b"") -> node_answers.Answer:
        if self._remote is None:
            return node_answers.NotAsked("there is no way to nodes here")
        return self._remote.run([node], argv, limit=ON_NODE, stdin=stdin)[node]

    def log_end(self) -> str:
        return logfile.position(self._log or self._snapshot.config().log)

    def log_since(self, end: str) -> str:
        return logfile.since(end)

    def author(self, node: str, reason: str) -> str:
        if not self._accounting():
            return ""
        deadline = time.monotonic() + RECORDED
        while not (found := self._recorded(node, reason)) and time.monotonic() < deadline:
            time.sleep(RECORDED / 10)
        return found

    def _accounting(self) -> bool:
        try:
            return self._snapshot.config().accounting
        except CannotTell:
            return False

    def _recorded(self, node: str, reason: str) -> str:
        """The user of the newest event of that reason; slurmdbd hears of it within a second."""
        try:
            out = self._client.run(*EVENTS, f"nodes={node}", limit=RECORDED).out
        except CannotTell:
            return ""
        rows = out.decode("utf-8", "backslashreplace").splitlines()
        users = [user for user, _, told in (row.partition("|") for row in rows) if told == reason]
        return visible(users[-1].partition("(")[0]) if users else ""
