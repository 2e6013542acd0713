"""Whose files a cron directory may hold, and what is refused there."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence, Set
from contextlib import suppress

from msgspec import Struct

from sentinel.core.errors import SentinelError
from sentinel.trust import (
    Opened,
    TrustFault,
    find_group_id,
    get_trusted_gids,
    get_trusted_uids,
    open_judged,
)


class NoTrustedUser(SentinelError):
    """`trust` or `trust_groups` names somebody whom this host does not know."""

    exit_code = 78


class CronTrust(Struct, frozen=True):
    """Whose scripts run, and which groups may write them and their directories. `known`: what is
    wrong with the directories and only warned of."""

    uids: frozenset[int]
    gids: frozenset[int] = frozenset()
    known: Set[TrustFault] = frozenset()


def make_cron_trust(users: Sequence[str] = (), groups: Sequence[str] = ()) -> CronTrust:
    """Root, who can change everything anyway, this user, whom the configuration names, and these
    users and groups. Raises NoTrustedUser."""
    uids, gids = set(get_trusted_uids()), set(get_trusted_gids())
    for name in users:
        try:
            uids.add(pwd.getpwnam(name).pw_uid)
        except KeyError:
            raise NoTrustedUser(f"trust: there is no user {name!r} on this host") from None
    for name in groups:
        if (gid := find_group_id(name)) is None:
            raise NoTrustedUser(f"trust_groups: there is no group {name!r} on this host")
        gids.add(gid)
    return CronTrust(frozenset(uids), frozenset(gids))


def find_group_faults(opened: Opened) -> frozenset[TrustFault]:
    """That a group may write this directory. Its files still have to be of trusted users."""
    return frozenset(f for f in opened.faults if f.gid is not None and f.path == opened.place)


def find_refusal(opened: Opened, path: str, known: Set[TrustFault]) -> str:
    """Why the file or directory at this path is not used. Empty if it is.

    For root everything on the way counts. For others the way above is only warned of.
    """
    folder, name = os.path.split(os.path.abspath(path))
    own = (os.path.join(os.path.realpath(folder), name), opened.place)
    for fault in opened.faults:
        if fault not in known and (os.geteuid() == 0 or fault.path in own):
            return _word_fault(fault) if fault.path in own else fault.text
    return ""


def require_own_folder(base: str, name: str, trust: CronTrust) -> str:
    """Make the folder `BASE/NAME`, and return its path. A group that may write the base may write
    it too. Raises OSError, also if somebody else could have put it there: a link would lead the
    writer elsewhere."""
    path = base
    for step in name.split("/"):
        path = os.path.join(path, step)
        with suppress(FileExistsError):
            os.mkdir(path, 0o755)
        with open_judged(path, trust.uids, trust.gids, os.O_RDONLY | os.O_DIRECTORY) as opened:
            known = frozenset(fault for fault in opened.faults if fault.gid is not None)
            if wrong := find_refusal(opened, path, known):
                raise PermissionError(1, wrong, path)
    return path


def _word_fault(fault: TrustFault) -> str:
    if not fault.remedy:
        return f"{fault.why}, whom `trust` does not name"
    who = "everybody" if fault.gid is None else "its group"
    return f"{who} may write to it ({fault.remedy})"
