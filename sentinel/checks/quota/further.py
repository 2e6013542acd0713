"""What is asked beyond statfs: quotas, targets, trees, a write. Each subject has its finding."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.du.settings import Du
from sentinel.checks.fs import forecast
from sentinel.checks.fs.check import ASKED, looked, lost_of
from sentinel.checks.fs.forecast import Wishes as Future
from sentinel.checks.fs.limits import Limits, completed
from sentinel.checks.fs.verdict import KEPT, LARGEST, Rules, Sight, finding, measured, remembered
from sentinel.checks.quota import collect
from sentinel.checks.quota.judge import GRACE, quota_finding, targets_finding
from sentinel.checks.quota.tools.quota import Quota, Unexpected
from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.core.model import Finding, Report, Sample, Status, covered
from sentinel.core.mounts import LOCAL, Mount
from sentinel.core.recall import recalled
from sentinel.core.text import visible

if TYPE_CHECKING:
    from sentinel.core.ports import Context

MEMORY = "stuck"
"""The key below which children that hang are remembered, by the subject they were asked about."""


class Wishes(Struct, frozen=True, kw_only=True):
    """What is asked: `measure` is a tool, or `auto`, `quota`, `statfs`, `command` or `du`; `grace` in
    seconds, below which what is left of a quota's is critical."""

    measure: str = "auto"
    warn: Limits = Limits()
    crit: Limits = Limits()
    grace: float = GRACE
    quotas: Sequence[str] = ()
    command: Sequence[str] = ()
    pattern: re.Pattern[str] | None = None
    du: Du = Du()
    write_probe: bool = False


class Asked(Struct, frozen=True, kw_only=True):
    """Further findings, which children hang, the findings' subjects by path, and what trees consist of."""

    findings: tuple[Finding, ...]
    parts: tuple[Sample, ...] = ()
    subjects: Mapping[str, Sequence[str]]
    memory: Mapping[str, Any]


def report(wishes: Wishes, paths: Sequence[str], future: Future, ctx: Context) -> Report:
    """The report of a check that asks nothing of the file system but this. A path that does not
    answer is unknown, and what was asked of it before is unseen: its alerts stay."""
    deadline = time.monotonic() + 0.9 * ctx.limit
    seen, sights = looked(paths, ctx)
    plain = Rules(warn=Limits(), crit=Limits(), mounted=None, read_only=Status.OK)
    there = [s for s in sights if measured(s, seen[s.path], plain)]
    dumb = [s for s in sights if s not in there]
    found = asked(wishes, there, ctx, deadline)
    findings, made = found.findings, dict[str, Any]()
    if future.any:
        before = ctx.memory.get(forecast.MEMORY, {})
        findings, made = forecast.foreseen(findings, future, ctx.history, before, ctx.now)
    blind = (
        Finding(subject=f.subject, status=Status.UNKNOWN, summary=f"cannot tell: {f.summary}")
        for f in (finding(s, seen[s.path], plain) for s in dumb)
    )
    lost = lost_of(sights, there, ctx.memory)
    unseen = [
        *(s.path for s in dumb),
        *(subject for subjects in lost.values() for subject in subjects),
    ]
    return Report(
        findings=(*blind, *findings),
        coverage=covered("paths", [*(s.path for s in there), *unseen], [s.path for s in there]),
        samples=(
            *(sample for f in findings for sample in f.samples(KEPT)),
            *_sizes(findings),
            *found.parts,
        ),
        memory={
            **{visible(s.path): to_builtins(remembered(s, seen[s.path])) for s in sights},
            MEMORY: found.memory,
            ASKED: {**found.subjects, **lost},
            forecast.MEMORY: made,
        },
    )


