"""The `fs` check: asks each path, judges what it says against limits and memory."""

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import to_builtins
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.fs.limits import Usage, completed, trusted
from sentinel.checks.fs.probe import Answer, probe, probe_all, real_path
from sentinel.checks.fs.settings import Settings
from sentinel.checks.fs.verdict import (
    KEPT,
    Rules,
    Seen,
    Sight,
    finding,
    measured,
    remembered,
    seen_at_all,
)
from sentinel.checks.quota.always import is_more_wanted
from sentinel.core.declared import FILESYSTEM, Panel
from sentinel.core.errors import CannotTell
from sentinel.core.model import Coverage, Finding, Report, Status, covered
from sentinel.core.mounts import Mounts, unescaped
from sentinel.core.ports import Context
from sentinel.core.recall import recalled
from sentinel.core.text import visible
from sentinel.proc.mounts import TABLE, mounts

LOOKUP = 5.0
"""Seconds for finding out who the members of a group are."""

SAME = 0.01
"""Share by which two answers of one file system may differ: XFS and ZFS count their inodes and
their size anew with what is free."""

ASKED = "asked"
"""The key below which further subjects are remembered, by path."""

FSTAB = "/etc/fstab"
MOST_AWAY = 32
"""Points of fstab that are not mounted whose real path is asked for; the others count as spelt."""


