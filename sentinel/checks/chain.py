"""The `chain` kind: does what runs in place of cron go on, and was anything missed."""

from collections.abc import Sequence
from typing import ClassVar

from sentinel.chain.folder import ChainFolder
from sentinel.chain.journal import (
    MAX_GAPS,
    ChainStanding,
    JournalEntry,
    SlotGap,
    find_closed_gap,
    seconds_silent,
    sum_journal,
)
from sentinel.chain.model import Chain
from sentinel.checks.users import own_user_name
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Job
from sentinel.core.declared import Metric
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.guidance import ADMINISTRATOR, ActingCommand, Guidance, LookingCommand, look
from sentinel.core.model import Coverage, Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.text import visible
from sentinel.core.time_text import format_clock
from sentinel.core.values import clock_text, duration_text
from sentinel.plugin import Check
from sentinel.slurm.job_states import find_unknown_state


class ChainCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The chain of jobs that runs sentinel in place of cron: links, lateness, blind time.

    dir: The folder of the chain, below the state.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 30
    METRICS = (
        Metric("slots", "chain_slots", "Passes that were due."),
        Metric("ran", "chain_slots_run", "Of these, those that ran."),
        Metric("late_seconds", "chain_late_seconds", "How late a pass was at most.", "seconds"),
    )
    SOURCES = ("The journal of passes below `dir`; for a chain of jobs also squeue of slurmctld.",)
    RUNBOOK = "docs/cron.md"

    dir: FilePath

    def jobs_of(self) -> frozenset[str]:
        """The user who runs this. Nobody else can mend this chain."""
        return frozenset([own_user_name()])

    def run(self, ctx: Context) -> Report:
        """Two findings: whether it goes on (`next jobs`), and whether slots were missed (`slots`)."""
        place = ChainFolder(self.dir)
        try:
            chain, entries = place.read_chain(), place.read_journal()
        except SentinelError as error:
            raise CannotTell(str(error)) from error
        now = ctx.now.wall / SECOND
        found = [_judge_slots(chain, entries, now)]
        if chain.is_in_slurm:
            # Everybody sees these names in the queue, and may give them to jobs of their own.
            me, names = own_user_name(), chain.strand_names
            jobs = [job for job in ctx.slurm.jobs() if job.user == me and job.name in names]
            if why := find_unknown_state(jobs):
                raise CannotTell(visible(why))
            found.insert(0, _judge_links(chain, jobs, now))
        return Report(findings=tuple(found), coverage=Coverage(of="chains", meant=1))


def _judge_links(chain: Chain, jobs: Sequence[Job], now: float) -> Finding:
    waiting = {job.name: job for job in jobs if job.state == "PENDING"}
    # a cloud node may take minutes to boot
    started = {job.name for job in jobs if job.state != "PENDING"}
    held = [job.job_id for job in waiting.values() if "held" in job.reason.lower()]
    missing = [name for name in chain.strand_names if name not in waiting.keys() | started]
    if len(missing) == len(chain.strand_names):
        return _broken_finding(
            chain,
            "none of the Slurm jobs that run sentinel is queued or running: nothing starts it any more",
            Status.CRITICAL,
        )
    if missing:
        return _broken_finding(
            chain,
            f"no job named {', '.join(missing)} is in the queue: fewer jobs than planned run sentinel",
            Status.WARNING,
        )
    if held:
        others = len(held) < len(chain.strand_names)
        end = "the chain's other jobs go on" if others else _describe_last_end(jobs, now)
        text = f"the next job that runs sentinel is held and will not start: job {', '.join(held)}; {end}"
        ids = ",".join(held)
        admin = any("JobHeldAdmin" in job.reason for job in waiting.values())
        return _broken_finding(
            chain,
            text,
            Status.WARNING,
            (look("squeue -j {} -o '%i %u %r' | cat -v", ids),),
            (ActingCommand(owner=ADMINISTRATOR, argv=("scontrol", "release", ids)),),
            "" if admin else own_user_name(),
        )
    if not waiting and chain.mode == "relay":
        return _broken_finding(
            chain,
            f"no next job waits behind the one that runs: {_describe_last_end(jobs, now)}",
            Status.WARNING,
        )
    return Finding(
        subject="next jobs",
        status=Status.OK,
        summary=f"{len(waiting)} waiting, {len(started)} at work",
    )


def _describe_last_end(jobs: Sequence[Job], now: float) -> str:
    """Until when the job that runs now watches, by its time limit."""
    running = [job for job in jobs if job.state != "PENDING"]
    if not running:
        return "nothing is watched until somebody releases it"
    ends = [job.ends for job in running if job.ends is not None]
    limit = f", {clock_text(max(ends), now)} at the latest" if ends else ""
    return f"watching stops when the present job ends{limit}"


def _broken_finding(
    chain: Chain,
    text: str,
    status: Status,
    first: tuple[LookingCommand, ...] = (),
    acts: tuple[ActingCommand, ...] = (),
    owner: str = "",
) -> Finding:
    """`acts` release the job; `owner`: who may do that, empty if only an administrator may."""
    named = ("-c", chain.config) if chain.config else ()
    ensure = ActingCommand(owner=ADMINISTRATOR, argv=("sentinel", "cron", "ensure", *named))
    return Finding(
        subject="next jobs",
        status=status,
        summary=text,
        commands=(
            *first,
            look("sentinel cron status -c {}", chain.config)
            if chain.config
            else look("sentinel cron status"),
        ),
        acts=(*acts, ensure),
        guidance=Guidance(
            impact="Nothing is watched and no alert comes until a job of sentinel runs again. Jobs of"
            " users go on."
            if status is Status.CRITICAL
            else "The jobs of sentinel that are left go on; when they have ended, nothing is watched.",
            todo=f"As {owner}, run `{acts[-1].render()}`: the next job starts then. `squeue` below shows why it"
            " is held. If it stays held, run `sentinel cron ensure` below: it queues another job in its place."
            if acts and owner
            else f"An administrator holds it, and only one can release it (`{acts[-1].render()}`). Ask why it is"
            " held."
            if acts
            else "Run `sentinel cron ensure` below: it queues the next job. That needs no root.",
            ask=f"release the job ({acts[-1].render()}), or say why it is held: it runs sentinel"
            if acts and not owner
            else "",
        ),
    )


def _judge_slots(chain: Chain, entries: Sequence[JournalEntry], now: float) -> Finding:
    found = sum_journal(chain, entries, now)
    values = {"slots": found.slots, "ran": found.ran, "late_seconds": round(found.late, 1)}
    gap = find_closed_gap(chain, entries, now)
    text, status = _slots_status(chain, found, gap, now)
    return Finding(subject="slots", status=status, summary=visible(text), values=values)


def _slots_status(
    chain: Chain, found: ChainStanding, gap: SlotGap | None, now: float
) -> tuple[str, Status]:
    silent = seconds_silent(chain, found, now)
    if silent > MAX_GAPS * chain.every:
        return f"no pass for {duration_text(silent)}: nothing was watched", Status.CRITICAL
    if not found.slots:
        return "no pass yet", Status.OK
    if gap:
        blind = duration_text(gap.last - gap.first + chain.every)
        begin, end = format_clock(gap.first), format_clock(gap.last + chain.every)
        return (
            f"nothing was watched for {blind} ({begin} to {end}): no pass came to its end",
            Status.WARNING,
        )
    return f"passes: {found.ran} of {found.slots} ran", Status.OK
