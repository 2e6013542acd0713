"""What is asked about quotas and targets. Each subject has its finding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.filesystems.limits import Limits, completed
from sentinel.checks.filesystems.observation import ASKED
from sentinel.checks.filesystems.report import PathQuestions, blind, real_path_of
from sentinel.checks.filesystems.verdict import Sight
from sentinel.checks.quota import collect
from sentinel.checks.quota.judge import GRACE, quota_finding, targets_finding
from sentinel.checks.quota.tools.quota import Quota
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Status
from sentinel.core.mounts import Mount
from sentinel.core.text import visible

if TYPE_CHECKING:
    from sentinel.core.ports import Context


class Wishes(Struct, frozen=True, kw_only=True):
    """What is asked: `measure` is a tool, or `auto`, `quota`, `statfs` or `command`; `grace` in
    seconds, below which what is left of a quota's is critical."""

    measure: str = "auto"
    warn: Limits = Limits()
    crit: Limits = Limits()
    grace: float = GRACE
    quotas: Sequence[str] = ()
    command: Sequence[str] = ()
    pattern: re.Pattern[str] | None = None


class QuotaQuestions(PathQuestions):
    """Quotas and targets, by tools or the command of the site."""

    def __init__(self, fs: Wishes, ctx: Context, deadline: float) -> None:
        super().__init__(ctx, deadline)
        self._fs = fs
        self._shares = completed(replace(fs.warn, free=None), replace(fs.crit, free=None))
        # So many bytes free are meant of a file system, not of a quota that nobody asked about.
        asked = fs.measure != "auto"
        self._warn, self._crit = completed(fs.warn, fs.crit) if asked else self._shares
        self._now = ctx.now.wall / 1e6

    def about(self, sight: Sight, mount: Mount) -> Iterator[Finding]:
        fs, path = self._fs, sight.path
        if fs.measure == "command":
            yield from self.one(f"{path} command", lambda: self._command(path))
        else:
            yield from self._tool(sight, mount)

    def _tool(self, sight: Sight, mount: Mount) -> Iterator[Finding]:
        path, lenient = sight.path, self._fs.measure == "auto"
        try:
            tool = collect.tool_for(self._fs.measure, mount)
        except CannotTell as error:
            yield blind(f"{path} quota", error)
            return
        if not tool:
            return
        for kind, name in self._owners(tool):
            subject = f"{path} {kind}:{name}" if name else f"{path} {kind}"
            ask = self._quotas(tool, sight, mount, kind, name)
            yield from self.one(subject, ask, lenient=lenient)
        if tool in collect.TARGETS:
            yield from self.one(
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
                path=real_path_of(sight),
                mount=mount,
                kind=kind,
                name=name,
                limit=self.left(),
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
        found = collect.targets(tool, mount.point, self.left)
        return targets_finding(sight.path, found, *self._shares)

    def _command(self, path: str) -> list[Finding]:
        from sentinel.checks.quota.tools import command

        argv = [word.replace("{path}", path) for word in self._fs.command]
        text = collect.said(argv, self.left())
        pattern = self._fs.pattern
        found = command.from_text(text, pattern) if pattern else command.from_json(text)
        unread = command.missing_rows(text, self._names_before(path), found)
        why = CannotTell("its row does not fit `pattern` any more")
        return [
            *(self._quota(path, quota) for quota in found),
            *(blind(f"{path} command:{name}", why) for name in unread),
        ]

    def _names_before(self, path: str) -> list[str]:
        """Whose quotas the command told in the run before."""
        prefix = f"{visible(path)} command:"
        subjects = self.ctx.memory.get(ASKED, {}).get(visible(path), [])
        return [one.removeprefix(prefix) for one in subjects if one.startswith(prefix)]


def _none(path: str, title: str) -> Finding:
    subject = visible(f"{path} {title}")
    return Finding(subject=subject, status=Status.OK, summary="has no quota here")
