"""Many trainings in one check: each is judged, told and forgotten by itself."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from msgspec import Struct

from sentinel.checks.job.files import Files
from sentinel.checks.job.judge import unknown
from sentinel.checks.job.look import Round, Seen
from sentinel.checks.job.memory import JOBS, Followed, Many, Memory, dump, load, noticed
from sentinel.checks.job.recall import Recalled, in_queue, recalled
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.succession import learned
from sentinel.core.clock import elapsed
from sentinel.core.errors import CannotTell
from sentinel.core.model import Coverage, Finding, Report, Sample, Status
from sentinel.core.ports import Context
from sentinel.slurm.model import Job

MOST = 5000  # trainings that one check watches
ROWS = 20_000  # jobs that are remembered, of all trainings together


class Found(Struct, frozen=True):
    """The jobs of each training in the queue, and the trainings that are too many."""

    jobs: Mapping[str, Sequence[Job]]
    left_out: tuple[str, ...] = ()


class Trainings:
    """One run of a check on many trainings, `jobs` being the whole queue."""

    def __init__(
        self,
        settings: JobSettings,
        ctx: Context,
        jobs: Sequence[Job],
        users: Collection[str] | None,
    ) -> None:
        self._settings, self._ctx, self._jobs, self._users = settings, ctx, jobs, users
        self._doubts: Mapping[str, str] = {}
        self._before = load({} if ctx.one_shot else ctx.memory, Many)

    def report(self, mine: Sequence[Job]) -> Report:
        """A finding for each training that is there or whose end is still told of; one about
        what they are found by where there is none."""
        around = Round(self._settings, self._ctx, self._jobs, mine)
        found = self._found(mine)
        again = self._noticed(found.jobs, around.window)
        self._doubts = again.doubts
        memories = {
            s: learned(self._of(s), memory, found.jobs.get(s, ()), self._ctx.now)
            for s, memory in again.memories.items()
        }
        files = around.files(self._before.stuck)
        seen = {
            subject: self._look(around, subject, found.jobs.get(subject, ()), memory, files)
            for subject, memory in memories.items()
        }
        kept = {s: one.memory for s, one in seen.items() if self._stays(one, around.window)}
        after = Many(
            trainings=kept,
            followed=self._followed(seen, kept),
            ever=self._before.ever or bool(seen),
            stuck=files.stuck,
        )
        findings = [one.finding for one in seen.values()] or self._none(around, files)
        findings += self._left_out(found.left_out)
        wishes = tuple(wish for one in seen.values() for wish in one.wishes)
        one_shot = self._ctx.one_shot
        return Report(
            findings=tuple(findings),
            coverage=_coverage(seen, found.left_out),
            requests=() if one_shot else wishes,
            samples=self._samples(findings),
            memory=None if one_shot else dump(after),
        )

    def _found(self, mine: Iterable[Job]) -> Found:
        """What is known already, or else is largest, goes first where there is too much."""
        found: dict[str, list[Job]] = {}
        for job in mine:
            found.setdefault(self._settings.subject_of(job.user, job.name), []).append(job)
        if len(found) <= MOST:
            return Found(found)
        known = self._before.trainings
        first = sorted(found, key=lambda s: (s not in known, -max(j.node_count for j in found[s])))
        return Found({s: found[s] for s in first[:MOST]}, tuple(first[MOST:]))

    def _noticed(self, found: Mapping[str, Sequence[Job]], window: float) -> Recalled:
        before = self._before.trainings
        there = {job.job_id for job in self._jobs}
        subjects = [*dict.fromkeys([*found, *before])][: 2 * MOST]
        rows = min(JOBS, max(2, ROWS // max(1, len(subjects))))
        now = self._ctx.now
        memories = {
            subject: noticed(
                self._of(subject),
                found.get(subject, ()),
                now,
                window,
                elsewhere=there,
                rows=rows,
            )
            for subject in subjects
        }
        known = {s: memory for s, memory in memories.items() if memory.seen or memory.gone}
        alive = [subject for subject, jobs in found.items() if in_queue(jobs)]
        first = not (known or self._before.ever or self._settings.sized)
        return recalled(known, alive, self._settings, self._users, self._ctx, first=first)

    def _of(self, subject: str) -> Memory:
        before = self._before
        anew = Memory(followed=before.followed.get(subject, {}))
        return before.trainings.get(subject, anew)

    def _followed(
        self, seen: Mapping[str, Seen], kept: Container[str]
    ) -> dict[str, dict[str, Followed]]:
        """Of those that are not spoken of any more, the newest last."""
        told = {s: one.memory.followed for s, one in seen.items() if one.memory.followed}
        every = [(s, f) for s, f in {**self._before.followed, **told}.items() if s not in kept]
        return dict(every[-MOST:])

    def _look(
        self, around: Round, subject: str, mine: Sequence[Job], memory: Memory, files: Files
    ) -> Seen:
        view = around.view(subject, mine, memory, many=True)
        if doubt := self._doubts.get(subject):
            return Seen(unknown(self._settings, view, doubt), (), memory.without_stuck())
        try:
            seen = around.look(view, files)
        except CannotTell as error:
            seen = Seen(unknown(self._settings, view, str(error)), (), memory)
        return Seen(seen.finding, seen.wishes, seen.memory.without_stuck())

    def _stays(self, seen: Seen, window: float) -> bool:
        """A good end is remembered while it may count as a restart, a bad one while it is told."""
        if seen.memory.seen or not seen.memory.gone:
            return bool(seen.memory.seen)
        good = seen.finding.status is Status.OK
        limit = window if good else float(self._settings.forget_after)
        return elapsed(seen.memory.gone[0].at, self._ctx.now) < limit

    def _none(self, around: Round, files: Files) -> list[Finding]:
        """A name or pattern that nothing has ever fitted may be a mistake; a size is none."""
        subject = self._settings.subject
        if subject and (doubt := self._doubts.get(subject)):
            return [Finding(subject=subject, status=Status.UNKNOWN, summary=doubt)]
        if not subject or self._before.ever:
            return []
        return [around.look(around.view(subject, (), Memory()), files).finding]

    def _left_out(self, left_out: Sequence[str]) -> list[Finding]:
        if not left_out:
            return []
        text = (
            f"{len(left_out)} trainings more than the {MOST} that one check watches are not looked at;"
            " narrow it down by `min_gpus`, `partition` or `users`"
        )
        return [Finding(subject=self._settings.subject, status=Status.UNKNOWN, summary=text)]

    def _samples(self, findings: Sequence[Finding]) -> tuple[Sample, ...]:
        """Of all together: a history of each would be most of the state."""
        subject = self._settings.subject or self._ctx.name
        return tuple(
            Sample(subject, name, float(sum(int(f.values.get(name) or 0) for f in findings)))
            for name in ("running", "queued")
        )


def _coverage(seen: Mapping[str, Seen], left_out: Sequence[str]) -> Coverage:
    unseen = [s for s, one in seen.items() if one.finding.status is Status.UNKNOWN]
    return Coverage(
        of="trainings",
        meant=len(seen) + len(left_out),
        unseen=(*unseen, *left_out),
        excused="" if seen or left_out else "no such job is in the queue",
    )
