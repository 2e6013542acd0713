"""Who else could change what sentinel runs, believes and writes."""

from collections.abc import Callable, Iterator, Sequence

from sentinel.core.errors import CannotTell
from sentinel.doctor import DoctorItem, make_ok_item, make_unknown_item, make_warning_item

NAME = "trust"
REMEDY = (
    "take the right to write away (chmod, chown), or name who may in `trust` and `trust_groups`;"
    " a secret needs https, and a script of cron a name of its own: docs/safety.md"
)


def check_trust(list_doubts: Callable[[], Sequence[str]]) -> Iterator[DoctorItem]:
    """An item for each doubt."""
    try:
        doubts = list_doubts()
    except CannotTell as error:
        yield make_unknown_item(NAME, str(error), "is its file system mounted, and does it answer?")
        return
    if not doubts:
        yield make_ok_item(
            NAME, "nobody else could change what the configuration names, or get its secrets"
        )
    for doubt in doubts:
        yield make_warning_item(NAME, doubt, REMEDY)
