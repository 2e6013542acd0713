"""The `clean` kind: it reports old logs and checkpoints of a directory, and removes them if
`remove` is set."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta, Struct, to_builtins
from msgspec.structs import replace

from sentinel import proc
from sentinel.clean.child import LOOKING, RemovableStep, RootListing, SearchGivenUp, list_removable
from sentinel.clean.rules import RetentionRules
from sentinel.core.action_limits import CleanLimits, Limits
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.declared import Metric
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.guidance import Guidance, look
from sentinel.core.model import ActionRequest, Coverage, Finding, Report, Status
from sentinel.core.patterns import make_endless_error
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import visible
from sentinel.core.values import Duration, duration_text, size_text
from sentinel.plugin import Check

MAX_ENTRIES_TOLD = 200
MAX_PATTERN_CHARS = 3500
"""How many characters the names in one request may have together. The log of actions keeps all of
them."""

MAX_SHOWN = 40
"""How many lines of details are shown."""

CLOCK_LEAP_S = 60.0
"""A clock that moved by more than so many seconds was set. Small corrections are smaller."""


class Memory(Struct, frozen=True, kw_only=True):
    """The memory of the check from run to run."""

    at: Instant | None = None  # when the last run was
    leapt: Instant | None = None  # when this host's clock was last set forward
    stuck: proc.StuckProcess | None = None  # a child process that hangs


class CleanCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Old logs and checkpoints of a directory: what may go, and its removal where that is on.

    What a link or tracker (`latest…`) beside them names stays, too.

    root: The directory, two steps down at least; no home, nothing behind a symbolic link.
    match: A regular expression for names directly in it; a first group that is a number orders them.
    older_than: Only what was not changed for so long may go.
    keep_last: So many complete ones stay, by number and by time; two at least, and two more without `complete`.
    keep_every: Of numbers every so-manieth stays, too.
    complete: A file that only a complete one holds, such as `.metadata` or `meta_*.json`.
    pointers: Links and trackers elsewhere, by their whole paths, that name what has to stay.
    ignore: Names in the root that are neither pointers nor parts of a checkpoint, as patterns: `eval_*.json`.
    remove: Whether what may go is removed, or only told.
    limits: Caps of removing; what is not named keeps its default.
    """

    EVERY: ClassVar[float] = 3600
    TELLS_HOST: ClassVar[bool] = True
    TIMEOUT: ClassVar[float] = 60
    METRICS = (
        Metric(
            "entries",
            "clean_entries",
            "Steps and logs that fit `match`; one number counts once.",
            "",
            "path",
        ),
        Metric("used_bytes", "clean_used_bytes", "Their size.", "bytes", "path"),
        Metric(
            "removable",
            "clean_removable",
            "Of these, those that the rules allow to remove.",
            "",
            "path",
        ),
        Metric("removable_bytes", "clean_removable_bytes", "Their size.", "bytes", "path"),
    )
    SOURCES = (
        "Names, sizes, times and links below `root`, by a child process; for root with the rights of its owner.",
    )
    RUNBOOK = "docs/clean.md"

    root: FilePath
    match: re.Pattern[str]
    older_than: Duration
    keep_last: Annotated[int, Meta(ge=2, le=100_000)] = 2
    keep_every: Annotated[int, Meta(ge=0)] = 0
    complete: str = ""
    pointers: list[FilePath] = []
    ignore: list[str] = []
    remove: bool = False
    limits: CleanLimits | None = None

    def __post_init__(self) -> None:
        if not self.root.startswith("/"):
            raise Invalid(f"{self.root!r} is no absolute path; begin it with /", "root")
        steps = [step for step in self.root.split("/") if step]
        if len(steps) < 2 or {".", ".."} & set(steps):
            raise Invalid(f"{self.root!r} is too much; name a directory two steps down", "root")
        if self.keep_every and not self.match.groups:
            raise Invalid(r"needs a number in match, such as step(\d+)", "keep_every")
        if "/" in self.complete:
            raise Invalid("the name of a file directly in each directory", "complete")
        for number, pattern in enumerate(self.ignore):
            if "/" in pattern or not pattern.strip("*?"):
                raise Invalid("a name directly in the root, or a pattern of one", "ignore", number)
        for number, pointer in enumerate(self.pointers):
            if not pointer.startswith("/"):
                why = f"{pointer!r} is no absolute path; begin it with /"
                raise Invalid(why, "pointers", number)
        if self.older_than <= 0:
            raise Invalid("has to be longer than 0s", "older_than")

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if not self.remove:
            yield "limits", "nothing is removed without `remove: true`"

    def grants(self) -> Mapping[str, Limits | None]:
        """The removal, if it is switched on."""
        return {"clean": self.limits} if self.remove else {}

    def run(self, ctx: Context) -> Report:
        """The entries that may be removed, oldest first. Raises CannotTell if they cannot be read."""
        before = decode_memory(ctx.memory, Memory) or Memory()
        hanging = proc.HangingChildren({self.root: before.stuck} if before.stuck else {})
        try:
            # A removal walks the tree again within LOOKING seconds. If this walk took longer, the
            # removal would be requested and never happen.
            limit = min(0.8 * ctx.limit, LOOKING if self.remove else float("inf"))
            with hanging.start_alone(self.root):
                found = list_removable(str(self.root), self.retention_rules().rules_text(), limit)
        except proc.StillHanging as error:
            raise CannotTell(f"an earlier look {error}") from None
        except SearchGivenUp:
            raise make_endless_error(self.match) from None
        except proc.TimedOut as late:
            if late.stuck is None:
                raise
            return self._hanging_report(replace(before, stuck=late.stuck), late)
        leapt = _find_clock_leap(before, ctx.now, self.older_than)
        return Report(
            findings=(self._removal_finding(found, leapt, ctx),),
            coverage=Coverage(
                of="entries", meant=found.entries, excused=f"nothing in {self.root} fits match"
            ),
            requests=self._removal_requests(found) if self.remove and not leapt else (),
            memory=to_builtins(Memory(at=ctx.now, leapt=leapt)),
        )

    def retention_rules(self) -> RetentionRules:
        """The rules in the form for the program that removes."""
        return RetentionRules(
            self.match.pattern,
            keep_last=self.keep_last,
            keep_every=self.keep_every,
            older_than=float(self.older_than),
            complete=self.complete,
            pointers=[str(pointer) for pointer in self.pointers],
            ignore=self.ignore,
        )

    def _hanging_report(self, memory: Memory, late: proc.TimedOut) -> Report:
        finding = Finding(subject=visible(self.root), status=Status.UNKNOWN, summary=str(late))
        return Report(
            findings=(finding,),
            coverage=Coverage(of="directories", meant=1, unseen=(self.root,)),
            memory=to_builtins(memory),
        )

    def _removal_finding(self, found: RootListing, leapt: Instant | None, ctx: Context) -> Finding:
        told = f"{found.removable} of {found.entries} to remove, {size_text(found.removable_bytes)}"
        none = [] if leapt else [f"none of {_count_entries(found.entries)} may be removed now"]
        parts = [*([told] if found.removable else none), *found.doubts]
        if not found.entries:
            parts = ["nothing in it fits `match`"]
        if found.held:
            parts.append(f"{len(found.held)} cannot be removed: {visible(found.held[0])}")
        if leapt:
            # A length: no moment is sure by a clock that was set.
            left = duration_text(max(0.0, self.older_than - get_elapsed_s(leapt, ctx.now)))
            later = (
                f"removing old files here pauses for {left}, then goes on by itself"
                if self.remove
                else f"what is old is known again in {left}"
            )
            cause = "this host's clock was set forward, so files look older than they are"
            parts.insert(0, f"{later}: {cause}")
        lines = [
            *(_step_line(e, ctx.now.wall / 1e6) for e in found.going),
            *map(visible, found.held),
        ]
        return Finding(
            subject=visible(self.root),
            status=Status.WARNING if self.remove and (found.held or leapt) else Status.OK,
            summary="; ".join(parts),
            values={
                "entries": found.entries,
                "used_bytes": found.bytes,
                "removable": found.removable,
                "removable_bytes": found.removable_bytes,
            },
            details="\n".join(lines[:MAX_SHOWN]),
            commands=(look("timedatectl"),) if self.remove and leapt else (),
            guidance=Guidance(
                impact="If the clock is still wrong when the pause ends, files are removed that are not"
                " old yet. Until then the disk may fill.",
                todo="Compare the time that `timedatectl` below shows with a clock that you trust. If it is"
                " right, nothing has to be done. If not, set it as root before the pause ends, or"
                " switch the removal off (`remove: false` in the configuration of sentinel).",
                ask="look at the clock of this host (NTP): it was set forward",
            )
            if self.remove and leapt
            else Guidance(),
        )

    def _removal_requests(self, found: RootListing) -> tuple[ActionRequest, ...]:
        going = _oldest_steps(found.going)
        if not going:
            return ()
        freed = size_text(sum(e.bytes for e in going))
        return (
            ActionRequest(
                action="clean",
                target=str(self.root),
                reason=f"{len(going)} older than {self.older_than}, {freed}",
                params={
                    "rules": self.retention_rules().rules_text(),
                    "names": json.dumps([e.name for e in going]),
                },
                evidence={"first": _step_evidence(going[0]), "may go": str(found.removable)},
            ),
        )


