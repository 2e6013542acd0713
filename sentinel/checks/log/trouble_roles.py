"""Which known errors are causes, which are consequences, and which mean nothing at the end of a
training."""

from sentinel.checks.log.known_troubles import TROUBLE_KINDS
from sentinel.checks.log.trouble_kind import (
    LAST_WORDS_KIND,
    NETWORK_EXCEPTION_KIND,
    NEW_LINE_KIND,
    UNKNOWN_KIND,
)

ECHO_KIND_NAMES = frozenset(kind.name for kind in TROUBLE_KINDS if kind.echo)
"""Errors that are consequences of others, by name."""

ROOT_KIND_NAMES = frozenset(kind.name for kind in TROUBLE_KINDS if kind.root)
"""Errors that no other error causes, by name."""

PARTING_KIND_NAMES = frozenset(kind.name for kind in TROUBLE_KINDS if kind.parting) | {
    NETWORK_EXCEPTION_KIND,
    LAST_WORDS_KIND,
    NEW_LINE_KIND,
    UNKNOWN_KIND,
}
"""Errors that mean nothing after the trainer has said that it is done, by name. An exception does:
what comes after the last step, such as saving the model, failed."""
