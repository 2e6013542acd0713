"""Whether a file system is asked for more than statfs; cheap, since most are not."""

from collections.abc import Iterable

ALWAYS = frozenset({"lustre", "gpfs", "beegfs", "ceph"})
"""Types whose quotas and targets are looked at without being asked for: there statfs alone tells
nobody when he can write no more."""


def is_more_wanted(measure: str, write_probe: bool, types: Iterable[str]) -> bool:
    """`types`: those of the mounts that are looked at."""
    if write_probe or measure not in ("auto", "statfs"):
        return True
    return measure == "auto" and not ALWAYS.isdisjoint(types)
