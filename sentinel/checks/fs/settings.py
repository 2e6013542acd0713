"""The settings of the `fs` check."""

from collections.abc import Iterator
from typing import Literal

from sentinel.checks.filesystems.limits import DOWNWARDS, UPWARDS, SpaceLimits, refuse_relative
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath, refuse_reversed
from sentinel.core.values import Duration, Share
from sentinel.plugin import Check

HERE_ONLY = ("measure", "headroom", "reliable", "lag", "write_probe")


class FsSettings(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `FsCheck` explains, and what of it goes together."""

    paths: list[FilePath] = []
    warn: SpaceLimits = SpaceLimits()
    crit: SpaceLimits = SpaceLimits()
    nodes: str = ""
    job: str = ""
    users: list[str] = []
    mounted: bool | None = None
    read_only: Literal["critical", "warning", "ok"] = "critical"
    measure: Literal["auto", "statfs"] = "auto"
    reliable: Share = Share(100)
    lag: Duration = Duration(0)
    headroom: str = ""
    write_probe: bool = False

    def __post_init__(self) -> None:
        refuse_reversed(self.warn, self.crit, UPWARDS, DOWNWARDS)
        self._judge_nodes()
        if self.headroom:
            from sentinel.checks.filesystems.forecast import judge_headroom

            judge_headroom(self.headroom)
        if self.paths:
            refuse_relative(self.paths)

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if not self.job:
            yield "users", "it says whose `job` is meant; name the job"
        if not self.paths:
            yield "mounted", "without `paths` the check looks only at what is mounted"
        if not (self.headroom or self.warn.full_in is not None or self.crit.full_in is not None):
            yield "lag", "it belongs to a forecast; set `full_in` or `headroom`"

    def _judge_nodes(self) -> None:
        if self.nodes or self.job:
            from sentinel.checks.nodes_asked import judge_choice

            judge_choice(self.nodes, self.job)
            if not self.paths:
                raise Invalid("name the paths to look at on those nodes", "paths")
            self._refuse_on_nodes()

    def _refuse_on_nodes(self) -> None:
        """Refuse settings that the probe of nodes does not support. Otherwise they would seem to be
        watched."""
        usual = FsSettings()
        for key in HERE_ONLY:
            if getattr(self, key) != getattr(usual, key):
                raise Invalid("is asked on this host only, not on nodes; leave it out", key)
        for key in ("warn", "crit"):
            if getattr(self, key).full_in is not None:
                raise Invalid("is foreseen on this host only, not on nodes", key, "full_in")
