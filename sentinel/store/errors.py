"""What can go wrong with the state beyond core.errors, by what follows from it.

StoreError
├── Unavailable   cannot be read or written now, may pass: full disk, lost connection
├── Refused       this user may not read and write it
├── Damaged       what is stored makes no sense; set aside and start afresh
├── OtherVersion  written by a newer or an older sentinel; nothing is touched
└── Unstorable    the caller's data have no stored form; trying again is of no use
"""

import errno

from sentinel.core.errors import StoreError

PASSING_ERRNOS = {errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
"""What a directory says that is full, hurt or away, and may not say later."""


class StateUnavailable(StoreError):
    """The state cannot be read or written just now; the same may work later."""


class StateRefused(StoreError):
    """The state belongs to another user, or lies where nobody may write; the text has the remedy."""


class StateDamaged(StoreError):
    """The state is damaged, removed or replaced; `SqlStore.replace_damaged` goes on with a new one."""


class StateVersionMismatch(StoreError):
    """A newer or an older sentinel wrote the state; this one does not touch it."""


class Unstorable(StoreError):
    """Data of a check that cannot be written, whatever the state of the state."""
