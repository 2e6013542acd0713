"""One run of the check: every running job's log looked at, remembered, judged and told."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from shlex import quote
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from sentinel.actions.job_requests import excluding, target
from sentinel.checks.log import slowdown, words
from sentinel.checks.log.ask import Beat, ask_nodes, ask_recorder, beat_now, beat_says, peers
from sentinel.checks.log.cadence import Learned
from sentinel.checks.log.file_offset import Place
from sentinel.checks.log.files import Files
from sentinel.checks.log.gather import MOST_FILES, Source, earlier, nodes_of, sight
from sentinel.checks.log.judge import Rules, Verdict, judge
from sentinel.checks.log.memory import MOST_PLACES, MOST_SIZES, Memory
from sentinel.checks.log.progress import Seen, Sight, begun, remembered
from sentinel.checks.log.requests import Hang, Means, Wish, culprit, due, wish
from sentinel.checks.log.secondary import Wishes, asides
from sentinel.checks.log.settings import Looks
from sentinel.checks.log.suspicion import (
    PART,
    Suspicion,
    closer_look,
    due_in,
    may_look,
    noticed,
    quiet,
    weighed_early,
)
from sentinel.checks.log.witness import Testimony, together
from sentinel.checks.log.words import Watched
from sentinel.checks.users import me
from sentinel.core.checkpoints import Where
from sentinel.core.clock import shifted
from sentinel.core.cluster import Job, Submission
from sentinel.core.errors import CannotTell
from sentinel.core.model import Coverage, Finding, Report, Status, covered
from sentinel.core.ports import Context
from sentinel.core.text import shortened, visible
from sentinel.slurm.job_states import leads
from sentinel.slurm.submission import shell
from sentinel.user_files.whose import Whose

LOOKUP = 5.0  # seconds for one question to a file system
RISK = 10.0  # seconds for all questions about checkpoints
ABSENT = f"not there, or beyond the {MOST_FILES} files of a job that are looked at"
SHARE = 0.7  # of the run's limit that looking at files may take
SOON = 5.0  # seconds at least between two runs of which the second looks closer


class Plan(Struct, frozen=True, kw_only=True):
    """The check's settings in the form that a run needs."""

    subject: str
    source: Source
    rules: Rules
    wishes: Wishes
    heartbeat: str = ""
    ask_nodes: bool = True
    looks: Looks = "off"
    trial: float = 0.0
    checkpoints: Where | None = None
    learn_from: Sequence[str] = ()
    means: Means = Means()