def asked(fs: Wishes, sights: Sequence[Sight], ctx: Context, deadline: float) -> Asked:
    """Ask about every path that answered; `deadline` by time.monotonic."""
    asker = _Asker(fs, ctx, deadline)
    found: dict[str, Finding] = {}
    subjects: dict[str, list[str]] = {}
    for sight in sights:
        if sight.mount is not None and sight.answer is not None and sight.answer.usage:
            for finding in asker.about(sight, sight.mount):
                subjects.setdefault(visible(sight.path), []).append(finding.subject)
                before = found.get(finding.subject)  # named twice: the worse one is told
                if before is None or before.status.rank < finding.status.rank:
                    found[finding.subject] = finding
    return Asked(
        findings=tuple(found.values()),
        parts=tuple(asker.parts),
        subjects=subjects,
        memory=to_builtins(asker.hanging.children),
    )


class _Asker:
    """One run: what is left of its time, and what hangs."""

    def __init__(self, fs: Wishes, ctx: Context, deadline: float) -> None:
        self._fs, self._ctx, self._deadline = fs, ctx, deadline
        self._shares = completed(replace(fs.warn, free=None), replace(fs.crit, free=None))
        # So many bytes free are meant of a file system, not of a quota that nobody asked about.
        asked = fs.measure != "auto"
        self._warn, self._crit = completed(fs.warn, fs.crit) if asked else self._shares
        self._now = ctx.now.wall / 1e6
        before = recalled(ctx.memory.get(MEMORY), dict[str, proc.Stuck])
        self.hanging, self.parts = proc.Hanging(before), list[Sample]()

    def about(self, sight: Sight, mount: Mount) -> Iterator[Finding]:
        fs, path = self._fs, sight.path
        if fs.measure == "du":
            yield from self._one(f"{path} tree", lambda: [self._tree(sight, mount)])
        elif fs.measure == "command":
            yield from self._one(f"{path} command", lambda: self._command(path))
        else:
            yield from self._tool(sight, mount)
        if fs.write_probe:
            yield from self._one(f"{path} write", lambda: [self._write(sight)])

    def _tool(self, sight: Sight, mount: Mount) -> Iterator[Finding]:
        path, lenient = sight.path, self._fs.measure == "auto"
        try:
            tool = collect.tool_for(self._fs.measure, mount)
        except CannotTell as error:
            yield _blind(f"{path} quota", error)
            return
        if not tool:
            return
        for kind, name in self._owners(tool):
            subject = f"{path} {kind}:{name}" if name else f"{path} {kind}"
            ask = self._quotas(tool, sight, mount, kind, name)
            yield from self._one(subject, ask, lenient=lenient)
        if tool in collect.TARGETS:
            yield from self._one(
                f"{path} targets", lambda: [self._targets(tool, sight, mount)], lenient=lenient
            )

    def _owners(self, tool: str) -> list[tuple[str, str]]:
        """What is configured, or what such file systems have: people, or the tree itself."""
        trees = {"ceph": "directory", "zfs": "dataset", "btrfs": "qgroup"}
        given = self._fs.quotas or [trees.get(tool, "user")]
        pairs = [text.partition(":") for text in given]
        return [(kind, name) for kind, _, name in pairs]

    def _quotas(
        self, tool: str, sight: Sight, mount: Mount, kind: str, name: str
    ) -> Callable[[], list[Finding]]:
        def ask() -> list[Finding]:
            question = collect.Question(
                path=_real(sight),
                mount=mount,
                kind=kind,
                name=name,
                limit=self._left(),
                now=self._now,
            )
            found = collect.quotas(tool, question)
            if not found:
                return [_none(sight.path, f"{kind}:{name}" if name else kind)]
            return [self._quota(sight.path, quota) for quota in found]

        return ask

    def _quota(self, path: str, quota: Quota) -> Finding:
        return quota_finding(path, quota, self._warn, self._crit, self._now, self._fs.grace)

    def _targets(self, tool: str, sight: Sight, mount: Mount) -> Finding:
        found = collect.targets(tool, mount.point, self._left)
        return targets_finding(sight.path, found, *self._shares)

    def _tree(self, sight: Sight, mount: Mount) -> Finding:
        from sentinel.checks.du import tree as walk

        fs = self._fs
        tree = walk.walked(_real(sight), fs.du, mount.type in LOCAL, self._left())
        if tree.stuck:
            left = proc.left_behind(tree.stuck)
            self.hanging.keep(visible(f"{sight.path} tree"), left)
        found = walk.finding(sight.path, tree, fs.du, self._warn, self._crit)
        self.parts += walk.parts(found.subject, tree)
        return found

    def _command(self, path: str) -> list[Finding]:
        from sentinel.checks.quota.tools import command

        argv = [word.replace("{path}", path) for word in self._fs.command]
        text = collect.said(argv, self._left())
        pattern = self._fs.pattern
        found = command.from_text(text, pattern) if pattern else command.from_json(text)
        unread = command.missing_rows(text, self._names_before(path), found)
        why = CannotTell("its row does not fit `pattern` any more")
        return [
            *(self._quota(path, quota) for quota in found),
            *(_blind(f"{path} command:{name}", why) for name in unread),
        ]

    def _names_before(self, path: str) -> list[str]:
        """Whose quotas the command told in the run before."""
        prefix = f"{visible(path)} command:"
        subjects = self._ctx.memory.get(ASKED, {}).get(visible(path), [])
        return [one.removeprefix(prefix) for one in subjects if one.startswith(prefix)]

    def _write(self, sight: Sight) -> Finding:
        from sentinel.checks.fs import write_probe

        subject = visible(f"{sight.path} write")
        before = [v for _, v in self._ctx.history(subject, "write_seconds", write_probe.SPAN)]
        try:
            result = write_probe.written(sight.path, min(self._left(), self._ctx.limit / 2))
        except proc.TimedOut as late:
            self.hanging.keep(subject, late.stuck)
            text = "hangs: a small file could not be written, synced and read back"
            return Finding(subject=subject, status=Status.CRITICAL, summary=text)
        return write_probe.finding(sight.path, result, before)

    def _one(
        self, subject: str, ask: Callable[[], list[Finding]], *, lenient: bool = False
    ) -> Iterator[Finding]:
        """What was found, or why nothing could be. A child that hangs is asked nothing more.

        `lenient`: nobody asked for it, so a tool that is not installed is no trouble.
        """
        try:
            with self.hanging.alone(visible(subject)):
                found = ask()
            yield from found
        except proc.Hangs as error:
            yield from self._all_blind(subject, CannotTell(f"an earlier question {error}"))
        except CannotTell as error:
            if not (lenient and isinstance(error, CannotAsk)):
                yield from self._all_blind(subject, error)
        except Unexpected as error:
            yield from self._all_blind(subject, error)

    def _all_blind(self, subject: str, error: Exception) -> Iterator[Finding]:
        """The question, and each row that its answer had in the run before: a row that nobody can read
        now is not gone."""
        yield _blind(subject, error)
        for before in self._ctx.memory.get(ASKED, {}).values():
            for one in before:
                if one.startswith(f"{visible(subject)}:"):
                    yield _blind(one, error)

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left < 0.1:
            raise CannotTell("no time was left to ask; give the check a longer timeout")
        return left


def _sizes(findings: Sequence[Finding]) -> list[Sample]:
    """What the largest of them hold."""
    seen = [f for f in findings if f.values.get("complete", True) and not f.values.get("unread")]
    sizes = [sample for f in seen for sample in f.samples(("used_bytes",))]
    return nlargest(LARGEST, sizes, key=lambda sample: sample.value)


def _blind(subject: str, error: Exception) -> Finding:
    return Finding(subject=visible(subject), status=Status.UNKNOWN, summary=f"cannot tell: {error}")


def _none(path: str, title: str) -> Finding:
    subject = visible(f"{path} {title}")
    return Finding(subject=subject, status=Status.OK, summary="has no quota here")


def _real(sight: Sight) -> str:
    return sight.answer.real if sight.answer else sight.path
