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
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Job
from sentinel.core.declared import Metric
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.model import Coverage, Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.text import visible
from sentinel.core.time_text import format_clock
from sentinel.core.values import duration_text
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
    SOURCES = (
        "The chain's own journal below `dir`, and squeue of slurmctld for its waiting links.",
    )
    RUNBOOK = "docs/cron.md"

    dir: FilePath

    def jobs_of(self) -> frozenset[str]:
        """One's own: nobody else can see to this chain."""
        import pwd
        from os import geteuid

        try:
            return frozenset([pwd.getpwuid(geteuid()).pw_name])
        except KeyError:
            return frozenset([str(geteuid())])

    def run(self, ctx: Context) -> Report:
        """Two findings: whether it goes on (`links`), and whether slots were missed (`slots`)."""
        place = ChainFolder(self.dir)
        try:
            chain, entries = place.read_chain(), place.read_journal()
        except SentinelError as error:
            raise CannotTell(str(error)) from error
        now = ctx.now.wall / SECOND
        found = [_judge_slots(chain, entries, now)]
        if chain.is_in_slurm:
            jobs = [job for job in ctx.slurm.jobs() if job.name in chain.strand_names]
            if why := find_unknown_state(jobs):
                raise CannotTell(visible(why))
            found.insert(0, _judge_links(chain, jobs))
        return Report(findings=tuple(found), coverage=Coverage(of="chains", meant=1))


def _judge_links(chain: Chain, jobs: Sequence[Job]) -> Finding:
    waiting = {job.name: job for job in jobs if job.state == "PENDING"}
    started = {job.name for job in jobs if job.state != "PENDING"}  # a cloud node boots for minutes
    held = [job.job_id for job in waiting.values() if "held" in job.reason.lower()]
    missing = [name for name in chain.strand_names if name not in waiting.keys() | started]
    if len(missing) == len(chain.strand_names):
        return _broken_finding(
            chain, "no link is in the queue: nothing runs sentinel any more", Status.CRITICAL
        )
    if missing:
        return _broken_finding(
            chain, f"no link of {', '.join(missing)} is in the queue", Status.WARNING
        )
    if held:
        return _broken_finding(chain, f"held: {', '.join(held)}", Status.WARNING)
    if not waiting and chain.mode == "relay":
        return _broken_finding(chain, "no successor waits behind the link at work", Status.WARNING)
    return Finding(
        subject="links", status=Status.OK, summary=f"{len(waiting)} waiting, {len(started)} at work"
    )


def _broken_finding(chain: Chain, text: str, status: Status) -> Finding:
    return Finding(
        subject="links",
        status=status,
        summary=text,
        commands=(chain.command_line("ensure"), chain.command_line("status")),
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
            f"nothing was watched for {blind} ({begin} to {end}): no link came to its end",
            Status.WARNING,
        )
    return f"{found.ran} of {found.slots} slots run", Status.OK