class Pass:
    """One run. `memory` is what was remembered before; the report carries what is now."""

    def __init__(self, ctx: Context, plan: Plan, memory: Memory) -> None:
        self._ctx, self._plan, self._memory = ctx, plan, memory
        self._deadline = time.monotonic() + ctx.limit * SHARE
        self._files = Files(min(LOOKUP, ctx.limit / 4), ctx.limit * SHARE, memory.stuck)
        self._learned = dict(memory.learned)
        self._trial = memory.trying(ctx.now)
        self._early = memory.trying_early(ctx.now, plan.trial)
        self._suspicions: dict[str, Suspicion] = {}
        self._wishes = replace(plan.wishes, silent=self._trial.silent(ctx.now))
        self._beats: dict[str, Beat] = {}
        self._again = inf  # of time.monotonic

    def rest(self, finding: Finding) -> Report:
        """No job runs: what was learned stays, and so do the places in logs that go on."""
        rest = replace(
            self._memory,
            logs={},
            beats={},
            told=(),
            places=self._places({}),
            trial=self._trial,
            suspicions={},
            early=self._early,
        )
        none = Coverage(of="logs", meant=0, excused="no such job is running")
        return Report(findings=(finding,), coverage=none, memory=self._kept(rest))

    def report(self, jobs: Sequence[Job | None]) -> Report:
        """All of them: the worst speaks for the subject, and for each further topic."""
        seen = [self._watched(job) for job in jobs]
        findings, told = words.findings(self._plan.subject, seen, self._memory.told, self._files)
        logs = {_key(one.sight.job): one.seen for one in seen}
        wishes = [self._wish(one) for one in seen]
        for made in wishes:
            logs[made.job] = replace(logs[made.job], asked=made.asked)
            if made.early and made.requests:
                doubt = self._suspicions[made.job]
                self._suspicions[made.job] = replace(doubt, asked=True)
        memory = Memory(
            logs=logs,
            stuck=self._files.stuck,
            learned=self._learned_to_keep(jobs),
            places=self._places(logs),
            beats=self._beats,
            told=told,
            trial=self._trial,
            suspicions=self._suspicions,
            early=self._early,
        )
        return Report(
            findings=findings,
            coverage=_coverage(seen),
            requests=tuple(request for made in wishes for request in made.requests),
            samples=words.samples(self._plan.subject, seen),
            memory=self._kept(memory),
            again=max(1.0, self._again - time.monotonic()) if self._again < inf else None,
        )

    def _watched(self, job: Job | None) -> Watched:
        before = self._memory.logs.get(_key(job)) or self._handed_down(job)
        look = sight(self._ctx, job, before, self._plan.source, self._files)
        before = begun(look, before)
        rules, size = self._rules(look), _size(job)
        learned = self._learned.get(size) or self._taught(look)
        seen, learned = remembered(look, before, learned, rules.by_number, self._ctx.due)
        self._learned = {**{k: v for k, v in self._learned.items() if k != size}, size: learned}
        verdict = judge(look, seen, rules, learned)
        doubt = self._suspected(look, seen, before, learned)
        verdict = self._early_verdict(verdict, doubt, seen)
        nodes = nodes_of(job) if verdict.hung or seen.troubles else ()
        testimony = self._testimony(job, seen, verdict.limit.seconds if verdict.limit else 0)
        if verdict.early:
            testimony = Testimony(nodes=doubt.nodes, confirms=True)
        elif verdict.hung:
            closer = Testimony(nodes=doubt.nodes, confirms=bool(doubt.told))
            testimony = together(self._recorder_says(look, verdict.quiet), testimony)
            testimony = together(testimony, closer)
            testimony = together(testimony, self._nodes_say(job, nodes, seen))
        names = peers(self._files, sorted({t.peer for t in seen.troubles} - {""}), nodes)
        one = Watched(
            sight=look,
            seen=seen,
            verdict=words.weighed(verdict, testimony),
            testimony=testimony if verdict.hung else Testimony(),
            asides=tuple(asides(seen, learned, self._wishes, names)),
            peers=names,
            at_risk=self._at_risk(look, verdict),
            slower="; ".join(filter(None, (self._slower(seen, learned), doubt.behind))),
            asked_early=doubt.asked,
        )
        return replace(one, onward=self._onward(one, doubt))

    def _onward(self, one: Watched, doubt: Suspicion) -> tuple[str, ...]:
        """What continues without the culprit; how it was submitted is asked once a hang."""
        job, node = one.sight.job, culprit(one)
        if not (job and node and one.verdict.hung and one.verdict.status is Status.CRITICAL):
            return ()
        if doubt.how is None:
            with suppress(CannotTell):
                doubt = replace(doubt, how=self._ctx.slurm.submission(job.id))
            self._suspicions[_key(job)] = doubt
        waiting = self._waiting(job)
        return onward(job, node, doubt.how, waiting, doubt.fault if node in doubt.nodes else "")

    def _taught(self, look: Sight) -> Learned:
        """What logs of earlier jobs show, before anything was learned; asked once."""
        learned, plan = Learned(), self._plan
        whose = Whose(literal=True)  # of whichever user; only how long things took is taken over
        texts = earlier(plan.source, plan.learn_from, look.looks, self._files, whose)
        reader = plan.source.reader
        for path, text, reads, whole in texts:
            with suppress(CannotTell):
                assert look.job
                learned = reader.lesson(path, text, reads, look.job, learned, whole)
        return learned

    def _suspected(self, look: Sight, seen: Seen, before: Seen, learned: Learned) -> Suspicion:
        """A closer look, where the log is quiet for unusually long; nobody is woken by it. The next one
        does not wait for the next run in its time: a hang has to be told within two minutes."""
        ctx, job, key = self._ctx, look.job, _key(look.job)
        doubt = self._suspicions[key] = self._memory.suspicions.get(key, Suspicion())
        if job is None or look.error or ctx.one_shot or not look.looks:
            return doubt
        doubt = noticed(doubt, look, seen, before.looked)
        remote, left = ctx.remote, self._deadline - time.monotonic()
        if left >= PART * ctx.limit and remote and may_look(self._plan.looks, job, remote):
            began, before_it = time.monotonic(), doubt
            doubt = closer_look(
                doubt,
                look,
                seen,
                learned,
                remote=remote,
                nodes=nodes_of(job),
                again=lambda: sight(ctx, job, seen, self._plan.source, self._files),
                limit=PART * ctx.limit,
            )
            due = due_in(doubt, seen, learned, look.at)
            if due > 0 or doubt is not before_it:  # who could not look now cannot in five seconds
                self._again = min(self._again, max(time.monotonic() + SOON, began + due))
        self._suspicions[key] = doubt
        return doubt

    def _early_verdict(self, verdict: Verdict, doubt: Suspicion, seen: Seen) -> Verdict:
        """While it is tried out it is only noted, and whether the limit said so too; what the limit
        tells has its words already."""
        now = self._ctx.now
        if doubt.told and self._early.silent(now):
            moved = max((mark.since for mark in seen.marks.values()), key=lambda at: at.wall)
            also = "the limit told it too" if verdict.hung else "the limit did not"
            self._early = self._early.noted(moved, f"{doubt.told} ({also})")
            if not verdict.hung:
                aside = self._early.aside(doubt.told, now)
                return replace(verdict, summary=f"{verdict.summary}; {aside}")
        return weighed_early(verdict, doubt, quiet(doubt, seen, now))

    def _slower(self, seen: Seen, learned: Learned) -> str:
        """While it is tried out it is only noted, then told once for all that it would have been."""
        pace, now = learned.pace, self._ctx.now
        told = slowdown.words(pace, now, seen.nodes) if pace.job == seen.key else ""
        if not self._trial.silent(now):
            tried = self._trial.words(now), self._early.words(now, "the closer look at nodes")
            return "; ".join(filter(None, (told, *tried)))
        self._trial = self._trial.noted(pace.since, told)
        return ""

    def _rules(self, look: Sight) -> Rules:
        """A log whose number was found out is judged by it."""
        found = bool(look.reading and look.reading.number)
        return replace(self._plan.rules, by_number=self._plan.rules.by_number or found)

    def _at_risk(self, look: Sight, verdict: Verdict) -> str:
        """Counted until it stood still: what a hung job does is no work."""
        where, left = self._plan.checkpoints, self._deadline - time.monotonic()
        if where is None or not verdict.hung:
            return ""
        from sentinel.checks.checkpoint.risk import work_at_risk

        return work_at_risk(
            where,
            self._ctx.now,
            max(0.0, look.age - verdict.quiet) if look.age < inf else None,
            user=look.job.user if look.job else "",
            limit=max(1.0, min(RISK, left)),
            ended=shifted(self._ctx.now, -verdict.quiet),
            stuck=self._files.stuck,
        )

    def _handed_down(self, job: Job | None) -> Seen | None:
        """For a job that is new here: how far its log was read when another one wrote it."""
        now, path = self._ctx.now, self._plan.source.path
        if job is None or not path or not self._memory.places:
            return None
        return Seen(
            path="", first=now, looked=now, grown=now, places=self._memory.places, started=-1
        )

    def _testimony(self, job: Job | None, seen: Seen, limit: float) -> Testimony:
        """The heartbeat is looked at each time: its age is only known from one look to the next."""
        if not self._plan.heartbeat:
            return Testimony()
        from sentinel.slurm.filename_patterns import fill_symbols, whose_path

        pattern, before = self._plan.heartbeat, self._memory.beats.get(_key(job))
        whose = whose_path(pattern, job)
        try:
            pattern = fill_symbols(pattern, job) if job else pattern
            beat = beat_now(self._files, pattern, whose, before, self._ctx.now)
        except CannotTell as error:
            return Testimony(words=str(error))
        if beat:
            self._beats[_key(job)] = beat
        return beat_says(beat, before is not None, self._ctx.now, limit)

    def _recorder_says(self, look: Sight, quiet: float) -> Testimony:
        left = self._deadline - time.monotonic()
        if not (self._plan.ask_nodes and look.job) or left < LOOKUP:
            return Testimony()
        return ask_recorder(look.file, look.job, quiet, self._ctx.now, LOOKUP / 2)

    def _nodes_say(self, job: Job | None, nodes: Sequence[str], seen: Seen) -> Testimony:
        remote, left = self._ctx.remote, self._deadline - time.monotonic()
        if not (self._plan.ask_nodes and remote and job and nodes) or left < 1:
            return Testimony()
        try:
            sluids = self._ctx.slurm.sluids()
        except CannotTell:
            sluids = {}
        return ask_nodes(remote, nodes, job, sluids, phase=seen.phase is not None, limit=left)

    def _wish(self, one: Watched) -> Wish:
        """Nothing for a one-shot: it changes nothing."""
        if self._ctx.one_shot or not self._plan.means.names or not due(one, self._ctx.now):
            asked = one.seen.asked if one.verdict.hung else None
            return Wish(job=_key(one.sight.job), asked=asked)
        tail, waiting = words.last_lines(one, self._files), self._waiting(one.sight.job)
        about = Hang(subject=self._plan.subject, tail=tail, waiting=waiting)
        return wish(one, self._plan.means, about, self._ctx.now)

    def _waiting(self, job: Job | None) -> tuple[Job, ...]:
        """What would start next: pending jobs of that name and user."""
        if job is None:
            return ()
        return tuple(
            other
            for other in self._ctx.slurm.jobs()
            if (other.name, other.user, other.state) == (job.name, job.user, "PENDING")
            and leads(other)
        )

    def _learned_to_keep(self, jobs: Sequence[Job | None]) -> dict[str, Learned]:
        """What is known of every size that runs, and of the newest other ones."""
        current = {_size(job) for job in jobs}
        others = [size for size in self._learned if size not in current][-MOST_SIZES:]
        return {s: one for s, one in self._learned.items() if s in current or s in others}

    def _places(self, logs: dict[str, Seen]) -> dict[str, Place]:
        """How far each file was read, the newest last, of this pass and of those before."""
        earlier = {**self._memory.places}
        for seen in (*self._memory.logs.values(), *logs.values()):
            for path, place in seen.places.items():
                earlier.pop(path, None)
                earlier[path] = place
        return dict(list(earlier.items())[-MOST_PLACES:])

    def _kept(self, memory: Memory) -> dict[str, Any] | None:
        return None if self._ctx.one_shot else to_builtins(memory)


