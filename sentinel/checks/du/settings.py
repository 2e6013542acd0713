"""The settings of a walk through a tree."""

from typing import Annotated

from msgspec import Meta, Struct

from sentinel.core.values import Duration, Size


class DuSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to walk a tree.

    size: How large the tree may become; what shares are of.
    top: So many of the largest directories are named.
    within: How long the walk may take; unset, what the run has.
    calls: Metadata calls a second, 0 without a cap; unset, 5000, and on this machine's own disks no cap.
    threads: So many directories are read at once.
    """

    size: Size | None = None
    top: Annotated[int, Meta(ge=0, le=1000)] = 10
    within: Duration | None = None
    calls: Annotated[int, Meta(ge=0)] | None = None
    threads: Annotated[int, Meta(ge=1, le=512)] = 64
