"""The settings of the `quota` check."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from sentinel.checks.fs.forecast import judge_headroom
from sentinel.checks.fs.limits import DOWNWARDS, UPWARDS, Limits, refuse_relative
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath, refuse_reversed
from sentinel.core.values import Duration
from sentinel.plugin import Check

Tool = Literal[
    "auto", "repquota", "xfs", "lustre", "gpfs", "beegfs", "ceph", "zfs", "btrfs"
]  # fmt: skip
KINDS = ("user", "group", "project", "fileset", "dataset", "directory", "qgroup")


class Crit(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bad by any of these.

    used: Bad from this share of the quota used on.
    free: Bad when less than this is left.
    inodes_used: Bad from this share of the files used on.
    full_in: Bad when history leads to a full quota within this time.
    grace: Bad when the grace of a soft limit ends within this time; one day unless said.
    """

    grace: Duration | None = None


class Settings(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `QuotaCheck` explains, and what of it goes together."""

    paths: list[FilePath]
    tool: Tool = "auto"
    quotas: list[str] = []
    command: list[str] = []
    pattern: re.Pattern[str] | None = None
    warn: Limits = Limits()
    crit: Crit = Crit()
    headroom: str = ""
    lag: Duration = Duration(0)

    def __post_init__(self) -> None:
        refuse_reversed(self.warn, self.crit, UPWARDS, DOWNWARDS)
        refuse_relative(self.paths)
        judge_headroom(self.headroom)
        _judge_quotas(self.quotas)
        if self.pattern is not None:
            from sentinel.checks.quota.tools.command import refuse

            refuse(self.pattern)

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if self.command:
            yield "tool", "the `command` is asked, and nothing else"
            yield "quotas", "the `command` names whose quotas it tells"
        else:
            yield "pattern", "it reads what a `command` prints"
        if not (self.headroom or self.warn.full_in is not None or self.crit.full_in is not None):
            yield "lag", "it is for a forecast: `full_in` or `headroom`"


def _judge_quotas(quotas: Sequence[str]) -> None:
    for number, text in enumerate(quotas):
        kind, _, _ = text.partition(":")
        if kind not in KINDS:
            known = ", ".join(KINDS)
            raise Invalid(
                f"{kind!r} has no quotas; write it like user:alice; {known}", "quotas", number
            )
