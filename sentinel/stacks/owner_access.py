"""Lets the owner of a job read its evidence. Otherwise only the user who stores it can read it.

An entry of a POSIX access list does that, so that the owner can neither change nor remove anything:
evidence that root stored is read by root again. The format is in posix_acl_xattr.h of Linux. If a
file system has no such lists (NFSv4, or a mount without `acl`), only the user who stores the
evidence can read it.
"""

from __future__ import annotations

import os
import pwd
import struct
from collections.abc import Iterable

_NAME = "system.posix_acl_access"
_OWNER, _USER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_NOBODY = 0xFFFFFFFF
_READ, _WRITE, _ENTER = 4, 2, 1


def share_with_owner(place: str, user: str, names: Iterable[str]) -> bool:
    """Let the user read these files of the folder. Returns whether that was possible. The user who
    stores the evidence needs nothing. A user that this host does not know gets nothing."""
    try:
        uid = pwd.getpwnam(user).pw_uid
    except KeyError:
        return False
    if uid == os.geteuid():
        return True
    try:
        for name in names:
            path = os.path.join(place, name)
            if os.path.lexists(path):
                _grant_reading(path, uid, _READ)
        _grant_reading(place, uid, _READ | _ENTER)
    except OSError:
        return False
    return True


def _grant_reading(path: str, uid: int, may: int) -> None:
    own = may | _WRITE
    entries = ((_OWNER, own, _NOBODY), (_USER, may, uid), (_GROUP, 0, _NOBODY), (_MASK, may, _NOBODY), (_OTHER, 0, _NOBODY))  # fmt: skip
    data = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    os.setxattr(path, _NAME, data, follow_symlinks=False)