class Fs(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Space, inodes, hangs and lost mounts of file systems.

    paths: Absolute paths; unset, all file systems on this machine's own disks.
    warn: The limits of a warning.
    crit: The limits of what is critical.
    nodes: A host list or `all`: the paths as those nodes see them.
    job: In place of `nodes`, those on which this job (its name or id) runs.
    users: Whose jobs count: user names, `group:NAME`, or `*` for everybody; unset, who runs sentinel.
    mounted: Whether each path has to be a mount point; unset, one that was a mount point has to stay one.
    read_only: How bad it is that a file system is no longer writable.
    measure: `auto` also asks Lustre, GPFS, BeeGFS and CephFS for quotas and targets; `statfs` does not.
    reliable: Count on only this share of a file system.
    lag: How old the counters of the file system may be.
    headroom: Warn without room for so many checkpoints, by the history of two weeks.
    write_probe: Write, sync, read and remove a file of 4 KB, too.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 10
    METRICS = FILESYSTEM
    PANEL: ClassVar[Panel] = "disks"
    SOURCES = (
        "statfs(2) of each path, by a child process that is given up where it hangs, and "
        "/proc/self/mountinfo; with `nodes` or `job` the same on each node.",
    )
    RUNBOOK = "docs/fs.md"

    def jobs_of(self) -> frozenset[str] | None:
        """The users squeue has to be asked for; None: everybody. Raises CannotTell."""
        if not self.job:
            return frozenset()
        from sentinel.checks.users import watched

        return watched(self.users, LOOKUP)

    @property
    def looks_into_nodes(self) -> bool:
        """With `nodes` or `job`."""
        return bool(self.nodes or self.job)

    def run(self, ctx: Context) -> Report:
        """One finding per path (and node). Raises CannotTell without a mount table or any path."""
        if self.nodes or self.job:
            return self._on_nodes(ctx)
        deadline = time.monotonic() + 0.9 * ctx.limit
        seen, sights = looked(self.paths, ctx, self.reliable)
        left = deadline - time.monotonic()
        sights, stuck = _with_own_limits(sights, ctx, left, self.reliable)
        findings = tuple(finding(s, seen[s.path], self._rules()) for s in sights)
        memory = {visible(s.path): to_builtins(remembered(s, seen[s.path])) for s in sights}
        there = [s for s in sights if measured(s, seen[s.path], self._rules())]
        lost = lost_of(sights, there, ctx.memory)
        findings, further = self._further(findings, there, ctx, deadline)
        if lost:
            further[ASKED] = {**further.get(ASKED, {}), **lost}
        return Report(
            findings=findings,
            coverage=_coverage(sights, lost),
            samples=tuple(sample for f in findings for sample in f.samples(KEPT)),
            memory={**memory, **stuck, **further},
        )

    def _further(
        self, findings: tuple[Finding, ...], sights: Sequence[Sight], ctx: Context, deadline: float
    ) -> tuple[tuple[Finding, ...], dict[str, Any]]:
        """What is asked beyond statfs, and what history says of the future; imported on demand."""
        memory: dict[str, Any] = {}
        types = [sight.mount.type for sight in sights if sight.mount is not None]
        if is_more_wanted(self.measure, self.write_probe, types):
            from sentinel.checks.quota import further as more

            wishes = more.Wishes(
                measure=self.measure, warn=self.warn, crit=self.crit, write_probe=self.write_probe
            )
            asked = more.asked(wishes, sights, ctx, deadline)
            findings, memory[more.MEMORY] = (*findings, *asked.findings), asked.memory
            memory[ASKED] = asked.subjects
        if self.headroom or self.warn.full_in is not None or self.crit.full_in is not None:
            from sentinel.checks.fs import forecast

            future = forecast.Wishes(
                warn=self.warn, crit=self.crit, headroom=self.headroom, lag=self.lag
            )
            before = ctx.memory.get(forecast.MEMORY, {})
            findings, made = forecast.foreseen(findings, future, ctx.history, before, ctx.now)
            memory[forecast.MEMORY] = made
        return findings, memory

    def _on_nodes(self, ctx: Context) -> Report:
        from sentinel.checks.fs.nodes import on_nodes
        from sentinel.checks.nodes_asked import chosen

        asked = chosen(self.nodes, self.job, self.jobs_of() if self.job else None, ctx)
        return on_nodes(asked, [str(p) for p in self.paths], self._rules(), KEPT, ctx)

    def _rules(self) -> Rules:
        warn, crit = completed(self.warn, self.crit)
        return Rules(warn=warn, crit=crit, mounted=self.mounted, read_only=Status(self.read_only))


def looked(
    paths: Sequence[str], ctx: Context, reliable: float = 100
) -> tuple[dict[str, Seen], list[Sight]]:
    """What is remembered and what is seen of each path (none: all on local disks). Raises
    CannotTell."""
    seen = _seen(paths, ctx.memory)
    answers = _answers(seen, ctx.limit)
    mounts = mount_table()
    if paths:
        points = meant_to_be_mounted(mounts, ctx.limit / 4)
        seen = {p: _as_mounted(p, s, answers.get(p), points) for p, s in seen.items()}
    else:  # files bound into a container lead to disks that are not its own
        seen = {p: s for p, s in seen.items() if not _is_file(answers.get(p))}
        # What was unmounted meanwhile is gone, as it is for the next look.
        seen = {p: s for p, s in seen.items() if mounts.is_point(p)}
    return seen, [_sight(p, answers.get(p), mounts, ctx, reliable) for p in seen]


def _with_own_limits(
    sights: Sequence[Sight], ctx: Context, limit: float, reliable: float
) -> tuple[list[Sight], dict[str, Any]]:
    """Which paths have a size or number of inodes other than their mount point's: XFS and ext4 answer
    with the project quota of a directory (xfs_qm_statvfs, ext4_statfs_project in Linux), and so do
    some network file systems. With what to remember of mount points that hang."""
    mains = Counter(s.main for s in sights if s.main and s.answer and s.answer.usage)
    known = {s.path: s.answer for s in sights if s.answer}
    more = {p: _recalled(ctx.memory, p) for p, n in mains.items() if n > 1 and p not in known}
    asked = {p: _trusted(a, reliable) for p, a in _answers(more, limit).items()} if more else {}
    usages = {path: answer.usage for path, answer in {**known, **asked}.items()}

    def own(sight: Sight) -> bool:
        main, usage = usages.get(sight.main), usages.get(sight.path)
        return bool(main and usage) and not _alike(main, usage)

    stuck = {visible(p): to_builtins(Seen(stuck=a.stuck)) for p, a in asked.items() if a.stuck}
    return [replace(s, own_limit=own(s)) for s in sights], stuck


def _alike(one: Usage | None, other: Usage | None) -> bool:
    pairs = ((one.size, other.size), (one.inodes, other.inodes)) if one and other else ()
    return all(abs(a - b) <= SAME * max(a, b) for a, b in pairs)


def _trusted(answer: Answer, reliable: float) -> Answer:
    if answer.usage is None or reliable >= 100:
        return answer
    return replace(answer, usage=trusted(answer.usage, reliable))


def _sight(
    path: str, answer: Answer | None, mounts: Mounts, ctx: Context, reliable: float
) -> Sight:
    real = answer.real if answer else ""
    answer = _trusted(answer, reliable) if answer else None
    mount = mounts.holding(real) if real else None
    main = mounts.main(mount).point if mount else ""
    return Sight(path=path, answer=answer, mount=mount, main=main, at=ctx.now)


def _seen(paths: Sequence[str], memory: Mapping[str, Any]) -> dict[str, Seen]:
    """What is remembered of every path to look at; a listed one is known as mounted."""
    if paths:
        return {path: _recalled(memory, path) for path in map(str, paths)}
    listed = [mount.point for mount in mount_table().local()]
    if not listed:
        raise CannotTell(f"{TABLE} names no file system on a local disk; give the paths")
    return {path: replace(_recalled(memory, path), mounted=True) for path in listed}


def lost_of(
    sights: Sequence[Sight], there: Sequence[Sight], memory: Mapping[str, Any]
) -> dict[str, list[str]]:
    """By path what was asked beyond statfs when it last answered, of those that do not now."""
    before = memory.get(ASKED, {})
    dumb = (visible(s.path) for s in sights if s not in there)
    return {path: before[path] for path in dumb if path in before}


def _coverage(sights: Sequence[Sight], lost: Mapping[str, Sequence[str]]) -> Coverage:
    """Paths, and the quotas and trees (`lost`) of those that do not answer: their alerts stay."""
    more = [subject for subjects in lost.values() for subject in subjects]
    seen = [s.path for s in sights if seen_at_all(s)]
    excused = "their file system does not answer" if more and len(seen) == len(sights) else ""
    return covered("paths", [*(s.path for s in sights), *more], seen, excused)


def mount_table() -> Mounts:
    """The mounts this process sees; raises CannotTell."""
    try:
        return mounts()
    except (OSError, ValueError) as error:
        raise CannotTell(f"{TABLE} cannot be read: {error}") from error


def meant_to_be_mounted(table: Mounts, limit: float) -> frozenset[str]:
    """Points that fstab(5) mounts at boot: an empty directory there is no file system.

    As the file spells them, and as the kernel would name those that are not mounted: a point may
    be written with a slash at its end, or be a symbolic link. `limit`: seconds for each of those.
    """
    try:
        with open(FSTAB, errors="surrogateescape") as file:
            rows = [line.split() for line in file if not line.lstrip().startswith("#")]
    except OSError:
        return frozenset()
    lasting = (r for r in rows if len(r) > 3 and not {"noauto", "nofail"} & set(r[3].split(",")))
    spelt = {os.path.normpath(unescaped(row[1])) for row in lasting if row[1].startswith("/")}
    away = [point for point in spelt if not table.is_point(point)]
    return frozenset(
        spelt.union(filter(None, (real_path(point, limit) for point in away[:MOST_AWAY])))
    )


def _as_mounted(path: str, seen: Seen, answer: Answer | None, points: frozenset[str]) -> Seen:
    names = {os.path.normpath(path), answer.real if answer else ""}
    return replace(seen, mounted=True) if names & points else seen


def _answers(seen: Mapping[str, Seen], limit: float) -> dict[str, Answer]:
    """Ask every path but those in which an earlier probe still hangs."""
    table = mount_table()

    def ask(path: str, patience: float) -> Answer:
        return probe(path, patience, plain=table.is_point(path))

    stuck = proc.Hanging({p: s.stuck for p, s in seen.items() if s.stuck}).children
    budget = max(0.3 * limit, limit - 1.5 * proc.GRACE)
    fresh = probe_all((p for p in seen if p not in stuck), budget, min(limit / 2, budget), ask)
    return {**fresh, **{path: Answer(hung=True, stuck=child) for path, child in stuck.items()}}


def _is_file(answer: Answer | None) -> bool:
    return answer is not None and answer.error == "Not a directory"


def _recalled(memory: Mapping[str, Any], path: str) -> Seen:
    return recalled(memory.get(visible(path)), Seen) or Seen()
