"""The one error of this package."""

from sentinel.core.errors import CannotTell


class Unreadable(CannotTell):
    """A text has no known form, so nothing is learnt from it, least of all that the GPU is well."""
