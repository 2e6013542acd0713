"""The `chain` kind: does what runs in place of cron go on, and was anything missed."""

from collections.abc import Sequence
from typing import ClassVar

from sentinel.chain.folder import Place
from sentinel.chain.journal import GAPS, Entry, Gap, Standing, blind_since, silence, standing
from sentinel.chain.model import Chain
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Job
from sentinel.core.declared import Metric
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.model import Coverage, Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.core.when import clock_text
from sentinel.plugin import Check
from sentinel.slurm.job_states import strange


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
        place = Place(self.dir)
        try:
            chain, entries = place.chain(), place.entries()
        except SentinelError as error:
            raise CannotTell(str(error)) from error
        now = ctx.now.wall / SECOND
        found = [_slots(chain, entries, now)]
        if chain.in_slurm:
            jobs = [job for job in ctx.slurm.jobs() if job.name in chain.names]
            if why := strange(jobs):
                raise CannotTell(visible(why))
            found.insert(0, _links(chain, jobs))
        return Report(findings=tuple(found), coverage=Coverage(of="chains", meant=1))


def _links(chain: Chain, jobs: Sequence[Job]) -> Finding:
    waiting = {job.name: job for job in jobs if job.state == "PENDING"}
    started = {job.name for job in jobs if job.state != "PENDING"}  # a cloud node boots for minutes
    held = [job.job_id for job in waiting.values() if "held" in job.reason.lower()]
    missing = [name for name in chain.names if name not in waiting.keys() | started]
    if len(missing) == len(chain.names):
        return _broken(
            chain, "no link is in the queue: nothing runs sentinel any more", Status.CRITICAL
        )
    if missing:
        return _broken(chain, f"no link of {', '.join(missing)} is in the queue", Status.WARNING)
    if held:
        return _broken(chain, f"held: {', '.join(held)}", Status.WARNING)
    if not waiting and chain.mode == "relay":
        return _broken(chain, "no successor waits behind the link at work", Status.WARNING)
    return Finding(
        subject="links", status=Status.OK, summary=f"{len(waiting)} waiting, {len(started)} at work"
    )


def _broken(chain: Chain, text: str, status: Status) -> Finding:
    return Finding(
        subject="links",
        status=status,
        summary=text,
        commands=(chain.call("ensure"), chain.call("status")),
    )


def _slots(chain: Chain, entries: Sequence[Entry], now: float) -> Finding:
    found = standing(chain, entries, now)
    values = {"slots": found.slots, "ran": found.ran, "late_seconds": round(found.late, 1)}
    gap = blind_since(chain, entries, now)
    text, status = _judged(chain, found, gap, now)
    return Finding(subject="slots", status=status, summary=visible(text), values=values)


def _judged(chain: Chain, found: Standing, gap: Gap | None, now: float) -> tuple[str, Status]:
    silent = silence(chain, found, now)
    if silent > GAPS * chain.every:
        return f"no pass for {duration_text(silent)}: nothing was watched", Status.CRITICAL
    if not found.slots:
        return "no pass yet", Status.OK
    if gap:
        blind = duration_text(gap.last - gap.first + chain.every)
        begin, end = clock_text(gap.first), clock_text(gap.last + chain.every)
        return (
            f"nothing was watched for {blind} ({begin} to {end}): no link came to its end",
            Status.WARNING,
        )
    return f"{found.ran} of {found.slots} slots run", Status.OK
