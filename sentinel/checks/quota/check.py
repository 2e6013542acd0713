"""The `quota` check: how much of a file system somebody may use, and its storage targets."""

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from sentinel.checks.filesystems.forecast import ForecastSettings as Future
from sentinel.checks.filesystems.forecast import judge_headroom
from sentinel.checks.filesystems.limits import DOWNWARDS, UPWARDS, SpaceLimits, refuse_relative
from sentinel.checks.filesystems.report import deadline_of, report_questions
from sentinel.checks.quota.judge import GRACE
from sentinel.checks.quota.questions import QuotaQuestions, QuotaWanted
from sentinel.checks.quota.tools.command import refuse, tells_shares_alone
from sentinel.core.declared import FILESYSTEM, Panel
from sentinel.core.errors import Invalid
from sentinel.core.model import Report
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath, refuse_reversed
from sentinel.core.shown import Column
from sentinel.core.values import Duration
from sentinel.plugin import Check

# The settings of the `quota` check.


Tool = Literal[
    "auto", "repquota", "xfs", "lustre", "gpfs", "beegfs", "ceph", "zfs", "btrfs"
]  # fmt: skip
KINDS = ("user", "group", "project", "fileset", "dataset", "directory", "qgroup")


class QuotaCriticalLimits(SpaceLimits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bad by any of these.

    used: Bad when so much of the quota is used.
    free: Bad when less than this is left.
    inodes_used: Bad when so large a share of the files is used.
    full_in: Bad when history leads to a full quota within this time.
    grace: Bad when the grace of a soft limit ends within this time; one day unless said.
    """

    grace: Duration | None = None


class QuotaSettings(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings that `QuotaCheck` explains, and the rules for combining them."""

    paths: list[FilePath]
    tool: Tool = "auto"
    quotas: list[str] = []
    command: list[str] = []
    pattern: re.Pattern[str] | None = None
    warn: SpaceLimits = SpaceLimits()
    crit: QuotaCriticalLimits = QuotaCriticalLimits()
    headroom: str = ""
    lag: Duration = Duration(0)

    def __post_init__(self) -> None:
        refuse_reversed(self.warn, self.crit, UPWARDS, DOWNWARDS)
        refuse_relative(self.paths)
        judge_headroom(self.headroom)
        _judge_quotas(self.quotas)
        if self.pattern is not None:
            refuse(self.pattern)
            self._refuse_bytes_of_shares(self.pattern)

    def _refuse_bytes_of_shares(self, pattern: re.Pattern[str]) -> None:
        """Raise Invalid for a limit in bytes if the tool reports only a percentage."""
        wanted = {
            "headroom": bool(self.headroom),
            "warn": self.warn.free is not None or self.warn.full_in is not None,
            "crit": self.crit.free is not None or self.crit.full_in is not None,
        }
        for key in (
            key for key, is_set in wanted.items() if is_set and tells_shares_alone(pattern)
        ):
            raise Invalid(
                "the pattern finds a percentage and no bytes: it needs the groups (?P<used>…) and "
                "(?P<limit>…) for `free`, `full_in` and `headroom`",
                key,
            )

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if self.command:
            yield "tool", "the `command` is asked, and nothing else"
            yield "quotas", "the `command` names whose quotas it tells"
        else:
            yield "pattern", "it reads what a `command` prints"
        if not (self.headroom or self.warn.full_in is not None or self.crit.full_in is not None):
            yield "lag", "it belongs to a forecast; set `full_in` or `headroom`"


def _judge_quotas(quotas: Sequence[str]) -> None:
    for number, text in enumerate(quotas):
        kind, _, _ = text.partition(":")
        if kind not in KINDS:
            known = ", ".join(KINDS)
            raise Invalid(
                f"{kind!r} has no quotas; write it like user:alice; {known}", "quotas", number
            )


class QuotaCheck(QuotaSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Quotas, with their grace, and storage targets; how the file system itself is, `fs` tells.

    paths: Absolute paths on the file systems that are asked about.
    tool: What is asked; `auto`: what fits the type of the mount.
    quotas: Whose: `user`, `user:NAME`, `group:ml`, `project:7`, `fileset:NAME`; unset, your own or the tree's.
    command: The site's own tool that tells a quota, as a list of words, in place of `tool`.
    pattern: How to read that tool's output: the groups `used`, `limit`, `soft`, `entries`, `name`.
    warn: The limits of a warning.
    crit: The limits of what is critical.
    headroom: Room for so many checkpoints has to be left in the quota.
    lag: How old the counters may be.
    """

    EVERY: ClassVar[float] = 60
    TELLS_HOST: ClassVar[bool] = True
    TIMEOUT: ClassVar[float] = 10
    METRICS = FILESYSTEM
    PANEL: ClassVar[Panel] = "disks"
    COLUMNS = (
        Column("quota", "subject"),
        Column("used of limit", "used_percent", "bar"),
        Column("used", "used_bytes", "size"),
        Column("soft", "soft_bytes", "size", optional=True),
        Column("limit", "size_bytes", "size"),
        Column("files", "inodes_used_percent", "share"),
        Column("grace", "grace_seconds", "time"),
        Column("files' grace", "entries_grace_seconds", "time"),
        Column("targets", "targets", "count", optional=True),
        Column("fullest", "fullest_used_percent", "bar"),
        Column("last week", "used_percent", "week", optional=True),
        Column("full in", "full_in_s", "full", optional=True),
        Column("status", "status", "status"),
    )
    SOURCES = (
        "The quota tool that fits the mount (quota, lfs, mmlsquota, beegfs-ctl, getfattr, zfs, btrfs), "
        "or the command that is configured; lfs df and beegfs-df for targets.",
    )
    RUNBOOK = "docs/quota.md"

    def run(self, ctx: Context) -> Report:
        """A finding for each quota and for a file system's targets; UNKNOWN if it cannot be asked.
        Raises CannotTell without a mount table."""
        wishes = QuotaWanted(
            measure="command" if self.command else {"auto": "quota"}.get(self.tool, self.tool),
            quotas=self.quotas,
            command=self.command,
            pattern=self.pattern,
            warn=self.warn,
            crit=self.crit,
            grace=GRACE if self.crit.grace is None else self.crit.grace,
        )
        future = Future(warn=self.warn, crit=self.crit, headroom=self.headroom, lag=self.lag)
        return report_questions(QuotaQuestions(wishes, ctx, deadline_of(ctx)), self.paths, future)
