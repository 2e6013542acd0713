"""The `fs` check: it asks each path, and compares the answer with limits and with its memory."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.checks.filesystems.limits import (
    SpaceLimits,
    complete_limits,
    judge_usage,
    usage_from_samples,
)
from sentinel.checks.filesystems.observation import ASKED, find_own_limits, look_at_paths, lost_of
from sentinel.checks.filesystems.verdict import (
    KEPT,
    PathObservation,
    VerdictSettings,
    is_measured,
    next_path_state,
    path_finding,
    was_answered,
)
from sentinel.checks.fs.settings import FsSettings
from sentinel.checks.quota.always import is_more_wanted
from sentinel.core.declared import FILESYSTEM, Panel
from sentinel.core.model import Coverage, Finding, Report, Status, covered
from sentinel.core.ports import Context
from sentinel.core.text import visible

LOOKUP = 5.0
"""Seconds to find the members of a group."""


class FsCheck(FsSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    reliable: Share of the capacity that may be used.
    lag: How old the counters of the file system may be.
    headroom: Warn without room for so many checkpoints, by the history of two weeks.
    write_probe: Write, sync, read and remove a file of 4 KB, too.
    """

    EVERY: ClassVar[float] = 60
    TELLS_HOST: ClassVar[bool] = True
    TIMEOUT: ClassVar[float] = 10
    METRICS = FILESYSTEM
    PANEL: ClassVar[Panel] = "disks"
    SOURCES = (
        "Free space and inodes of each path (statfs) and /proc/self/mountinfo; a hung mount cannot "
        "block it. With `nodes` or `job` the same on each node.",
    )
    RUNBOOK = "docs/fs.md"
    LIMIT_SAMPLES = ("used_percent", "free_bytes", "inodes_used_percent")

    def judge_samples(self, numbers: Mapping[str, float]) -> Status:
        """The status by space and inodes."""
        rules = self._rules()
        return judge_usage(usage_from_samples(numbers), rules.warn, rules.crit)[0]

    def without_sampled_limits(self) -> "FsCheck":
        """Of the limits the forecast's alone, which samples of one moment do not decide."""
        warn, crit = SpaceLimits(full_in=self.warn.full_in), SpaceLimits(full_in=self.crit.full_in)
        return replace(self, warn=warn, crit=crit)

    def jobs_of(self) -> frozenset[str] | None:
        """The users whose jobs squeue is asked for. None means everybody. Raises CannotTell."""
        if not self.job:
            return frozenset()
        from sentinel.checks.users import watched_users

        return watched_users(self.users, LOOKUP)

    @property
    def looks_into_nodes(self) -> bool:
        """Whether other nodes are checked (`nodes` or `job`)."""
        return bool(self.nodes or self.job)

    def run(self, ctx: Context) -> Report:
        """One finding per path (and node). Raises CannotTell without a mount table, or without any
        path."""
        if self.nodes or self.job:
            return self._on_nodes(ctx)
        deadline = time.monotonic() + 0.9 * ctx.limit
        seen, sights = look_at_paths(self.paths, ctx, self.reliable)
        left = deadline - time.monotonic()
        sights, stuck = find_own_limits(sights, ctx, left, self.reliable)
        findings = tuple(path_finding(s, seen[s.path], self._rules()) for s in sights)
        memory = {visible(s.path): to_builtins(next_path_state(s, seen[s.path])) for s in sights}
        there = [s for s in sights if is_measured(s, seen[s.path], self._rules())]
        lost = lost_of(sights, there, ctx.memory)
        findings, further = self._ask_further(findings, there, ctx, deadline)
        if lost:
            further[ASKED] = {**further.get(ASKED, {}), **lost}
        return Report(
            findings=findings,
            coverage=_paths_coverage(sights, lost),
            samples=tuple(sample for f in findings for sample in f.samples(KEPT)),
            memory={**memory, **stuck, **further},
        )

    def _ask_further(
        self,
        findings: tuple[Finding, ...],
        sights: Sequence[PathObservation],
        ctx: Context,
        deadline: float,
    ) -> tuple[tuple[Finding, ...], dict[str, Any]]:
        """The questions beyond statfs, and the forecast. Imported only if needed."""
        memory: dict[str, Any] = {}
        types = [sight.mount.type for sight in sights if sight.mount is not None]
        if is_more_wanted(self.measure, self.write_probe, types):
            from sentinel.checks.filesystems.report import MEMORY, ask_all
            from sentinel.checks.fs.further import FurtherQuestions
            from sentinel.checks.quota.questions import QuotaWanted

            wishes = QuotaWanted(measure=self.measure, warn=self.warn, crit=self.crit)
            asked = ask_all(FurtherQuestions(wishes, self.write_probe, ctx, deadline), sights)
            findings, memory[MEMORY] = (*findings, *asked.findings), asked.memory
            memory[ASKED] = asked.subjects
        if self.headroom or self.warn.full_in is not None or self.crit.full_in is not None:
            from sentinel.checks.filesystems import forecast

            future = forecast.ForecastSettings(
                warn=self.warn, crit=self.crit, headroom=self.headroom, lag=self.lag
            )
            before = ctx.memory.get(forecast.MEMORY, {})
            findings, made = forecast.forecast_findings(
                findings, future, ctx.history, before, ctx.now
            )
            memory[forecast.MEMORY] = made
        return findings, memory

    def _on_nodes(self, ctx: Context) -> Report:
        from sentinel.checks.fs.nodes import on_nodes
        from sentinel.checks.nodes_asked import choose_nodes

        asked = choose_nodes(self.nodes, self.job, self.jobs_of() if self.job else None, ctx)
        return on_nodes(asked, [str(p) for p in self.paths], self._rules(), KEPT, ctx)

    def _rules(self) -> VerdictSettings:
        warn, crit = complete_limits(self.warn, self.crit)
        return VerdictSettings(
            warn=warn, crit=crit, mounted=self.mounted, read_only=Status(self.read_only)
        )


def _paths_coverage(
    sights: Sequence[PathObservation], lost: Mapping[str, Sequence[str]]
) -> Coverage:
    """The coverage of paths, and of the quotas and trees (`lost`) of paths that do not answer, so
    that their alerts stay."""
    more = [subject for subjects in lost.values() for subject in subjects]
    seen = [s.path for s in sights if was_answered(s)]
    excused = "their file system does not answer" if more and len(seen) == len(sights) else ""
    return covered("paths", [*(s.path for s in sights), *more], seen, excused)
