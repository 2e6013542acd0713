"""Asks more than statfs for the `fs` check: quotas and targets, and whether a file can be
written."""

from __future__ import annotations

from collections.abc import Iterator

from sentinel import proc
from sentinel.checks.filesystems.remedies import guide_hang, list_mount_commands
from sentinel.checks.filesystems.verdict import PathObservation
from sentinel.checks.fs import write_probe
from sentinel.checks.quota.questions import QuotaQuestions, QuotaWanted
from sentinel.core.model import Finding, Status
from sentinel.core.mounts import Mount
from sentinel.core.ports import Context
from sentinel.core.text import visible


class FurtherQuestions(QuotaQuestions):
    """The questions about quotas. With `write`, a small file is written after them."""

    def __init__(self, wishes: QuotaWanted, write: bool, ctx: Context, deadline: float) -> None:
        super().__init__(wishes, ctx, deadline)
        self._writes = write

    def ask_about(self, sight: PathObservation, mount: Mount) -> Iterator[Finding]:
        """Its quotas and targets, and the write."""
        yield from super().ask_about(sight, mount)
        if self._writes:
            yield from self.ask_one(f"{sight.path} write", lambda: [self._write_finding(sight)])

    def _write_finding(self, sight: PathObservation) -> Finding:
        subject = visible(f"{sight.path} write")
        before = [v for _, v in self.ctx.history(subject, "write_seconds", write_probe.SPAN)]
        try:
            result = write_probe.write_probe_file(
                sight.path, min(self.run_seconds_left(), self.ctx.limit / 2)
            )
        except proc.TimedOut as late:
            self.hanging.keep_hanging(subject, late.stuck)
            text = "a small file could not be written, synced and read back in time"
            hung = guide_hang(visible(sight.path))
            return Finding(
                subject=subject,
                status=Status.CRITICAL,
                summary=text,
                commands=list_mount_commands(sight.path, hung=True),
                guidance=hung,
            )
        return write_probe.write_finding(sight.path, result, before)