def _coverage(watched: Sequence[Watched]) -> Coverage:
    """A log that could be looked at was seen, be it missing; of one file per node those that are
    there, since Slurm's own %N is the first node alone (sbatch(1))."""
    meant, seen, excused = list[str](), list[str](), ABSENT
    for one in watched:
        log, now = _key(one.sight.job) or one.sight.path, one.sight
        files = now.meant if len(now.meant) > 1 and not now.error else (log,)
        meant += files
        seen += () if now.error else now.looks if len(files) > 1 and now.looks else files
        excused = "" if now.error else excused
    return covered("logs", meant, seen, excused)


def _size(job: Job | None) -> str:
    """Under which what was learned is kept: on more nodes it is another training."""
    return str(job.node_count if job else 0)


def _key(job: Job | None) -> str:
    return job.job_id if job else ""


# How a training that hangs goes on without the node that holds it up: commands for people. Pure.
#
# Only where one node is the culprit. Nothing here starts a second training beside the first: what
# is submitted waits for the end of the job that hangs, and where a next one is queued none is
# submitted.


FORWARDED = 3
"""Waiting jobs that are shown: an alert has room for few commands."""
REASON = 160
"""Characters of a drain's reason."""

_ADMIN = "  # for an administrator; if you are none, send them this line"


def onward(
    job: Job, node: str, how: Submission | None, waiting: Sequence[Job], fault: str = ""
) -> tuple[str, ...]:
    """Commands in their order. `waiting`: jobs that go on after it; `fault`: what is wrong with the
    node itself, without which nobody is asked to drain it."""
    owner = "" if job.user == me() else f"  # as {visible(job.user)}"
    if waiting:
        lines = [
            " ".join(map(quote, excluding(target(j), j.exclude, node))) for j in waiting[:FORWARDED]
        ]
    else:
        again = shell(how, node, f"afterany:{job.id}") if how else ""
        lines = [again] if again.isprintable() and again else []
    if lines:
        lines = [f"{line}{owner}" for line in (*lines, f"scancel {target(job)}")]
    if fault:
        why = quote(shortened(visible(f"job {job.id} hung: {fault}"), REASON))
        lines.append(f"scontrol update NodeName={node} State=DRAIN Reason={why}{_ADMIN}")
    return tuple(lines)
