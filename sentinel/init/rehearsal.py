"""The message that will come when a training dies: made from the job that runs now, by the very
check that will watch it, which is shown the same cluster without that job."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sentinel.alerting.notifications import format_iso
from sentinel.clock import SystemClock
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.cluster import JobPast, JobRun
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Notification, Status
from sentinel.core.ports import Context

if TYPE_CHECKING:
    from datetime import tzinfo

    from sentinel.config.settings import Settings
    from sentinel.core.cluster import Job, JobEnd
    from sentinel.core.ports import Slurm
    from sentinel.core.settings import CheckConfig

DEATH_DELAY_S = 120.0
"""Seconds between the simulated death and the run that reports it."""


class SlurmWithoutJobs:
    """The port `core.ports.Slurm` in a world where the jobs of one name have just FAILED; all
    else is as it is."""

    def __init__(self, real: Slurm, name: str, died: int) -> None:
        self._real, self._died = real, died
        self._gone = {job.job_id: job for job in real.jobs() if job.name == name}

    def __getattr__(self, question: str) -> Any:
        return getattr(self._real, question)

    def jobs(self) -> Sequence[Job]:
        return [job for job in self._real.jobs() if job.job_id not in self._gone]

    def job_end(self, job_id: str) -> JobEnd | None:
        job = self._gone.get(job_id)
        return self._real.job_end(job_id) if job is None else self._make_failed_run(job).run_end

    def past(
        self,
        job_ids: Collection[str],
        names: Collection[str],
        since: float,
        *,
        failed_within: float = 0.0,
    ) -> JobPast:
        return JobPast(runs=tuple(map(self._make_failed_run, self._gone.values())))

    def _make_failed_run(self, job: Job) -> JobRun:
        stdout = ""
        with suppress(CannotTell):
            end = self._real.job_end(job.job_id)
            stdout = end.stdout if end else ""
        return JobRun(
            job_id=job.job_id,
            id=job.id,
            array_id=job.array_id,
            name=job.name,
            user=job.user,
            partition=job.partition,
            workdir=job.workdir,
            submitted=job.submitted,
            state="FAILED",
            exit_code=1,
            nodes=job.nodes,
            started=job.started,
            ended=self._died,
            stdout=stdout,
            source="slurmctld",
        )


def rehearse_death(
    check: CheckConfig, slurm: Slurm, cluster: str, zone: tzinfo
) -> Notification | None:
    """The message that would be sent if the training of this check died now. None if its check
    would not report it, or cannot tell."""
    now = SystemClock().now()
    later = shift_instant(now, DEATH_DELAY_S)
    try:
        first = check.plugin.run(make_look_context(check, slurm, now, {}))
        dead: Any = SlurmWithoutJobs(slurm, check.plugin.name, now.wall // SECOND)
        report = check.plugin.run(make_look_context(check, dead, later, first.memory or {}))
    except CannotTell:
        return None
    bad = [finding for finding in report.findings if finding.status.bad]
    return _build_notification(check, bad[0], cluster, zone, now, later) if bad else None


def make_look_context(
    check: CheckConfig, slurm: Slurm, now: Instant, memory: Mapping[str, Any]
) -> Context:
    """The context for one run of this check."""
    return Context(name=check.name, now=now, limit=30.0, slurm=slurm, memory=memory)


def _build_notification(
    check: CheckConfig, finding: Finding, cluster: str, zone: tzinfo, since: Instant, at: Instant
) -> Notification:
    severity = Status.WARNING if check.common.severity == "warning" else finding.status
    return Notification(
        at=format_iso(at, zone),
        cluster=cluster,
        check=check.name,
        kind=check.common.kind,
        subject=finding.subject,
        severity=severity,
        status=severity,
        reason="firing",
        summary=finding.summary,
        since=format_iso(since, zone),
        key="rehearsal-1",
        alert="",
        details=finding.details,
        commands=tuple(command.render() for command in finding.commands),
        acts=tuple(command.render() for command in finding.acts),
        labels={**check.common.labels, **finding.labels},
        values=finding.values,
        guidance=finding.guidance,
        runbook=check.common.runbook,
    )


def render_message_parts(channel: Any, told: Notification) -> list[tuple[str, str]]:
    """The message as this channel would word it, without its HTML."""
    shown: list[tuple[str, str]] = [(n, t) for n, t in channel.preview([told]) if n != "html"]
    return shown or [("text", f"{told.summary}\n{told.details}".strip())]


def list_job_checks(settings: Settings) -> list[CheckConfig]:
    """The checks whose death can be played: of one job, by its name."""
    return [c for c in settings.checks if c.common.kind == "job" and c.plugin.name]
