"""The one error of this package."""

from sentinel.core.errors import CannotTell


class Unreadable(CannotTell):
    """Text that is not of a known form: nothing is learnt from it, least of all that all is well."""
