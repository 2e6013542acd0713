"""Slurm as all checks of a pass see it: asked once for all of them, and less and less often while
it fails."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import (
    COMPLETING,
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
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Clock
from sentinel.core.values import duration_text
from sentinel.slurm import (
    control,
    ends,
    job_states,
    nodes,
    partitions,
    queue,
    reservations,
    sizes,
    submission,
    topology,
)
from sentinel.slurm.answer import CachedAnswer
from sentinel.slurm.array_ends import SubmissionEnd
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.complaints import describe_stderr
from sentinel.slurm.controllers import SETTLED_S, ControllerProbe
from sentinel.slurm.endings import (
    SLOW_ANSWER_S,
    WORTH_A_LOOK,
    BookedRuns,
    JobEndings,
    is_askable_name,
    merge_runs,
)
from sentinel.slurm.job import job_rows
from sentinel.slurm.job_index import QueuedJobs
from sentinel.slurm.rights import QueueRights, ask_user, find_rights, refusal_reason
from sentinel.slurm.words import make_nonce

if TYPE_CHECKING:
    from sentinel.core.script_memory import KnownScript

PLANNED = 30.0
CLOCKS_DIFFER_S = 60.0
"""Seconds by which the clocks of slurmctld and of this host may differ."""
FIRST_SLUIDS = (25, 11)  # the first version whose squeue prints them (src/squeue/opts.c)


class SlurmSnapshot:
    """The port `core.ports.Slurm`. If `users` is None, everybody's jobs are read. If it is empty,
    no jobs are.

    `max_age`: seconds for which jobs and nodes are cached. `racks`: host lists in place of Slurm's
    topology. `controllers`: what asks slurmctld about itself, by the same client. Its methods may
    be called from any thread. The client's counters say what Slurm was asked.
    """

    def __init__(
        self,
        client: SlurmClient,
        clock: Clock,
        *,
        users: Collection[str] | None,
        max_age: float,
        racks: Mapping[str, str] | None = None,
        controllers: ControllerProbe | None = None,
    ) -> None:
        self.client, self._racks = client, racks or {}
        self._controllers = controllers or ControllerProbe(client, clock)
        self._config, self._clock = self._controllers.config, clock
        self._users = users
        self._script_wishes: Mapping[str, KnownScript] = {}
        wait = 4 * client.limit  # the first list of jobs may need four commands
        self._me = CachedAnswer(lambda: ask_user(client), clock, max_age=SETTLED_S, patience=wait)
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
        self._memory = CachedAnswer(
            self._controllers.ask_config, clock, max_age=max_age, patience=wait
        )
        self._endings = JobEndings(client, clock, self._config, settled=SETTLED_S)

    def jobs(self) -> Sequence[Job]:
        """Pending, running, suspended and completing jobs of the requested users."""
        if self._users is not None and not self._users:
            return ()
        return self._jobs.get_answer()

    def gpus(self) -> Mapping[str, int | None]:
        """GPUs by job id: those that the job has, or asks for. This is another question to Slurm,
        never an older one than that for the jobs: a job that is missing has ended since then."""
        if self._users is not None and not self._users:
            return {}
        return self._gpus.get_answer(after=self._jobs.asked_at)

    def sluids(self) -> Mapping[str, str]:
        """Job ids by SLUID. Empty if Slurm is older than 25.11, which does not have them."""
        if control.parse_release(self.config().version) < FIRST_SLUIDS:
            return {}
        return self._sluids.get_answer()

    def nodes(self, after: Instant | None = None) -> Sequence[Node]:
        """Every node that Slurm knows; the answer was not asked for before `after`. For some
        seconds after a start of slurmctld they are UNKNOWN."""
        return self._nodes.get_answer(after)

    def nodes_asked(self) -> Instant | None:
        """When the nodes of the last answer were requested."""
        return self._nodes.asked_at

    def last(self) -> tuple[Sequence[Node] | None, Sequence[Job] | None]:
        """Nodes and jobs of the last answers, however old, or None. This never asks Slurm, but waits
        while another thread does."""
        return self._nodes.await_last_answer(), self._jobs.await_last_answer()

    def reservations(self) -> Sequence[Reservation]:
        """All reservations, future ones too; at most half a minute old."""
        return self._planned.get_answer()

    def job_end(self, job_id: str) -> JobEnd | None:
        """How a job ended; None if nothing remembers it. A job that has not ended has a live
        state."""
        return self._endings.find_end(job_id)

    def submission_end(self, job_id: str) -> SubmissionEnd | None:
        """How what sbatch returned this id for ended, an array with all its elements; None if
        nothing remembers it. Raises CannotTell."""
        return self._endings.find_submission_end(job_id)

    def booked_runs(self, name: str, since: float) -> BookedRuns | None:
        """Accounting's runs of this user's jobs of that name in the last `since` seconds; None
        without accounting. Raises CannotTell."""
        if not self._config.get_answer().accounting:
            return None
        return self._endings.accounted_runs((), {name}, since, ("-u", str(os.getuid())))

    def past(
        self,
        job_ids: Collection[str],
        names: Collection[str],
        since: float,
        *,
        failed_within: float = 0.0,
    ) -> JobPast:
        """Ask again about jobs, once for all checks of a pass. Accounting is asked about ids and
        names that slurmctld does not know. Raises CannotTell, also while slurmctld is slow."""
        self.jobs()
        self._refuse_while_slow()
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
            forgets = failed_within > self._config.get_answer().min_job_age
            booked = self._endings.accounted_runs(
                set(job_ids) - of,
                nameless,
                since,
                self._user_options,
                failed_within if forgets else 0.0,
            )
        except CannotTell as error:
            return replace(past, unasked=str(error))
        books = self._config.get_answer().accounting
        return replace(
            past,
            runs=merge_runs(runs, booked.runs),
            unasked=booked.unasked,
            left_out=booked.left_out,
            accounting=books,
        )

    def submitted_since(self, name: str, since: float, job_id: str) -> Sequence[str] | None:
        """The ids of jobs of this user with this name that were submitted at `since` (epoch
        seconds) or later, as far as the clocks agree, and not before `job_id`, by Slurm's own. Slurm
        is asked each time. None if slurmctld may have forgotten one and nobody else knows. Raises
        CannotTell."""
        me, mark = self._me.get_answer().name, make_nonce()
        mine = ("-u", me, "-t", "all", "-O", ends.squeue_columns(mark))
        out = self.client.ask_slurm("squeue", "-a", *mine)
        runs = ends.read_squeue(out, mark, queue.header_end(out, mark))
        first = since - CLOCKS_DIFFER_S
        found = _list_later_runs([r for r in runs if r.name == name], first, job_id)
        config, age = self._config.get_answer(), self._clock.now().wall / SECOND - since
        if found or age < config.min_job_age:
            return found
        if not config.accounting or not is_askable_name(name):
            return None
        booked = self._endings.accounted_runs((), {name}, age + CLOCKS_DIFFER_S, ("-u", me))
        if booked.unasked:
            raise CannotTell(booked.unasked)
        return _list_later_runs(booked.runs, first, job_id)

    def submission(self, job_id: str) -> Submission | None:
        """How a job was submitted. Slurm is asked each time. None if slurmctld does not remember
        it. Raises CannotTell."""
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

    def read_script(self, job_id: str) -> bytes:
        """A job's batch script; empty if it has none or is gone. Slurm is asked each time. Raises
        ScriptUnreadable, or CannotTell, also while slurmctld is slow."""
        from sentinel.slurm.script_wishes import read_script_answer, script_argv

        self._refuse_while_slow()
        return read_script_answer(self.client.run_command(*script_argv(job_id)))

    def controller(self) -> Controller:
        """Whether each slurmctld answers now, and how fast; never cached."""
        return self._controllers.ask_controllers()

    def use_script_wishes(self, known: Mapping[str, KnownScript]) -> None:
        """From the next answer on, jobs have these wishes of their batch scripts."""
        self._script_wishes = known

    def config(self) -> control.SlurmConfig:
        """What sentinel needs of the running slurm.conf, at most an hour old."""
        return self._config.get_answer()

    def timeouts(self) -> Timeouts:
        """How long nodes may take to wake and to go to sleep, at most an hour old."""
        return self._timeouts.get_answer()

    def partitions(self) -> Mapping[str, int]:
        """The number of nodes of each partition, also if it is 0."""
        return partitions.read_node_counts(self._partitions.get_answer())

    def partition_states(self) -> Mapping[str, str]:
        """The state of each partition."""
        return partitions.read_partition_states(self._partitions.get_answer())

    def topology(self) -> Mapping[str, str]:
        """Racks with their nodes as hostlists: those of the settings; else Slurm's leaf switches or
        blocks, at most an hour old."""
        return self._racks or self._topology.get_answer()

    def private(self) -> Collection[str]:
        """The words of PrivateData in the running slurm.conf, at most an hour old."""
        return self._config.get_answer().private

    def mark_overdue(self, jobs: Sequence[Job]) -> tuple[Job, ...]:
        """The jobs, of which those are marked that Slurm should have ended by now. No job is marked if
        Slurm does not say how long it may take."""
        if all(job.state != COMPLETING for job in jobs):
            return tuple(jobs)
        try:
            end_timeout = self._config.get_answer().end_timeout
        except CannotTell:
            return tuple(jobs)
        return job_states.mark_overdue(jobs, end_timeout, self._clock.now().wall / SECOND)

    def rights(self) -> QueueRights:
        """The user as whom Slurm is asked and what that user may see, at most an hour old."""
        return self._rights.get_answer()

    def _ask_timeouts(self) -> Timeouts:
        return partitions.read_node_timeouts(
            self._config.get_answer(), self.client.ask_slurm(*partitions.PARTITIONS_QUESTION)
        )

    def _ask_partitions(self) -> bytes:
        return self.client.ask_slurm(*partitions.PARTITIONS_QUESTION)

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

    def _ask_jobs(self) -> QueuedJobs:
        mark = make_nonce()
        jobs = tuple(queue.read_queue(self._ask_squeue("-o", queue.squeue_format(mark)), mark))
        jobs = queue.name_as_asked(jobs, self._users)
        if self._script_wishes:  # where no channel tells owners, nothing is loaded for it
            from sentinel.slurm.script_wishes import attach_wishes

            jobs = attach_wishes(jobs, self._script_wishes)
        self._endings.forget_ends(jobs)
        return QueuedJobs(self.mark_overdue(jobs))

    def _ask_gpus(self) -> Mapping[str, int | None]:
        mark = make_nonce()
        return sizes.read_gpu_counts(self._ask_squeue("-h", "-O", sizes.gpu_columns(mark)), mark)

    def _ask_squeue(self, *columns: str) -> bytes:
        # A user who watches only their own jobs needs no rights, so Slurm is not asked about
        # rights.
        if self._users is None or set(self._users) != {self._me.get_answer().name}:
            refused = refusal_reason(self._rights.get_answer(), self._users)
            if refused:
                raise CannotTell(refused)
        return self.client.ask_slurm("squeue", "-a", *columns, *self._user_options)

    def _refuse_while_slow(self) -> None:
        if self._jobs.took > SLOW_ANSWER_S * self.client.limit:
            took = duration_text(self._jobs.took)
            raise CannotTell(f"squeue took {took}: slurmctld is not asked a second time")

    def _ask_again(self) -> tuple[JobRun, ...]:
        mark = make_nonce()
        out = self._ask_squeue("-t", "all", "-O", ends.squeue_columns(mark))
        rows = ends.read_squeue(out, mark, queue.header_end(out, mark))
        return queue.name_as_asked(rows, self._users)

    @property
    def _user_options(self) -> tuple[str, ...]:
        return () if self._users is None else ("-u", ",".join(sorted(self._users)))


def _list_later_runs(runs: Sequence[JobRun], first: float, job_id: str) -> list[str]:
    """The ids of other jobs than `job_id`, submitted at `first` or later and not before it."""
    own = max((r.submitted or 0 for r in runs if r.job_id == job_id), default=0)
    later = [r.job_id for r in runs if (r.submitted or 0) >= max(first, own)]
    return [found for found in later if found != job_id]
