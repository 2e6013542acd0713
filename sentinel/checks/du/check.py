"""The `du` check: how much space a tree takes, for file systems without quotas."""

from collections.abc import Iterator
from typing import ClassVar

from msgspec import Struct

from sentinel.checks.du.questions import TreeQuestions
from sentinel.checks.du.settings import DuSettings
from sentinel.checks.du.tree import TREE_COLUMNS, TREE_ROW_COLUMNS
from sentinel.checks.filesystems.forecast import ForecastSettings as Future
from sentinel.checks.filesystems.limits import DOWNWARDS, UPWARDS, SpaceLimits, refuse_relative
from sentinel.checks.filesystems.report import deadline_of, report_questions
from sentinel.core.declared import FILESYSTEM, Panel
from sentinel.core.model import Report
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath, refuse_reversed
from sentinel.core.values import Duration, Share, Size
from sentinel.plugin import Check


class TreeBounds(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bad by any of these.

    used: Bad when so much of `size` is used.
    free: Bad when less of it is left.
    full_in: Bad when history leads to it within this time.
    """

    used: Share | None = None
    free: Size | None = None
    full_in: Duration | None = None


class DuCheck(DuSettings, Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What trees weigh: bytes, files, the largest directories and owners.

    paths: Absolute paths of the trees.
    size: How large each may become, what shares are of; without it nothing is judged.
    top: How many of the largest directories and owners are told.
    within: How long a walk may take; unset, the timeout.
    calls: Metadata calls a second, 0 without a cap; unset 5000, on this machine's own disks without one.
    threads: How many threads walk.
    warn: The limits of a warning.
    crit: The limits of what is critical.
    """

    EVERY: ClassVar[float] = 6 * 3600
    TELLS_HOST: ClassVar[bool] = True
    TIMEOUT: ClassVar[float] = 20 * 60
    METRICS = FILESYSTEM
    PANEL: ClassVar[Panel] = "disks"
    COLUMNS = TREE_COLUMNS
    ROW_COLUMNS = TREE_ROW_COLUMNS
    SOURCES = ("Every file and directory of the tree; a hung mount cannot block it.",)
    RUNBOOK = "docs/du.md"

    paths: list[FilePath]
    warn: TreeBounds = TreeBounds()
    crit: TreeBounds = TreeBounds()

    def __post_init__(self) -> None:
        refuse_reversed(_space_limits(self.warn), _space_limits(self.crit), UPWARDS, DOWNWARDS)
        refuse_relative(self.paths)

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if self.size is None:
            for key in ("warn", "crit"):
                yield key, "they are shares of `size`; say how large a tree may become"

    def run(self, ctx: Context) -> Report:
        """A finding for each tree. It is UNKNOWN if the tree does not answer. Raises CannotTell
        without a mount table."""
        warn, crit = _space_limits(self.warn), _space_limits(self.crit)
        questions = TreeQuestions(self, warn, crit, ctx, deadline_of(ctx))
        return report_questions(questions, self.paths, Future(warn=warn, crit=crit))


def _space_limits(bounds: TreeBounds) -> SpaceLimits:
    return SpaceLimits(used=bounds.used, free=bounds.free, full_in=bounds.full_in)
