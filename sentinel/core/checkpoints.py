"""Settings for where checkpoints lie and when one is complete; all checks that read them share
these."""

from __future__ import annotations

import re

from msgspec import Struct

from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration, Size


class CheckpointRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a checkpoint is complete; every key given has to hold.

    marker: A file in it that is written last.
    latest: A file beside them that names the newest complete one, by name or number.
    min_size: Bytes that all its files have together at least.
    settled: Nothing in it was changed for so long; counts where neither `marker` nor `latest` is given.
    """

    marker: str = ""
    latest: str = ""
    min_size: Size = Size(0)
    settled: Duration = Duration(60)

    def __post_init__(self) -> None:
        for key in ("marker", "latest"):
            name = getattr(self, key)
            if name.startswith("/") or ".." in name.split("/"):
                raise Invalid(f"{name!r} is no name below the folder", key)


class CheckpointPlace(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The folder, and which of its entries are checkpoints.

    path: The folder that holds the checkpoints.
    match: A regular expression for the whole name; its first group is the step, which orders them.
    complete: What shows that one is complete.
    """

    path: FilePath
    match: re.Pattern[str] = re.compile(r"\D*(\d+)\D*")
    complete: CheckpointRule = CheckpointRule()

    def __post_init__(self) -> None:
        validate_place(self.path, self.match)


def validate_place(path: str, match: re.Pattern[str]) -> None:
    """Raise Invalid if the path is not absolute, or if `match` has no group: it could find no
    step."""
    if not path.startswith("/"):
        raise Invalid(f"{path!r} is no absolute path; begin it with /", "path")
    if not match.groups:
        raise Invalid(r"captures nothing; put the step in a group, as step(\d+)", "match")
