"""What this environment can and cannot do; each trouble comes with its remedy."""

from msgspec import Struct

from sentinel.core.model import Status


class Item(Struct, frozen=True):
    """One thing looked at. `remedy` is what to do about anything that is not ok."""

    name: str
    status: Status
    text: str
    remedy: str = ""


def ok(name: str, text: str) -> Item:
    """Works."""
    return Item(name, Status.OK, text)


def warn(name: str, text: str, remedy: str) -> Item:
    """Something will not work here; the rest does."""
    return Item(name, Status.WARNING, text, remedy)


def bad(name: str, text: str, remedy: str) -> Item:
    """sentinel cannot do its work."""
    return Item(name, Status.CRITICAL, text, remedy)


def unknown(name: str, text: str, remedy: str = "") -> Item:
    """It could not be found out."""
    return Item(name, Status.UNKNOWN, text, remedy)
