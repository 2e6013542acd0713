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
    Node,
    Reservation,
    Run,
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
from sentinel.slurm.answer import Answer
from sentinel.slurm.client import Client, NoAnswer
from sentinel.slurm.complaints import MISFIT, complaint, failure, meaning, told, worded
from sentinel.slurm.endings import SLOW, WORTH_A_LOOK, Endings, joined
from sentinel.slurm.job import rows
from sentinel.slurm.rights import Rights, find, refusal, who
from sentinel.slurm.words import nonce, uid_of

SETTLED = 3600.0  # seconds for which configuration and rights are believed
PLANNED = 30.0
FIRST_SLUIDS = (25, 11)  # the first squeue that prints them (src/squeue/opts.c)
MUNGE_LIMIT = 3.0  # a munged that is well answers in milliseconds
WHY_DOWN = 2.0
"""Seconds for why ping says DOWN: a refusal comes at once, and what is dead is tried for MessageTimeout."""


Row = TypeVar("Row", Job, Run)


def _asked_name(printed: str, asked: Collection[str]) -> str:
    """The name under which a user was asked for whom squeue prints otherwise: the one with the same
    uid; where nobody knows that and one user alone was asked for, that one. Else as printed."""
    if printed in asked or not printed:
        return printed
    uid = uid_of(printed)
    same = [name for name in asked if uid is not None and uid_of(name) == uid]
    return same[0] if same else (next(iter(asked)) if len(asked) == 1 else printed)


