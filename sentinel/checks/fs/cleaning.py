"""The `clean` kind: old logs and checkpoints, told, and where it is asked for removed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from sentinel.clean.rules import Rules
from sentinel.core.errors import Invalid
from sentinel.core.limits import Limits
from sentinel.core.model import ActionRequest, Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.text import visible
from sentinel.core.values import Duration, duration_text, size_text
from sentinel.proc.cleaning import Going, Listing, listing

MOST = 40
LONGEST = 3500
"""Names in one request, and their length: the log of actions keeps every one."""


class Clean(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Old logs and checkpoints of a directory: what may go, and its removal where that is on.

    `match`: names it is about; a first group that is a number orders them. `keep_last` complete
    ones stay (two at least), of numbers every `keep_every`-th, and what was written to within
    `older_than`. `complete`: a file that only a complete directory holds. `remove`: do it.
    """

    EVERY: ClassVar[float] = 3600
    TIMEOUT: ClassVar[float] = 60

    root: FilePath
    match: re.Pattern[str]
    older_than: Duration
    keep_last: Annotated[int, Meta(ge=2, le=100_000)] = 2
    keep_every: Annotated[int, Meta(ge=0)] = 0
    complete: str = ""
    remove: bool = False
    limits: Limits | None = None

    def __post_init__(self) -> None:
        if not self.root.startswith("/"):
            raise Invalid(f"{self.root!r} is no absolute path; begin it with /", "root")
        if self.keep_every and not self.match.groups:
            raise Invalid(r"needs a number in match, such as step(\d+)", "keep_every")
        if "/" in self.complete:
            raise Invalid("the name of a file directly in each directory", "complete")
        if self.older_than <= 0:
            raise Invalid("has to be longer than 0s", "older_than")

    def grants(self) -> Mapping[str, Limits | None]:
        """Removing, where it is switched on."""
        return {"clean": self.limits} if self.remove else {}

    def run(self, ctx: Context) -> Report:
        """What may go, the oldest first. Raises CannotTell where that cannot be seen."""
        found = listing(str(self.root), self.rules().text(), 0.8 * ctx.limit)
        return Report(
            findings=(self._finding(found, ctx),),
            requests=self._requests(found) if self.remove else (),
        )

    def rules(self) -> Rules:
        """As the program that removes understands them."""
        return Rules(
            self.match.pattern,
            keep_last=self.keep_last,
            keep_every=self.keep_every,
            older_than=float(self.older_than),
            complete=self.complete,
        )

    def _finding(self, found: Listing, ctx: Context) -> Finding:
        freed = sum(e.bytes for e in found.going)
        text = f"{len(found.going)} of {found.entries} may go, {size_text(freed)}"
        return Finding(
            subject=visible(self.root),
            status=Status.OK,
            summary=text if found.going else f"nothing may go of {found.entries}",
            values={
                "entries": found.entries,
                "used_bytes": found.bytes,
                "removable": len(found.going),
                "removable_bytes": freed,
            },
            details="\n".join(_line(e, ctx.now.wall / 1e6) for e in found.going[:MOST]),
        )

    def _requests(self, found: Listing) -> tuple[ActionRequest, ...]:
        names = _some([e.name for e in found.going])
        if not names:
            return ()
        freed = sum(e.bytes for e in found.going[: len(names)])
        return (
            ActionRequest(
                action="clean",
                target=str(self.root),
                reason=f"{len(names)} older than {self.older_than}, {size_text(freed)}",
                params={"rules": self.rules().text(), "names": json.dumps(names)},
                evidence={"first": _evidence(found.going[0]), "may go": str(len(found.going))},
            ),
        )


def _some(names: Sequence[str]) -> list[str]:
    """The oldest ones, as many as are written down."""
    taken, length = list[str](), 0
    for name in names[:MOST]:
        length += len(json.dumps(name)) + 2
        if length > LONGEST or visible(name) != name:
            break
        taken.append(name)
    return taken


def _line(entry: Going, now: float) -> str:
    age = duration_text(max(0.0, now - entry.at))
    return visible(f"{size_text(entry.bytes):>8}  {age:>8} old  {entry.name}")


def _evidence(entry: Going) -> str:
    return visible(f"{entry.name}, {size_text(entry.bytes)} in {entry.entries} entries")
