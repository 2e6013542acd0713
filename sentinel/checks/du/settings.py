"""The settings of a walk through a tree."""

from typing import Annotated

from msgspec import Meta, Struct

from sentinel.core.values import Duration, Size


class Du(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to walk a tree. `size`: how large it may become, what shares are of. `calls`: metadata
    calls a second, 0 without a cap; default 5000, on this machine's own disks without one."""

    size: Size | None = None
    top: Annotated[int, Meta(ge=0, le=1000)] = 10
    within: Duration | None = None
    calls: Annotated[int, Meta(ge=0)] | None = None
    threads: Annotated[int, Meta(ge=1, le=512)] = 64
