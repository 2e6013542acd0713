"""Slurm as all checks of a pass see it: asked once, and ever less often while it is ill."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from sentinel.core.clock import Instant
from sentinel.core.cluster import (
    Controller,
    Job,
    JobEnd,
    JobPast,
    JobRun,
    Node,
    Reservation,
    Submission,
    Timeouts,
)
from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.core.ports import Clock
from sentinel.core.values import duration_text
from sentinel.slurm import (
    control,
    ends,
    nodes,
    partitions,
    queue,
    reservations,
    sizes,
    submission,
    topology,
)
from sentinel.slurm.answer import CachedAnswer
from sentinel.slurm.client import AskTimedOut, SlurmClient
from sentinel.slurm.complaints import (
    MISFIT,
    complaint_meaning,
    describe_failure,
    describe_stderr,
    failure_error,
    word_complaint,
)
from sentinel.slurm.endings import SLOW_ANSWER_S, WORTH_A_LOOK, JobEndings, merge_runs
from sentinel.slurm.job import job_rows
from sentinel.slurm.rights import QueueRights, ask_user, find_rights, refusal_reason
from sentinel.slurm.words import find_uid, make_nonce

SETTLED_S = 3600.0  # seconds for which configuration and rights are believed
PLANNED = 30.0
FIRST_SLUIDS = (25, 11)  # the first squeue that prints them (src/squeue/opts.c)
MUNGE_LIMIT = 3.0  # a munged that is well answers in milliseconds
WHY_DOWN = 2.0
"""Seconds for why ping says DOWN: a refusal comes at once, and what is dead is tried for MessageTimeout."""


Row = TypeVar("Row", Job, JobRun)


def _asked_name(printed: str, asked: Collection[str]) -> str:
    """The name under which a user was asked for whom squeue prints otherwise: the one with the same
    uid; where nobody knows that and one user alone was asked for, that one. Else as printed."""
    if printed in asked or not printed:
        return printed
    uid = find_uid(printed)
    same = [name for name in asked if uid is not None and find_uid(name) == uid]
    return same[0] if same else (next(iter(asked)) if len(asked) == 1 else printed)


class SlurmSnapshot:
    """The port `core.ports.Slurm`. `users` None: everybody; none at all: no job is of interest.

    `max_age`: seconds for which jobs and nodes are kept. `racks`: host lists in place of Slurm's
    topology. `readyz`: http or https, by which slurmctld itself is asked where it does not answer
    scontrol. Its methods may be called from any thread; the client's counters say what Slurm was
    asked.
    """

    def __init__(
        self,
        client: SlurmClient,
        clock: Clock,
        *,
        users: Collection[str] | None,
        max_age: float,
        racks: Mapping[str, str] | None = None,
        readyz: str = "",
    ) -> None:
        self.client, self._racks, self._readyz = client, racks or {}, readyz
        self._users = users
        wait = 4 * client.limit  # the first list of jobs needs up to four commands
        self._me = CachedAnswer(lambda: ask_user(client), clock, max_age=SETTLED_S, patience=wait)
        self._config = CachedAnswer(self._ask_config, clock, max_age=SETTLED_S, patience=wait)
        self._rights = CachedAnswer(self._ask_rights, clock, max_age=SETTLED_S, patience=wait)
        self._jobs = CachedAnswer(self._ask_jobs, clock, max_age=max_age, patience=wait)
        self._gpus = CachedAnswer(self._ask_gpus, clock, max_age=max_age, patience=wait)
        self._sluids = CachedAnswer(self._ask_sluids, clock, max_age=max_age, patience=wait)
        self._nodes = CachedAnswer(self._ask_nodes, clock, max_age=max_age, patience=wait)
        self._timeouts = CachedAnswer(self._ask_timeouts, clock, max_age=SETTLED_S, patience=wait)
        self._partitions = CachedAnswer(self._ask_partitions, clock, max_age=max_age, patience=wait)
        self._topology = CachedAnswer(self._ask_topology, clock, max_age=SETTLED_S, patience=wait)
        self._planned = CachedAnswer(self._ask_planned, clock, max_age=PLANNED, patience=wait)
        self._again = CachedAnswer(self._ask_again, clock, max_age=max_age, patience=wait)
        self._memory = CachedAnswer(self._ask_config, clock, max_age=max_age, patience=wait)
        self._endings = JobEndings(client, clock, self._config, settled=SETTLED_S)

    def jobs(self) -> Sequence[Job]:
        """Pending, running, suspended and completing jobs of the users asked for."""
        if self._users is not None and not self._users:
            return ()
        return self._jobs.get_answer()

    def gpus(self) -> Mapping[str, int]:
        """GPUs by job id: what Slurm gave to it, or what it asks for; a question of its own."""
        if self._users is not None and not self._users:
            return {}
        return self._gpus.get_answer()

    def sluids(self) -> Mapping[str, str]:
        """Job ids by SLUID; none where Slurm is older than 25.11, which is not asked."""
        if control.parse_release(self.config().version) < FIRST_SLUIDS:
            return {}
        return self._sluids.get_answer()

    def nodes(self, after: Instant | None = None) -> Sequence[Node]:
        """Every node Slurm knows, not asked before `after`; for seconds after a start of slurmctld
        they are UNKNOWN."""
        return self._nodes.get_answer(after)

    def nodes_asked(self) -> Instant | None:
        """When the nodes of the last answer were asked for."""
        return self._nodes.asked_at

    def last(self) -> tuple[Sequence[Node] | None, Sequence[Job] | None]:
        """Nodes and jobs as they were told last, however long ago; nothing is asked."""
        return self._nodes.last_answer, self._jobs.last_answer

    def reservations(self) -> Sequence[Reservation]:
        """All reservations, those to come too, at most half a minute old."""
        return self._planned.get_answer()

    def job_end(self, job_id: str) -> JobEnd | None:
        """How a job ended; None when nothing remembers it. One still there has a live state."""
        return self._endings.find_end(job_id)

    def past(self, job_ids: Collection[str], names: Collection[str], since: float) -> JobPast:
        """A second look, the same for all that ask in a pass; CannotTell too while slurmctld is
        slow. Where it says nothing of an id or a name, accounting is asked."""
        self.jobs()
        if self._jobs.took > SLOW_ANSWER_S * self.client.limit:
            took = duration_text(self._jobs.took)
            raise CannotTell(f"squeue took {took}: slurmctld is not asked a second time")
        runs = self._again.get_answer(after=self._jobs.asked_at)
        of = {run.job_id for run in runs if run.state not in WORTH_A_LOOK}
        unknown = set(job_ids) - {run.job_id for run in runs}
        nameless = set(names) - {run.name for run in runs}
        config = self._memory.get_answer(after=self._jobs.asked_at) if unknown else None
        past = JobPast(
            runs=runs,
            booted=config.booted if config else None,
            next_id=config.next_job_id if config else None,
            keeps=config.min_job_age if config else 0,
        )
        try:
            booked = self._endings.accounted_runs(
                set(job_ids) - of, nameless, since, self._user_options
            )
        except CannotTell as error:
            return replace(past, unasked=str(error))
        books = self._config.get_answer().accounting
        return replace(past, runs=merge_runs(runs, booked), accounting=books)

    def submission(self, job_id: str) -> Submission | None:
        """How a job was submitted, asked anew; None when slurmctld does not remember it."""
        mark = make_nonce()
        which = ("squeue", "-h", "-a", "-t", "all", "-j", job_id)
        done = self.client.run_command(*which, "-O", submission.submission_columns(mark))
        if done.code and "Invalid job id" in describe_stderr(done.err):
            return None
        found = submission.read_submission(self.client.believe_output("squeue", done), mark, job_id)
        if found is None:
            return None
        config = self._config.get_answer()
        accounting = config.accounting
        kept = [j.exclude for j in job_rows(self.client, job_id) if job_id in (j.id, j.job_id)]
        return replace(
            found,
            exclude=kept[0] if kept else "",
            bare=submission.hides_arguments(control.parse_release(config.version)),
            accounting=accounting,
            line=self._endings.submit_line(job_id) if accounting else "",
        )

    def controller(self) -> Controller:
        """Whether each slurmctld answers now, and how fast; never cached."""
        try:
            seen = self._ask_ping()
        except AskTimedOut as silence:
            if itself := self._ask_http_status():
                raise AskTimedOut(f"{silence}; {itself}") from None
            raise
        if seen.primary_up or not (itself := self._ask_http_status()):
            return seen
        return replace(seen, trouble="; ".join(filter(None, [seen.trouble, itself])))

    def _ask_http_status(self) -> str:
        """What slurmctld says of itself by HTTP, which needs no munge and no client of its version;
        empty where it says nothing."""
        config = self._config.last_answer
        if not (self._readyz and config and config.listens):
            return ""
        if (
            control.parse_release(config.version) < control.FIRST_HTTP
        ):  # it would take it for a broken RPC
            return ""
        for path, words in control.HEALTH:
            question = control.http_probe_argv(self._readyz, config.listens, path)
            try:
                done = self.client.run_command(*question, limit=control.HTTP_LIMIT + 1)
            except CannotTell:
                return ""
            if done.code or done.out == b"204":
                return "" if done.code else words
        return ""

    def _ask_ping(self) -> Controller:
        try:
            done = self.client.run_command(*control.PING)
        except AskTimedOut as error:
            return self._munge_controller(error)
        trouble = describe_stderr(done.err)
        try:
            (primary, up), *backups = control.read_ping(done.out)
        except CannotTell:
            if trouble:
                raise failure_error("scontrol", trouble, done.code) from None
            raise
        answers = up or any(answers for _, answers in backups)
        config = self._config_if_answering(answers)
        if not answers and not trouble:
            trouble = self._why_down()
        return Controller(
            primary=primary,
            primary_up=up,
            backups=tuple(backups),
            latency=done.seconds,
            cluster=config.cluster if config else "",
            version=config.version if config else "",
            trouble=trouble,
        )

    def _why_down(self) -> str:
        """What a question meets where ping, which gives no reason, says DOWN; empty where that takes
        long, as of one that is dead. CannotAsk where slurmctld is there, and another version."""
        try:
            said = describe_stderr(self.client.run_command(*control.CONFIG, limit=WHY_DOWN).err)
        except CannotTell:
            return ""
        if complaint_meaning(said) == MISFIT:
            raise CannotAsk(MISFIT, describe_failure("scontrol", said, 1))
        return word_complaint(said) if said else ""

    def _munge_controller(self, silence: AskTimedOut) -> Controller:
        """The answer where munge is why there was none; else raises what it was given.

        A munged that hangs makes scontrol wait for minutes, and without a word.
        """
        config = self._config.last_answer
        try:
            self.client.run_command(*control.munge_probe_argv(config), limit=MUNGE_LIMIT)
        except AskTimedOut:
            said = f"munge: no answer within {duration_text(MUNGE_LIMIT)}, munged hangs"
            primary = config.controllers[0] if config and config.controllers else ""
            return Controller(primary=primary, primary_up=False, trouble=said)
        except CannotTell:
            pass  # no munge on this host: it is not to blame
        raise silence

    def config(self) -> control.SlurmConfig:
        """What sentinel needs of the running slurm.conf, at most an hour old."""
        return self._config.get_answer()

    def timeouts(self) -> Timeouts:
        """How long nodes may take to wake and to go to sleep, at most an hour old."""
        return self._timeouts.get_answer()

    def partitions(self) -> Mapping[str, int]:
        """How many nodes each partition has, one that is empty too."""
        return self._partitions.get_answer()

    def topology(self) -> Mapping[str, str]:
        """The racks that are declared; else Slurm's leaf switches or blocks, at most an hour old. Their
        nodes are hostlists."""
        return self._racks or self._topology.get_answer()

    def private(self) -> Collection[str]:
        """The words of PrivateData in the running slurm.conf, at most an hour old."""
        return self._config.get_answer().private

    def rights(self) -> QueueRights:
        """As whom Slurm is asked and what that user may see, at most an hour old."""
        return self._rights.get_answer()

    def _config_if_answering(self, answering: bool) -> control.SlurmConfig | None:
        try:
            return self._config.get_answer() if answering else None
        except CannotTell:
            return None

    def _ask_config(self) -> control.SlurmConfig:
        return control.read_config(self.client.ask_slurm(*control.CONFIG))

    def _ask_timeouts(self) -> Timeouts:
        return partitions.read_node_timeouts(
            self._config.get_answer(), self.client.ask_slurm(*partitions.PARTITIONS_QUESTION)
        )

    def _ask_partitions(self) -> Mapping[str, int]:
        return partitions.read_node_counts(self.client.ask_slurm(*partitions.PARTITIONS_QUESTION))

    def _ask_rights(self) -> QueueRights:
        return find_rights(self.client, self._me.get_answer(), self._config.get_answer)

    def _ask_topology(self) -> Mapping[str, str]:
        return topology.read_topology(self.client.ask_slurm(*topology.TOPOLOGY_QUESTION))

    def _ask_sluids(self) -> Mapping[str, str]:
        return queue.read_sluids(self.client.ask_slurm(*queue.SLUIDS))

    def _ask_nodes(self) -> tuple[Node, ...]:
        return tuple(nodes.read_nodes(self.client.ask_slurm(*nodes.NODES_QUESTION)))

    def _ask_planned(self) -> tuple[Reservation, ...]:
        return tuple(
            reservations.read_reservations(
                self.client.ask_slurm(*reservations.RESERVATIONS_QUESTION)
            )
        )

    def _ask_jobs(self) -> tuple[Job, ...]:
        mark = make_nonce()
        jobs = tuple(queue.read_queue(self._ask_squeue("-o", queue.squeue_format(mark)), mark))
        jobs = self._name_as_asked(jobs)
        self._endings.forget_ends(jobs)
        return jobs

    def _ask_gpus(self) -> Mapping[str, int]:
        mark = make_nonce()
        return sizes.read_gpu_counts(self._ask_squeue("-h", "-O", sizes.gpu_columns(mark)), mark)

    def _ask_squeue(self, *columns: str) -> bytes:
        # Somebody who watches only their own jobs needs no rights, and nothing more is asked.
        if self._users is None or set(self._users) != {self._me.get_answer().name}:
            refused = refusal_reason(self._rights.get_answer(), self._users)
            if refused:
                raise CannotTell(refused)
        return self.client.ask_slurm("squeue", "-a", *columns, *self._user_options)

    def _ask_again(self) -> tuple[JobRun, ...]:
        mark = make_nonce()
        out = self._ask_squeue("-t", "all", "-O", ends.squeue_columns(mark))
        return self._name_as_asked(ends.read_squeue(out, mark, queue.header_end(out, mark)))

    def _name_as_asked(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """The rows with their users named as they were asked for: of one uid there may be several
        names, and squeue prints another one (a directory with domains)."""
        asked = self._users
        if asked is None or all(row.user in asked for row in rows):
            return rows
        names = {user: _asked_name(user, asked) for user in {row.user for row in rows}}
        return tuple(
            row if names[row.user] == row.user else replace(row, user=names[row.user])
            for row in rows
        )

    @property
    def _user_options(self) -> tuple[str, ...]:
        return () if self._users is None else ("-u", ",".join(sorted(self._users)))