def _count_entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _find_clock_leap(before: Memory, now: Instant, older_than: float) -> Instant | None:
    """When the clock of this host was last set forward. None if it never was, or if `older_than`
    has passed since.

    After the clock was set forward, young files look old. Once `older_than` has passed, all files
    that existed then are as old as they look.
    """
    if before.at is None:
        return None
    leap = (now.wall - before.at.wall) / SECOND - get_elapsed_s(before.at, now)
    if abs(leap) > CLOCK_LEAP_S:
        return now if leap > 0 else None
    return before.leapt if before.leapt and get_elapsed_s(before.leapt, now) < older_than else None


def _oldest_steps(going: Sequence[RemovableStep]) -> list[RemovableStep]:
    """The oldest steps, as many as one request can name."""
    taken, length = list[RemovableStep](), 0
    for entry in going[:MAX_ENTRIES_TOLD]:
        length += len(json.dumps(entry.name)) + 2
        if length > MAX_PATTERN_CHARS:
            break
        taken.append(entry)
    return taken


def _step_line(entry: RemovableStep, now: float) -> str:
    age = duration_text(max(0.0, now - entry.at))
    return visible(f"{size_text(entry.bytes):>8}  {age:>8} old  {entry.step_label}")


def _step_evidence(entry: RemovableStep) -> str:
    return visible(f"{entry.step_label}, {size_text(entry.bytes)} in {entry.entries} entries")
