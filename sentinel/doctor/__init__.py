"""What this environment can and cannot do; each trouble comes with its remedy."""

from msgspec import Struct

from sentinel.core.model import Status


class DoctorItem(Struct, frozen=True):
    """One thing that was checked. `remedy` says what to do if it is not ok."""

    name: str
    status: Status
    text: str
    remedy: str = ""


def make_ok_item(name: str, text: str) -> DoctorItem:
    """Works."""
    return DoctorItem(name, Status.OK, text)


def make_warning_item(name: str, text: str, remedy: str) -> DoctorItem:
    """Something will not work here; the rest does."""
    return DoctorItem(name, Status.WARNING, text, remedy)


def make_failure_item(name: str, text: str, remedy: str) -> DoctorItem:
    """sentinel cannot do its work."""
    return DoctorItem(name, Status.CRITICAL, text, remedy)


def make_unknown_item(name: str, text: str, remedy: str = "") -> DoctorItem:
    """It could not be found out."""
    return DoctorItem(name, Status.UNKNOWN, text, remedy)
