"""The `quota` check: what of a file system somebody may use, and its targets."""

from typing import ClassVar

from sentinel.checks.fs.forecast import Wishes as Future
from sentinel.checks.quota.further import Wishes, report
from sentinel.checks.quota.judge import GRACE
from sentinel.checks.quota.settings import Settings
from sentinel.core.declared import FILESYSTEM, Panel
from sentinel.core.model import Report
from sentinel.core.ports import Context


class QuotaCheck(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    TIMEOUT: ClassVar[float] = 10
    METRICS = FILESYSTEM
    PANEL: ClassVar[Panel] = "disks"
    SOURCES = (
        "The quota tool that fits the mount (quota, lfs, mmlsquota, beegfs-ctl, getfattr, zfs, btrfs), "
        "or the command that is configured; lfs df and beegfs-df for targets.",
    )
    RUNBOOK = "docs/quota.md"

    def run(self, ctx: Context) -> Report:
        """A finding per quota and for a file system's targets; unknown where one cannot be
        asked. Raises CannotTell without a mount table."""
        wishes = Wishes(
            measure="command" if self.command else {"auto": "quota"}.get(self.tool, self.tool),
            quotas=self.quotas,
            command=self.command,
            pattern=self.pattern,
            warn=self.warn,
            crit=self.crit,
            grace=GRACE if self.crit.grace is None else self.crit.grace,
        )
        future = Future(warn=self.warn, crit=self.crit, headroom=self.headroom, lag=self.lag)
        return report(wishes, self.paths, future, ctx)
