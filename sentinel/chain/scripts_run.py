"""`sentinel cron run`: a pass over the cron directories of the configuration or the command line."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from sentinel.chain.script_directory import Directory, Pass, run
from sentinel.chain.submitter import Submitter
from sentinel.core.errors import SentinelError

if TYPE_CHECKING:
    from sentinel.slurm.snapshot import Snapshot


class NoDirectory(SentinelError):
    """Nothing names a cron directory."""

    exit_code = 64


class NoUser(SentinelError):
    """`trust` names somebody whom this host does not know."""

    exit_code = 78


def one(kind: Any, snapshot: Snapshot, zone: tzinfo, *, dry_run: bool) -> Pass:
    """A pass over the directory of a configured check of kind `cron`."""
    base = os.path.abspath(kind.base)
    directory = Directory(
        base=base,
        trusted=uids(kind.trust),
        log_age=float(kind.logs.age),
        log_count=kind.logs.count,
    )
    submitter = Submitter(snapshot, base, kind.sbatch)
    return run(directory, submitter, zone, time.time(), dry_run=dry_run)


def uids(names: Sequence[str]) -> frozenset[int]:
    """Of those named, of oneself, and of root, who may do all anyway; raises NoUser."""
    import pwd

    found = {0, os.geteuid()}
    for name in names:
        try:
            found.add(pwd.getpwnam(name).pw_uid)
        except KeyError:
            raise NoUser(f"trust: there is no user {name!r} on this host") from None
    return frozenset(found)
