"""Asks Slurm for the nodes below running jobs, and reports those on which a job is at stake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sentinel.checks.job.node_threats import (
    TOPICS,
    NodeThreat,
    NodeTrouble,
    find_node_troubles,
    find_threats,
    judge_threats,
    list_reservation_troubles,
    make_calm_finding,
)
from sentinel.checks.job.settings import JobSettings
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Job, Reservation, Submission
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Status
from sentinel.core.ports import Context
from sentinel.slurm.job_states import Phase, state_phase

MAX_QUESTIONS = 5
"""How many jobs one run asks Slurm about: how each was submitted."""


class NodeWatch:
    """One run. Slurm is asked for nodes and reservations once, and only if a job runs."""

    def __init__(self, settings: JobSettings, ctx: Context) -> None:
        self._ctx, self._hidden = ctx, settings.hidden_reasons
        self._wanted = settings.node_warnings
        self._now_s = ctx.now.wall / SECOND
        self._questions = MAX_QUESTIONS

    def list_findings(self, trainings: Mapping[str, Sequence[Job]]) -> tuple[Finding, ...]:
        """A warning about each training that is at stake, and the end of each that was told."""
        return tuple(self._iterate_findings(trainings)) if self._wanted else ()

    def _iterate_findings(self, trainings: Mapping[str, Sequence[Job]]) -> Iterator[Finding]:
        running = {s: [job for job in jobs if _is_running(job)] for s, jobs in trainings.items()}
        topics = [(subject, topic) for subject in trainings for topic in TOPICS]
        told = [one for one in topics if " ".join(one) in self._ctx.told]
        if not told and not any(running.values()):
            return
        try:
            troubles, planned = self._ask_troubles()
        except CannotTell as error:
            for one in told:
                yield Finding(subject=" ".join(one), status=Status.UNKNOWN, summary=str(error))
            return
        for subject, jobs in running.items():
            threats = [t for job in jobs for t in find_threats(job, troubles, planned)]
            for topic in TOPICS:
                mine = [threat for threat in threats if threat.topic == topic]
                if mine:
                    yield judge_threats(
                        subject, mine, self._find_submission(subject, mine), self._now_s
                    )
                elif (subject, topic) in told:
                    yield make_calm_finding(subject, topic, jobs)

    def _ask_troubles(
        self,
    ) -> tuple[Mapping[str, NodeTrouble], Sequence[tuple[Reservation, NodeTrouble]]]:
        slurm = self._ctx.slurm
        private = slurm.private()
        return (
            find_node_troubles(slurm.nodes(), self._hidden, private),
            list_reservation_troubles(slurm.reservations(), private, self._now_s),
        )

    def _find_submission(self, subject: str, threats: Sequence[NodeThreat]) -> Submission | None:
        """How the first job was submitted. Slurm is asked as long as nobody was told."""
        job = threats[0].job
        told = f"{subject} {threats[0].topic}" in self._ctx.told
        if told or self._questions <= 0 or self._ctx.one_shot:
            return None
        self._questions -= 1
        try:
            return self._ctx.slurm.submission(job.id)
        except CannotTell:
            return None


def _is_running(job: Job) -> bool:
    return state_phase(job.state) in (Phase.RUNNING, Phase.PAUSED)
