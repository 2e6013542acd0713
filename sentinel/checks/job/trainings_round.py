"""Many trainings in one check: each is judged, told and forgotten by itself."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from sentinel.checks.job.files import JobFiles
from sentinel.checks.job.judge import make_unknown_finding
from sentinel.checks.job.ledger_rows import list_ledger_rows, with_held_gpus
from sentinel.checks.job.look import JobRound, SubmitHosts, TrainingResult
from sentinel.checks.job.memory import (
    MAX_JOBS,
    EndedRun,
    Memory,
    SubmitDelay,
    TrainingsMemory,
    dump_memory,
    load_memory,
    update_memory,
)
from sentinel.checks.job.node_watch import NodeWatch
from sentinel.checks.job.recall import RecalledMemories, is_any_in_queue, recall_memories
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.shared_nodes import add_ended_runs, list_shared_findings
from sentinel.checks.job.succession import learn_delays
from sentinel.checks.trainings import explain_failure
from sentinel.checks.turns import take_turns
from sentinel.checks.wishes import list_refusals
from sentinel.core.clock import get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.core.guidance import Guidance, look
from sentinel.core.letters import Letter
from sentinel.core.model import Coverage, Finding, Report, Sample, Status
from sentinel.core.ports import Context
from sentinel.core.run_ledger import LedgerRow
from sentinel.core.turns import interleave
from sentinel.slurm.job_index import QueuedJobs

MAX_TRAININGS = 5000  # trainings that one check watches

MAX_REMEMBERED_JOBS = 20_000  # jobs that are remembered, of all trainings together


class JobsByTraining(Struct, frozen=True):
    """The jobs of each training in the queue, and the trainings that are too many."""

    jobs: Mapping[str, Sequence[Job]]  # Jobs in the queue, by subject.
    left_out: tuple[str, ...] = ()  # Trainings that are too many.


class TrainingsRound:
    """One run of a check on many trainings. `jobs` is the whole queue."""

    def __init__(
        self,
        settings: JobSettings,
        ctx: Context,
        jobs: QueuedJobs,
        users: Collection[str] | None,
    ) -> None:
        self._settings, self._ctx, self._jobs, self._users = settings, ctx, jobs, users
        self._doubts: Mapping[str, str] = {}
        self._before = load_memory({} if ctx.one_shot else ctx.memory, TrainingsMemory)

    def make_report(self, around: JobRound, mine: Sequence[Job]) -> Report:
        """A finding for each training that is there or whose end is still told. If there is none,
        one finding about the pattern that finds them."""
        found = self._group_jobs(mine)
        again = self._update_memories(found.jobs, around.window)
        self._doubts = again.doubts
        memories = self._learn_delays(again.memories, found.jobs)
        ended = add_ended_runs(
            self._before.ended, {s: one.gone for s, one in memories.items()}, self._ctx.now
        )
        files = around.open_files(self._before.stuck)
        late: list[str] = []
        seen: dict[str, TrainingResult] = {}
        for subject in self._order_by_turns(memories, found.jobs):
            late += [subject] if files.seconds_left <= 0 else []
            jobs = found.jobs.get(subject, ())
            seen[subject] = self._look_at_training(
                around, subject, jobs, memories[subject], files, ended
            )
        kept = {s: one.memory for s, one in seen.items() if self._must_be_kept(one, around.window)}
        after = TrainingsMemory(
            trainings=kept,
            delays=self._merge_delays(seen, kept),
            ever=self._before.ever or bool(seen),
            stuck=files.hanging_by_path,
            swept=self._before.swept if self._before.swept and not again.swept else self._ctx.now,
            ended=ended,
        )
        findings = [one.finding for one in seen.values()] or self._report_never_matched()
        findings += self._report_left_out(found.left_out)
        findings += list_shared_findings(ended)
        findings += NodeWatch(self._settings, self._ctx).list_findings(
            {subject: found.jobs.get(subject, ()) for subject in seen}
        )
        wishes = tuple(wish for one in seen.values() for wish in one.wishes)
        one_shot = self._ctx.one_shot
        return Report(
            findings=tuple(findings),
            coverage=_make_coverage(seen, found.left_out),
            requests=() if one_shot else wishes,
            samples=self._count_samples(findings),
            letters=() if one_shot else self._list_refusals(mine),
            watched_jobs=tuple(job.job_id for job in mine),
            memory=None if one_shot else dump_memory(after),
            ledger=() if one_shot else self._list_ledger_rows(seen),
        )

    def _list_ledger_rows(self, seen: Mapping[str, TrainingResult]) -> tuple[LedgerRow, ...]:
        rows = (
            list_ledger_rows(self._ctx, subject, self._get_memory(subject), one.memory)
            for subject, one in seen.items()
        )
        return tuple(row for several in rows for row in several)

    def _list_refusals(self, mine: Sequence[Job]) -> tuple[Letter, ...]:
        subject_of = self._settings.subject_of
        return list_refusals(mine, lambda job: subject_of(job.user, job.name))

    def _order_by_turns(
        self, memories: Mapping[str, Memory], jobs: Mapping[str, Sequence[Job]]
    ) -> Iterator[str]:
        """The trainings, with users taking turns. Those that lacked time in the last run come
        first."""

        def owner_of(subject: str) -> str:
            mine, memory = jobs.get(subject, ()), memories[subject]
            users = (*(job.user for job in mine), *(one.user for one in memory.seen))
            return next(iter((*users, *(one.seen.user for one in memory.gone))), "")

        late = [subject for subject in self._before.late if subject in memories]
        return take_turns(dict.fromkeys([*late, *memories]), owner_of)

    def _group_jobs(self, mine: Iterable[Job]) -> JobsByTraining:
        """The jobs of each training. If there are too many, known trainings and large ones come
        first, and each user gets the same number."""
        found: dict[str, list[Job]] = {}
        for job in mine:
            found.setdefault(self._settings.subject_of(job.user, job.name), []).append(job)
        if len(found) <= MAX_TRAININGS:
            return JobsByTraining(found)
        known = self._before.trainings
        sizes = {s: max(job.node_count for job in jobs) for s, jobs in found.items()}
        ordered = sorted(found, key=lambda s: (s not in known, -sizes[s]))
        first = interleave(ordered, lambda s: found[s][0].user)
        return JobsByTraining(
            {s: found[s] for s in first[:MAX_TRAININGS]}, tuple(first[MAX_TRAININGS:])
        )

    def _update_memories(
        self, found: Mapping[str, Sequence[Job]], window: float
    ) -> RecalledMemories:
        before = self._before.trainings
        subjects = [*dict.fromkeys([*found, *before])][: 2 * MAX_TRAININGS]
        rows = min(MAX_JOBS, max(2, MAX_REMEMBERED_JOBS // max(1, len(subjects))))
        now = self._ctx.now
        memories = {
            subject: update_memory(
                self._get_memory(subject),
                found.get(subject, ()),
                now,
                window,
                elsewhere=self._jobs.job_ids,
                rows=rows,
            )
            for subject in subjects
        }
        memories = {
            s: with_held_gpus(memory, found.get(s, ()), self._ctx) for s, memory in memories.items()
        }
        known = {s: memory for s, memory in memories.items() if memory.seen or memory.gone}
        alive = [subject for subject, jobs in found.items() if is_any_in_queue(jobs)]
        first = not (known or self._before.ever or self._settings.has_size_limit)
        swept = None if self._ctx.one_shot else self._before.swept
        return recall_memories(
            known, alive, self._settings, self._users, self._ctx, first=first, swept=swept
        )

    def _get_memory(self, subject: str) -> Memory:
        before = self._before
        anew = Memory(delays=before.delays.get(subject, {}))
        return before.trainings.get(subject, anew)

    def _learn_delays(
        self, memories: Mapping[str, Memory], jobs: Mapping[str, Sequence[Job]]
    ) -> dict[str, Memory]:
        """The memories, with the delays until the jobs that are new."""
        told, host = self._ctx.told, SubmitHosts(self._ctx).find_submit_host
        return {
            s: learn_delays(
                self._get_memory(s),
                memory,
                jobs.get(s, ()),
                self._ctx.now,
                told=told.get(s),
                host=host,
            )
            for s, memory in memories.items()
        }

    def _merge_delays(
        self, seen: Mapping[str, TrainingResult], kept: Container[str]
    ) -> dict[str, dict[str, tuple[SubmitDelay, ...]]]:
        """The delays of trainings that are no longer reported, newest last."""
        now = {s: one.memory.delays for s, one in seen.items() if one.memory.delays}
        every = [(s, d) for s, d in {**self._before.delays, **now}.items() if s not in kept]
        return dict(every[-MAX_TRAININGS:])

    def _look_at_training(
        self,
        around: JobRound,
        subject: str,
        mine: Sequence[Job],
        memory: Memory,
        files: JobFiles,
        ended: Sequence[EndedRun],
    ) -> TrainingResult:
        view = around.build_view(subject, mine, memory, many=True, ended=ended)
        if doubt := self._doubts.get(subject):
            return TrainingResult(
                make_unknown_finding(self._settings, view, doubt), (), memory.without_stuck()
            )
        try:
            seen = around.judge_view(view, files)
        except Exception as error:
            why = explain_failure(subject, error)
            seen = TrainingResult(make_unknown_finding(self._settings, view, why), (), memory)
        return TrainingResult(seen.finding, seen.wishes, seen.memory.without_stuck())

    def _must_be_kept(self, seen: TrainingResult, window: float) -> bool:
        """Whether a gone job must be kept: a good end while it may count as a restart, a bad end
        while it is reported."""
        if seen.memory.seen or not seen.memory.gone:
            return bool(seen.memory.seen)
        good = seen.finding.status is Status.OK
        limit = window if good else float(self._settings.forget_after)
        return get_elapsed_s(seen.memory.gone[0].at, self._ctx.now) < limit

    def _report_never_matched(self) -> list[Finding]:
        """Report that no job has ever matched. The name or pattern waits for its first job, or has
        a mistake. Nothing has died, so nobody is paged."""
        subject = self._settings.subject
        if subject and (doubt := self._doubts.get(subject)):
            return [Finding(subject=subject, status=Status.UNKNOWN, summary=doubt)]
        if not subject or self._before.ever:
            return []
        return [
            Finding(
                subject=subject,
                status=Status.UNKNOWN,
                summary="waits for its first job: no job that fits has been seen yet",
                guidance=Guidance(
                    impact="No training is watched by it until a job fits.",
                    todo="Where such a job runs already, compare its name, user and partition with"
                    " the check: the pattern has to fit the whole name.",
                ),
                commands=(look("squeue -o '%i %j %u %P %T' | cat -v"),),
            )
        ]

    def _report_left_out(self, left_out: Sequence[str]) -> list[Finding]:
        if not left_out:
            return []
        text = (
            f"{len(left_out)} trainings more than the {MAX_TRAININGS} that one check watches are not looked at;"
            " narrow it down by `min_gpus`, `partition` or `users`"
        )
        return [Finding(subject=self._settings.subject, status=Status.UNKNOWN, summary=text)]

    def _count_samples(self, findings: Sequence[Finding]) -> tuple[Sample, ...]:
        """Samples of all trainings together, because a history for each would be most of the state."""
        subject = self._settings.subject or self._ctx.name
        return tuple(
            Sample(subject, name, float(sum(int(f.values.get(name) or 0) for f in findings)))
            for name in ("running", "queued")
        )


def _make_coverage(seen: Mapping[str, TrainingResult], left_out: Sequence[str]) -> Coverage:
    unseen = [s for s, one in seen.items() if one.finding.status is Status.UNKNOWN]
    return Coverage(
        of="trainings",
        meant=len(seen) + len(left_out),
        unseen=(*unseen, *left_out),
        excused="" if seen or left_out else "no such job is in the queue",
    )
