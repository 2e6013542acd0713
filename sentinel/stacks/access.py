"""Evidence that the job's owner may read, and nobody else but who keeps it.

By an entry of a POSIX access list, so that the owner can change or remove nothing: what is kept by
root is read by root again. The form: posix_acl_xattr.h of Linux; where a file system has no such
lists (NFSv4, or a mount without `acl`) the evidence stays with who keeps it.
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


def share(place: str, user: str, names: Iterable[str]) -> bool:
    """Let the user read these files of the folder; whether that was possible. One's own need nothing,
    and a user that this host does not know gets nothing."""
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
                _grant(path, uid, _READ)
        _grant(place, uid, _READ | _ENTER)
    except OSError:
        return False
    return True


def _grant(path: str, uid: int, may: int) -> None:
    own = may | _WRITE
    entries = ((_OWNER, own, _NOBODY), (_USER, may, uid), (_GROUP, 0, _NOBODY), (_MASK, may, _NOBODY), (_OTHER, 0, _NOBODY))  # fmt: skip
    data = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    os.setxattr(path, _NAME, data, follow_symlinks=False)
