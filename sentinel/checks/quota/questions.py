"""The questions about quotas and targets. Each subject has one finding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.filesystems.limits import SpaceLimits, complete_limits
from sentinel.checks.filesystems.observation import ASKED
from sentinel.checks.filesystems.report import PathQuestions, blind_finding, real_path_of
from sentinel.checks.filesystems.verdict import PathObservation
from sentinel.checks.quota import collect
from sentinel.checks.quota.judge import GRACE, quota_finding, targets_finding
from sentinel.checks.quota.tools import command
from sentinel.checks.quota.tools.quota import QuotaRow
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Status
from sentinel.core.mounts import Mount
from sentinel.core.text import visible

if TYPE_CHECKING:
    from sentinel.core.ports import Context


class QuotaWanted(Struct, frozen=True, kw_only=True):
    """What to ask. `measure` is a tool, or `auto`, `quota`, `statfs` or `command`. If a grace
    period has fewer than `grace` seconds left, that is critical."""

    measure: str = "auto"
    warn: SpaceLimits = SpaceLimits()  # Limits of a warning.
    crit: SpaceLimits = SpaceLimits()  # Limits of a critical alert.
    grace: float = GRACE
    quotas: Sequence[str] = ()  # The quotas to ask for.
    command: Sequence[str] = ()
    pattern: re.Pattern[str] | None = None  # Pattern for the answer of a command.


class QuotaQuestions(PathQuestions):
    """Asks about quotas and targets, by tools or by the site's command."""

    def __init__(self, fs: QuotaWanted, ctx: Context, deadline: float) -> None:
        super().__init__(ctx, deadline)
        self._fs = fs
        self._shares = complete_limits(replace(fs.warn, free=None), replace(fs.crit, free=None))
        # A limit on free bytes is for a file system. It does not apply to a quota that was not
        # configured.
        asked = fs.measure != "auto"
        self._warn, self._crit = complete_limits(fs.warn, fs.crit) if asked else self._shares
        self._now = ctx.now.wall / 1e6

    def ask_about(self, sight: PathObservation, mount: Mount) -> Iterator[Finding]:
        fs, path = self._fs, sight.path
        if fs.measure == "command":
            yield from self.ask_one(f"{path} command", lambda: self._command_question(path))
        else:
            yield from self._ask_tools(sight, mount)

    def _ask_tools(self, sight: PathObservation, mount: Mount) -> Iterator[Finding]:
        path, lenient = sight.path, self._fs.measure == "auto"
        try:
            tool = collect.choose_tool(self._fs.measure, mount)
        except CannotTell as error:
            yield blind_finding(f"{path} quota", error)
            return
        if not tool:
            return
        for kind, name in self._quota_owners(tool):
            subject = f"{path} {kind}:{name}" if name else f"{path} {kind}"
            ask = self._quotas_question(tool, sight, mount, kind, name)
            yield from self.ask_one(subject, ask, lenient=lenient)
        if tool in collect.TARGETS:
            yield from self.ask_one(
                f"{path} targets",
                lambda: [self._targets_question(tool, sight, mount)],
                lenient=lenient,
            )

    def _quota_owners(self, tool: str) -> list[tuple[str, str]]:
        """Kind and name of the owners: as configured, else those that such file systems have
        (users, or the tree itself)."""
        trees = {"ceph": "directory", "zfs": "dataset", "btrfs": "qgroup"}
        given = self._fs.quotas or [trees.get(tool, "user")]
        pairs = [text.partition(":") for text in given]
        return [(kind, name) for kind, _, name in pairs]

    def _quotas_question(
        self, tool: str, sight: PathObservation, mount: Mount, kind: str, name: str
    ) -> Callable[[], list[Finding]]:
        def ask() -> list[Finding]:
            question = collect.QuotaQuestion(
                path=real_path_of(sight),
                mount=mount,
                kind=kind,
                name=name,
                limit=self.run_seconds_left(),
                now=self._now,
            )
            found = collect.ask_quotas(tool, question)
            if not found:
                return [_no_quota_finding(sight.path, f"{kind}:{name}" if name else kind)]
            return [self._judge_quota(sight.path, quota) for quota in found]

        return ask

    def _judge_quota(self, path: str, quota: QuotaRow) -> Finding:
        return quota_finding(path, quota, self._warn, self._crit, self._now, self._fs.grace)

    def _targets_question(self, tool: str, sight: PathObservation, mount: Mount) -> Finding:
        found = collect.ask_targets(tool, mount.point, self.run_seconds_left)
        return targets_finding(sight.path, found, *self._shares)

    def _command_question(self, path: str) -> list[Finding]:
        argv = [word.replace("{path}", path) for word in self._fs.command]
        text = collect.tool_output(argv, self.run_seconds_left())
        pattern = self._fs.pattern
        found = command.from_text(text, pattern) if pattern else command.from_json(text)
        unread = command.missing_rows(text, self._names_before(path), found)
        why = CannotTell("its row does not fit `pattern` any more")
        return [
            *(self._judge_quota(path, quota) for quota in found),
            *(blind_finding(f"{path} command:{name}", why) for name in unread),
        ]

    def _names_before(self, path: str) -> list[str]:
        """The names of the quotas that the command reported in the last run of the check that had
        an answer."""
        prefix = f"{visible(path)} command:"
        subjects = self.ctx.memory.get(ASKED, {}).get(visible(path), [])
        return [one.removeprefix(prefix) for one in subjects if one.startswith(prefix)]


def _no_quota_finding(path: str, title: str) -> Finding:
    subject = visible(f"{path} {title}")
    return Finding(subject=subject, status=Status.OK, summary="has no quota here")
