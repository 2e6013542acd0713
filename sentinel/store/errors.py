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
"""Errors of a directory that is full, failing or away. They may pass."""


class StateUnavailable(StoreError):
    """The state cannot be read or written just now; the same may work later."""


class ExcessiveAnswer(StateUnavailable):
    """The server of the state sent more than any state has."""


class StateRefused(StoreError):
    """The state belongs to another user, or this user may not write there; the text has the
    remedy."""


class StateDamaged(StoreError):
    """The state is damaged, removed or replaced; `SqlStore.replace_damaged` begins a new one."""


class StateVersionMismatch(StoreError):
    """A newer or an older sentinel wrote the state; this one does not touch it."""


class Unstorable(StoreError):
    """Data of a check have no stored form, so the same write fails at every try."""
