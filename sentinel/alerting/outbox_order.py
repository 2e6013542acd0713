"""Which message about a subject takes the place of which: order, ends, fallbacks. Pure."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from sentinel.core.clock import Instant
from sentinel.core.model import Notification, Outgoing, Status

GIVEN = "given to the fallback"
"""What the history says of a row that another channel tells instead."""

Subject = tuple[str, str, str, str]
Delivery = tuple[Outgoing, Instant | None, str]
"""A row, when it was taken, and what was answered; as in ports.Store.deliveries."""


class Entrusted(Struct, frozen=True):
    """Of an end: whether the fallback has to tell it `too`, for it told the beginning, and
    whether it does so `alone`, for the channel itself was never heard."""

    too: bool
    alone: bool


def subject(row: Outgoing) -> Subject:
    """What the row is about on its channel: the order of such rows is kept."""
    n = row.notification
    return row.channel, n.cluster, n.check, n.subject


def begins(n: Notification) -> bool:
    """Whether it is the first that somebody hears of a trouble."""
    return n.reason in ("firing", "flapping")


def ends(n: Notification) -> bool:
    """Whether it says that all is good again."""
    return n.reason in ("resolved", "gone") or (n.reason == "settled" and n.status is Status.OK)


def answerable(n: Notification) -> bool:
    """Whether it is about a trouble that a person may still acknowledge or silence."""
    return bool(n.alert) and not ends(n) and n.reason not in ("action", "test", "digest")


def overtaken(rows: Iterable[Outgoing], taken: Iterable[Outgoing]) -> list[Outgoing]:
    """What must not be sent any more, because a newer row about the same subject was taken:
    a `firing` that comes after its `resolved` is worse than none."""
    told = sorted(filter(_is_news, taken), key=lambda r: r.seq)
    newest = {subject(row): row.seq for row in told}
    return [row for row in rows if _is_news(row) and row.seq < newest.get(subject(row), 0)]


class Refused:
    """What one channel did not take, while its queue goes on: by subject, for there may be very
    many."""

    def __init__(self, rows: Iterable[Outgoing]) -> None:
        self._rows: dict[Subject, list[Outgoing]] = {}
        self._unheard: set[Subject] = set()
        for row in rows:
            self._rows.setdefault(subject(row), []).append(row)

    def add(self, rows: Iterable[Outgoing]) -> None:
        """These were refused for good just now."""
        for row in rows:
            self._rows.setdefault(subject(row), []).append(row)
            if begins(row.notification):
                self._unheard.add(subject(row))

    def hold_back(self, row: Outgoing) -> bool:
        """Whether it is the end of what was refused just now."""
        return subject(row) in self._unheard and ends(row.notification)

    def overtaken_by(self, taken: Sequence[Outgoing]) -> list[Outgoing]:
        """What nobody needs any more, now that these were taken."""
        late: list[Outgoing] = []
        for row in filter(_is_news, taken):
            about = subject(row)
            self._unheard.discard(about)
            late += overtaken(self._rows.get(about, ()), [row])
            self._rows[about] = [r for r in self._rows.get(about, ()) if r.seq > row.seq]
        return late


def entrusted(row: Outgoing, past: Iterable[Delivery], fallback: str) -> Entrusted:
    """Whose it is to tell an end, from the deliveries of its alert."""
    past = list(past)
    own = [d for d in past if d[0].channel == row.channel and d[0].seq != row.seq]
    there = {d[0].notification.key for d in past if d[0].channel == fallback}
    given = any(d[2] == GIVEN and d[0].notification.key in there for d in own)
    known = any(d[1] is not None for d in own)
    return Entrusted(given and row.notification.key not in there, given and not known)


def _is_news(row: Outgoing) -> bool:
    """Whether it says how the trouble stands; an action or a test does not."""
    return row.notification.reason not in ("action", "test", "digest")
