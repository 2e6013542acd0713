"""Decides whether a file system needs more than statfs. It is cheap to import, because most file
systems do not."""

from collections.abc import Iterable

ALWAYS = frozenset({"lustre", "gpfs", "beegfs", "ceph"})
"""Types whose quotas and targets are always checked. On these, statfs alone does not show that a
user can no longer write."""


def is_more_wanted(measure: str, write_probe: bool, types: Iterable[str]) -> bool:
    """Whether more than statfs is needed. `types`: those of the mounts in question."""
    if write_probe or measure not in ("auto", "statfs"):
        return True
    return measure == "auto" and not ALWAYS.isdisjoint(types)
