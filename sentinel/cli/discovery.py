"""What `config init` finds out about the host, its Slurm, and whose jobs run there."""

from collections import Counter
from contextlib import suppress

from sentinel.config.starter import Surroundings
from sentinel.core.errors import CannotTell

AT_MOST = 8
"""Of each: a site that mounts every home by itself has thousands."""

SHARED = frozenset({
    "afs", "beegfs", "ceph", "cifs", "fuse.beegfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.glusterfs",
    "fuse.juicefs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "orangefs", "panfs", "pvfs2", "smb3",
    "wekafs",
})  # fmt: skip
"""Types of /proc/filesystems whose files other machines see as well."""


def surroundings(user: str) -> Surroundings:
    """What can be seen; nothing is asked of file systems, and of Slurm three questions."""
    cluster, jobs, partitions = _slurm(user)
    return Surroundings(
        cluster=cluster,
        slurm=_has_slurm(),
        local=_mounted(shared=False),
        shared=_mounted(shared=True),
        jobs=jobs,
        partitions=partitions,
    )


def _slurm(user: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Its name, the user's job names (those with most jobs first), and its partitions."""
    from sentinel.clock import SystemClock
    from sentinel.config.settings import Settings
    from sentinel.slurm.snapshot import Snapshot
    from sentinel.wiring import app

    if not app.slurm_here():
        return "", (), ()
    ours = app.snapshot(Settings())
    cluster, names, partitions = "", Counter[str](), Counter[str]()
    with suppress(CannotTell):
        cluster = ours.controller().cluster
        partitions.update(p for node in ours.nodes() for p in node.partitions)
        theirs = Snapshot(ours.client, SystemClock(), users=[user], max_age=60)
        names.update(j.name for j in theirs.jobs() if j.user == user and not _own(j.name))
    return cluster, _most(names), _most(partitions)


def _own(name: str) -> bool:
    """A link of a chain is no training."""
    return name.startswith("sentinel-")


def _most(found: Counter[str]) -> tuple[str, ...]:
    return tuple(name for name, _count in found.most_common(AT_MOST))


def _has_slurm() -> bool:
    from shutil import which

    return which("scontrol") is not None


def _mounted(*, shared: bool) -> tuple[str, ...]:
    from sentinel.checks.fs.check import mount_table

    try:
        table = mount_table()
    except CannotTell:
        return ()
    found = table.of(SHARED) if shared else table.local()
    return tuple(mount.point for mount in found if mount.point.isprintable())[:AT_MOST]