class Snapshot:
    """The port `core.ports.Slurm`. `users` None: everybody; none at all: no job is of interest.

    `max_age`: seconds for which jobs and nodes are kept. `racks`: host lists in place of Slurm's
    topology. `readyz`: http or https, by which slurmctld itself is asked where it does not answer
    scontrol. Its methods may be called from any thread; the client's counters say what Slurm was
    asked.
    """

    def __init__(
        self,
        client: Client,
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
        self._me = Answer(lambda: who(client), clock, max_age=SETTLED, patience=wait)
        self._config = Answer(self._ask_config, clock, max_age=SETTLED, patience=wait)
        self._rights = Answer(self._ask_rights, clock, max_age=SETTLED, patience=wait)
        self._jobs = Answer(self._ask_jobs, clock, max_age=max_age, patience=wait)
        self._gpus = Answer(self._ask_gpus, clock, max_age=max_age, patience=wait)
        self._sluids = Answer(self._ask_sluids, clock, max_age=max_age, patience=wait)
        self._nodes = Answer(self._ask_nodes, clock, max_age=max_age, patience=wait)
        self._timeouts = Answer(self._ask_timeouts, clock, max_age=SETTLED, patience=wait)
        self._partitions = Answer(self._ask_partitions, clock, max_age=max_age, patience=wait)
        self._topology = Answer(self._ask_topology, clock, max_age=SETTLED, patience=wait)
        self._planned = Answer(self._ask_planned, clock, max_age=PLANNED, patience=wait)
        self._again = Answer(self._ask_again, clock, max_age=max_age, patience=wait)
        self._memory = Answer(self._ask_config, clock, max_age=max_age, patience=wait)
        self._endings = Endings(client, clock, self._config, settled=SETTLED)

    def jobs(self) -> Sequence[Job]:
        """Pending, running, suspended and completing jobs of the users asked for."""
        if self._users is not None and not self._users:
            return ()
        return self._jobs.get()

    def gpus(self) -> Mapping[str, int]:
        """GPUs by job id: what Slurm gave to it, or what it asks for; a question of its own."""
        if self._users is not None and not self._users:
            return {}
        return self._gpus.get()

    def sluids(self) -> Mapping[str, str]:
        """Job ids by SLUID; none where Slurm is older than 25.11, which is not asked."""
        if control.release(self.config().version) < FIRST_SLUIDS:
            return {}
        return self._sluids.get()

    def nodes(self, after: Instant | None = None) -> Sequence[Node]:
        """Every node Slurm knows, not asked before `after`; for seconds after a start of slurmctld
        they are UNKNOWN."""
        return self._nodes.get(after)

    def nodes_asked(self) -> Instant | None:
        """When the nodes of the last answer were asked for."""
        return self._nodes.began

    def last(self) -> tuple[Sequence[Node] | None, Sequence[Job] | None]:
        """Nodes and jobs as they were told last, however long ago; nothing is asked."""
        return self._nodes.last, self._jobs.last

    def reservations(self) -> Sequence[Reservation]:
        """All reservations, those to come too, at most half a minute old."""
        return self._planned.get()

    def job_end(self, job_id: str) -> JobEnd | None:
        """How a job ended; None when nothing remembers it. One still there has a live state."""
        return self._endings.get(job_id)

    def past(self, job_ids: Collection[str], names: Collection[str], since: float) -> JobPast:
        """A second look, the same for all that ask in a pass; CannotTell too while slurmctld is
        slow. Where it says nothing of an id or a name, accounting is asked."""
        self.jobs()
        if self._jobs.took > SLOW * self.client.limit:
            took = duration_text(self._jobs.took)
            raise CannotTell(f"squeue took {took}: slurmctld is not asked a second time")
        runs = self._again.get(after=self._jobs.began)
        of = {run.job_id for run in runs if run.state not in WORTH_A_LOOK}
        unknown = set(job_ids) - {run.job_id for run in runs}
        nameless = set(names) - {run.name for run in runs}
        config = self._memory.get(after=self._jobs.began) if unknown else None
        past = JobPast(
            runs=runs,
            booted=config.booted if config else None,
            next_id=config.next_job_id if config else None,
            keeps=config.min_job_age if config else 0,
        )
        try:
            booked = self._endings.booked(set(job_ids) - of, nameless, since, self._whose)
        except CannotTell as error:
            return replace(past, unasked=str(error))
        books = self._config.get().accounting
        return replace(past, runs=joined(runs, booked), accounting=books)

    def submission(self, job_id: str) -> Submission | None:
        """How a job was submitted, asked anew; None when slurmctld does not remember it."""
        mark = nonce()
        which = ("squeue", "-h", "-a", "-t", "all", "-j", job_id)
        done = self.client.run(*which, "-O", submission.columns(mark))
        if done.code and "Invalid job id" in complaint(done.err):
            return None
        found = submission.read(self.client.believe("squeue", done), mark, job_id)
        if found is None:
            return None
        config = self._config.get()
        accounting = config.accounting
        kept = [j.exclude for j in rows(self.client, job_id) if job_id in (j.id, j.job_id)]
        return replace(
            found,
            exclude=kept[0] if kept else "",
            bare=submission.bare(control.release(config.version)),
            accounting=accounting,
            line=self._endings.typed(job_id) if accounting else "",
        )

    def controller(self) -> Controller:
        """Whether each slurmctld answers now, and how fast; never cached."""
        try:
            seen = self._ping()
        except NoAnswer as silence:
            if itself := self._itself():
                raise NoAnswer(f"{silence}; {itself}") from None
            raise
        if seen.primary_up or not (itself := self._itself()):
            return seen
        return replace(seen, trouble="; ".join(filter(None, [seen.trouble, itself])))

    def _itself(self) -> str:
        """What slurmctld says of itself by HTTP, which needs no munge and no client of its version;
        empty where it says nothing."""
        config = self._config.last
        if not (self._readyz and config and config.listens):
            return ""
        if (
            control.release(config.version) < control.FIRST_HTTP
        ):  # it would take it for a broken RPC
            return ""
        for path, words in control.HEALTH:
            question = control.http(self._readyz, config.listens, path)
            try:
                done = self.client.run(*question, limit=control.HTTP_LIMIT + 1)
            except CannotTell:
                return ""
            if done.code or done.out == b"204":
                return "" if done.code else words
        return ""

    def _ping(self) -> Controller:
        try:
            done = self.client.run(*control.PING)
        except NoAnswer as error:
            return self._behind_munge(error)
        trouble = complaint(done.err)
        try:
            (primary, up), *backups = control.read_ping(done.out)
        except CannotTell:
            if trouble:
                raise failure("scontrol", trouble, done.code) from None
            raise
        answers = up or any(answers for _, answers in backups)
        config = self._config_if(answers)
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
            said = complaint(self.client.run(*control.CONFIG, limit=WHY_DOWN).err)
        except CannotTell:
            return ""
        if meaning(said) == MISFIT:
            raise CannotAsk(MISFIT, told("scontrol", said, 1))
        return worded(said) if said else ""

    def _behind_munge(self, silence: NoAnswer) -> Controller:
        """The answer where munge is why there was none; else raises what it was given.

        A munged that hangs makes scontrol wait for minutes, and without a word.
        """
        config = self._config.last
        try:
            self.client.run(*control.munge(config), limit=MUNGE_LIMIT)
        except NoAnswer:
            said = f"munge: no answer within {duration_text(MUNGE_LIMIT)}, munged hangs"
            primary = config.controllers[0] if config and config.controllers else ""
            return Controller(primary=primary, primary_up=False, trouble=said)
        except CannotTell:
            pass  # no munge on this host: it is not to blame
        raise silence

    def config(self) -> control.Config:
        """What sentinel needs of the running slurm.conf, at most an hour old."""
        return self._config.get()

    def timeouts(self) -> Timeouts:
        """How long nodes may take to wake and to go to sleep, at most an hour old."""
        return self._timeouts.get()

    def partitions(self) -> Mapping[str, int]:
        """How many nodes each partition has, one that is empty too."""
        return self._partitions.get()

    def topology(self) -> Mapping[str, str]:
        """The racks that are declared; else Slurm's leaf switches or blocks, at most an hour old. Their
        nodes are hostlists."""
        return self._racks or self._topology.get()

    def private(self) -> Collection[str]:
        """The words of PrivateData in the running slurm.conf, at most an hour old."""
        return self._config.get().private

    def rights(self) -> Rights:
        """As whom Slurm is asked and what that user may see, at most an hour old."""
        return self._rights.get()

    def _config_if(self, answering: bool) -> control.Config | None:
        try:
            return self._config.get() if answering else None
        except CannotTell:
            return None

    def _ask_config(self) -> control.Config:
        return control.read_config(self.client.ask(*control.CONFIG))

    def _ask_timeouts(self) -> Timeouts:
        return partitions.read_timeouts(self._config.get(), self.client.ask(*partitions.QUESTION))

    def _ask_partitions(self) -> Mapping[str, int]:
        return partitions.read_sizes(self.client.ask(*partitions.QUESTION))

    def _ask_rights(self) -> Rights:
        return find(self.client, self._me.get(), self._config.get)

    def _ask_topology(self) -> Mapping[str, str]:
        return topology.read_topology(self.client.ask(*topology.QUESTION))

    def _ask_sluids(self) -> Mapping[str, str]:
        return queue.read_sluids(self.client.ask(*queue.SLUIDS))

    def _ask_nodes(self) -> tuple[Node, ...]:
        return tuple(nodes.read_nodes(self.client.ask(*nodes.QUESTION)))

    def _ask_planned(self) -> tuple[Reservation, ...]:
        return tuple(reservations.read_reservations(self.client.ask(*reservations.QUESTION)))

    def _ask_jobs(self) -> tuple[Job, ...]:
        mark = nonce()
        jobs = tuple(queue.read_list(self._squeue("-o", queue.columns(mark)), mark))
        jobs = self._as_asked(jobs)
        self._endings.forget(jobs)
        return jobs

    def _ask_gpus(self) -> Mapping[str, int]:
        mark = nonce()
        return sizes.read_sizes(self._squeue("-h", "-O", sizes.columns(mark)), mark)

    def _squeue(self, *columns: str) -> bytes:
        # Somebody who watches only their own jobs needs no rights, and nothing more is asked.
        if self._users is None or set(self._users) != {self._me.get().name}:
            refused = refusal(self._rights.get(), self._users)
            if refused:
                raise CannotTell(refused)
        return self.client.ask("squeue", "-a", *columns, *self._whose)

    def _ask_again(self) -> tuple[Run, ...]:
        mark = nonce()
        out = self._squeue("-t", "all", "-O", ends.squeue_columns(mark))
        return self._as_asked(ends.read_squeue(out, mark, queue.header_end(out, mark)))

    def _as_asked(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
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
    def _whose(self) -> tuple[str, ...]:
        return () if self._users is None else ("-u", ",".join(sorted(self._users)))
