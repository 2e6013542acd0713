"""Changes Slurm by `scontrol update` and similar commands, and says what their answers prove."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from sentinel.core import node_answers
from sentinel.core.actions import Answer, Reply
from sentinel.core.clock import Instant
from sentinel.core.cluster import Controller, Job, Node, Reservation
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.core.node_answers import Remote
from sentinel.core.text import visible
from sentinel.slurm import logfile
from sentinel.slurm.complaints import (
    describe_failure,
    describe_stderr,
    failure_error,
    find_left_out,
    stderr_lines,
    word_complaint,
)
from sentinel.slurm.nodes import NODES_QUESTION, read_nodes
from sentinel.slurm.queue import read_queue, squeue_format
from sentinel.slurm.reservations import RESERVATIONS_QUESTION as RESERVATIONS
from sentinel.slurm.reservations import read_reservations
from sentinel.slurm.rights import refusal_reason
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.slurm.submission import submitted_job
from sentinel.slurm.words import decode_text, make_nonce

# Refusals by slurmctld (src/common/slurm_errno.c), and by scontrol before it sends anything. After
# any other failure (timeouts, lost connections, munge) slurmctld may have received the change.
_REFUSED = re.compile(
    r"Invalid (user id|node name|node state|feature|partition|job id|reservation)"
    r"|Access/permission denied|[Pp]ermission denied|not permitted"
    r"|submission failed: (Invalid|Job violates|Required|Requested|User's group)"
    r"|You must specify a reason|Requested operation is presently disabled"
    r"|Update of this parameter is not supported|Invalid input|scrontab jobs"
    r"|sudo: (a password is required|a terminal is required)|is not allowed to (execute|run)"
)
ON_NODE = 60.0
"""Seconds that one command on a node may take at most; the way to nodes may allow less."""

RECORDED = 3.0
"""Seconds to wait for slurmdbd: by then it should know an event that has just happened."""
EVENTS = ("sacctmgr", "-n", "-P", "show", "event", "start=now-1hour", "format=User,Reason")

_UNKNOWN_NODE = re.compile(r"Node \S+ not found|Invalid node name")


class SlurmHands:
    """core.ports.Hands by Slurm's commands. `prefix`: how changes are run, e.g. [sudo, -n];
    `remote`: the way to nodes, for actions that do something there; `log`: slurmctld's log on this
    host, where it is not at the place that slurm.conf names."""

    def __init__(
        self,
        snapshot: SlurmSnapshot,
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
        """Ask Slurm for one node. None if Slurm does not know it, or the text is not a single name.
        Raises CannotTell."""
        done = self._client.run_command(*NODES_QUESTION, name)
        if done.code:
            said = describe_stderr(done.err) or decode_text(done.out).strip()
            if _UNKNOWN_NODE.search(said):
                return None
            raise failure_error("scontrol", said, done.code)
        return next((n for n in read_nodes(done.out) if n.name == name), None)

    def change(self, argv: Sequence[str]) -> Reply:
        try:
            done = self._client.run_command(*self._prefix, *argv)
        except CannotTell as error:
            return Reply(Answer.UNSURE, str(error))
        said = describe_stderr(done.err)
        proven = argv[0] != "sbatch" or submitted_job(done.out)
        if not done.code and proven and not find_left_out(done.err):  # a plugin may speak too
            return Reply(Answer.ACCEPTED)
        # What stands before a command's last word is a remark, of a plugin or a shell. Behind a job's id
        # it is a wrapper's, which failed when the job had been submitted.
        last = next(reversed(stderr_lines(done.err)), "")
        if _REFUSED.search(last) and not submitted_job(done.out):
            return Reply(Answer.REFUSED, word_complaint(said))
        return Reply(
            Answer.UNSURE, word_complaint(said) or describe_failure(argv[0], "", done.code)
        )

    def jobs_on(self, node: str) -> Sequence[Job]:
        """Ask Slurm for the jobs of all users on a node. Raises CannotTell."""
        mark = make_nonce()
        asked = ("squeue", "-a", "-o", squeue_format(mark), "-w", node)
        return self._snapshot.mark_overdue(read_queue(self._client.ask_slurm(*asked), mark))

    def waiting(self) -> Sequence[Job]:
        if refused := refusal_reason(self._snapshot.rights(), None):
            raise CannotTell(refused)
        mark = make_nonce()
        asked = ("squeue", "-a", "-t", "PENDING", "-o", squeue_format(mark))
        return read_queue(self._client.ask_slurm(*asked), mark)

    def reservations(self) -> Sequence[Reservation]:
        return read_reservations(self._client.ask_slurm(*RESERVATIONS))

    def ask_node(self, node: str, argv: Sequence[str], stdin: bytes = b"") -> node_answers.Answer:
        if self._remote is None:
            return node_answers.NotAsked("there is no way to nodes here")
        return self._remote.run([node], argv, limit=ON_NODE, stdin=stdin)[node]

    def log_end(self) -> str:
        return logfile.log_position(self._log or self._snapshot.config().log)

    def log_since(self, end: str) -> str:
        return logfile.read_log_since(end)

    def author(self, node: str, reason: str) -> str:
        if not self._has_accounting():
            return ""
        deadline = time.monotonic() + RECORDED
        while not (found := self._recorded_author(node, reason)) and time.monotonic() < deadline:
            time.sleep(RECORDED / 10)
        return found

    def _has_accounting(self) -> bool:
        try:
            return self._snapshot.config().accounting
        except CannotTell:
            return False

    def _recorded_author(self, node: str, reason: str) -> str:
        """The user of the newest event with this reason, by accounting. Empty if there is none.
        slurmdbd learns of an event within a second."""
        try:
            out = self._client.run_command(*EVENTS, f"nodes={node}", limit=RECORDED).out
        except CannotTell:
            return ""
        rows = decode_lines(out).splitlines()
        users = [user for user, _, told in (row.partition("|") for row in rows) if told == reason]
        return visible(users[-1].partition("(")[0]) if users else ""
