"""Questions about paths beyond statfs, and the report of a check that asks only these.

Each kind defines its questions in a subclass of `PathQuestions`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from sentinel import proc
from sentinel.checks.filesystems import forecast
from sentinel.checks.filesystems.forecast import ForecastSettings as Future
from sentinel.checks.filesystems.limits import SpaceLimits
from sentinel.checks.filesystems.observation import ASKED, look_at_paths, lost_of
from sentinel.checks.filesystems.verdict import (
    KEPT,
    LARGEST,
    PathObservation,
    VerdictSettings,
    is_measured,
    next_path_state,
    path_finding,
)
from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.core.model import Finding, Report, Sample, Status, covered
from sentinel.core.mounts import Mount
from sentinel.core.shown import SubjectCells
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import visible

if TYPE_CHECKING:
    from sentinel.core.ports import Context

MEMORY = "stuck"
"""The key below which children that hang are remembered, by the subject that they were asked
about."""


class PathReport(Struct, frozen=True, kw_only=True):
    """Further findings, children that hang, the subjects of the findings by path, and the parts of
    trees."""

    findings: tuple[Finding, ...]  # Further findings.
    parts: tuple[Sample, ...] = ()  # Sizes of the parts of each tree.
    subjects: Mapping[str, Sequence[str]]  # Subjects of the findings, by path.
    shown: Mapping[str, SubjectCells] = {}  # What a terminal shows beside them, by subject.
    memory: Mapping[str, Any]  # Child processes that hang.


def deadline_of(ctx: Context) -> float:
    """The time of time.monotonic until which a run may ask."""
    return time.monotonic() + 0.9 * ctx.limit


class PathQuestions:
    """The questions of one run, with its remaining time and hanging children. Subclasses define
    `ask_about`."""

    def __init__(self, ctx: Context, deadline: float) -> None:
        self.ctx, self._deadline = ctx, deadline
        before = decode_memory(ctx.memory.get(MEMORY), dict[str, proc.StuckProcess])
        self.hanging, self.parts = proc.HangingChildren(before), list[Sample]()
        self.shown: dict[str, SubjectCells] = {}

    def ask_about(self, sight: PathObservation, mount: Mount) -> Iterator[Finding]:
        """Ask about one path that has answered."""
        raise NotImplementedError

    def ask_one(
        self, subject: str, ask: Callable[[], list[Finding]], *, lenient: bool = False
    ) -> Iterator[Finding]:
        """The findings of one question, or one that says why there are none. A path with a hanging
        child is not asked again. `lenient`: the question was not configured, so a missing tool is
        no problem."""
        try:
            with self.hanging.start_alone(visible(subject)):
                found = ask()
            yield from found
        except proc.StillHanging as error:
            yield from self._all_blind(subject, CannotTell(f"an earlier question {error}"))
        except CannotTell as error:
            if not (lenient and isinstance(error, CannotAsk)):
                yield from self._all_blind(subject, error)

    def _all_blind(self, subject: str, error: Exception) -> Iterator[Finding]:
        """UNKNOWN findings about the question and about each row that its answer had in the last
        run of the check. A row that cannot be read now is not gone."""
        yield blind_finding(subject, error)
        for before in self.ctx.memory.get(ASKED, {}).values():
            for one in before:
                if one.startswith(f"{visible(subject)}:"):
                    yield blind_finding(one, error)

    def run_seconds_left(self) -> float:
        left = self._deadline - time.monotonic()
        if left < 0.1:
            raise CannotTell("no time was left to ask; give the check a longer timeout")
        return left


def report_questions(questions: PathQuestions, paths: Sequence[str], future: Future) -> Report:
    """The report of a check that asks only these questions. A path that does not answer is unknown.
    Its earlier subjects count as unseen, so their alerts stay."""
    ctx = questions.ctx
    seen, sights = look_at_paths(paths, ctx)
    plain = VerdictSettings(
        warn=SpaceLimits(), crit=SpaceLimits(), mounted=None, read_only=Status.OK
    )
    there = [s for s in sights if is_measured(s, seen[s.path], plain)]
    dumb = [s for s in sights if s not in there]
    found = ask_all(questions, there)
    findings, made = found.findings, dict[str, Any]()
    if future.is_wanted:
        before = ctx.memory.get(forecast.MEMORY, {})
        findings, made = forecast.forecast_findings(findings, future, ctx.history, before, ctx.now)
    unanswered = (
        Finding(subject=f.subject, status=Status.UNKNOWN, summary=f"cannot tell: {f.summary}")
        for f in (path_finding(s, seen[s.path], plain) for s in dumb)
    )
    lost = lost_of(sights, there, ctx.memory)
    unseen = [
        *(s.path for s in dumb),
        *(subject for subjects in lost.values() for subject in subjects),
    ]
    return Report(
        findings=(*unanswered, *findings),
        coverage=covered("paths", [*(s.path for s in there), *unseen], [s.path for s in there]),
        samples=(
            *(sample for f in findings for sample in f.samples(KEPT)),
            *_size_samples(findings),
            *found.parts,
        ),
        memory={
            **{visible(s.path): to_builtins(next_path_state(s, seen[s.path])) for s in sights},
            MEMORY: found.memory,
            ASKED: {**found.subjects, **lost},
            forecast.MEMORY: made,
        },
        shown=found.shown,
    )


def ask_all(questions: PathQuestions, sights: Sequence[PathObservation]) -> PathReport:
    """Ask about every path that answered."""
    found: dict[str, Finding] = {}
    subjects: dict[str, list[str]] = {}
    for sight in sights:
        if sight.mount is not None and sight.answer is not None and sight.answer.usage:
            for finding in questions.ask_about(sight, sight.mount):
                subjects.setdefault(visible(sight.path), []).append(finding.subject)
                # a subject that is named twice gets the worse finding
                before = found.get(finding.subject)
                if before is None or before.status.rank < finding.status.rank:
                    found[finding.subject] = finding
    return PathReport(
        findings=tuple(found.values()),
        parts=tuple(questions.parts),
        subjects=subjects,
        shown=questions.shown,
        memory=to_builtins(questions.hanging.children),
    )


def _size_samples(findings: Sequence[Finding]) -> list[Sample]:
    """Samples of the size of the largest ones."""
    seen = [f for f in findings if f.values.get("complete", True) and not f.values.get("unread")]
    sizes = [sample for f in seen for sample in f.samples(("used_bytes",))]
    return nlargest(LARGEST, sizes, key=lambda sample: sample.value)


def blind_finding(subject: str, error: Exception) -> Finding:
    return Finding(subject=visible(subject), status=Status.UNKNOWN, summary=f"cannot tell: {error}")


def real_path_of(sight: PathObservation) -> str:
    return sight.answer.real if sight.answer else sight.path
