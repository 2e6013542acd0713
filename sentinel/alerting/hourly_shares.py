"""Shares `per_hour` of a channel between the owners of its messages. Pure.

An owner is the user whose job or log a message is about; nodes, disks and what is about several
users are one owner more. Who is alone has the whole hour. What one owner has used up is not taken
from another: everybody may send as much as an equal share of the hour.
"""

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct

from sentinel.alerting.outbox import HOUR_S, is_beginning, is_ending, row_subject
from sentinel.alerting.owners import Messages, find_message_owner
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.model import Outgoing, Sending, Status

MAX_BEGINNINGS = 10_000
"""For how many alerts it is remembered that their beginning counted."""


class CountedMessage(Struct, frozen=True):
    """A message that counts, and its owner."""

    at: Instant
    owner: str


class HourlyShares:
    """What one channel has sent within the hour. `per_hour` 0: no cap."""

    def __init__(self) -> None:
        self.per_hour = 0
        self._sent: list[CountedMessage] = []
        self._begun: dict[str, Instant] = {}

    def count_message(self, rows: Sequence[Outgoing | Sending], at: Instant) -> None:
        """Note that the channel has accepted this message. The end of an alert whose beginning
        counted is free, once."""
        self._forget_old(at)
        if not self.is_free(rows):
            self._sent.append(CountedMessage(at, find_message_owner(rows)))
            self._begun |= {r.notification.alert: at for r in rows if is_beginning(r.notification)}
            for alert in [*self._begun][:-MAX_BEGINNINGS]:
                del self._begun[alert]
        for row in rows:
            if is_ending(row.notification):
                self._begun.pop(row.notification.alert, None)

    def is_free(self, rows: Sequence[Outgoing | Sending]) -> bool:
        """Whether the message consists of ends whose beginnings counted."""
        return all(is_ending(r.notification) and r.notification.alert in self._begun for r in rows)

    def get_room(self, owner: str, now: Instant) -> int | None:
        """How many messages the owner may still have within the hour. None without a cap."""
        if not self.per_hour:
            return None
        self._forget_old(now)
        counted = [one.owner for one in self._sent]
        share = self.per_hour // len({*counted, owner})
        return max(0, self.per_hour - len(counted), share - counted.count(owner))

    def get_reopening(self, now: Instant) -> float:
        """Seconds until the oldest message no longer counts."""
        self._forget_old(now)
        ages = [get_elapsed_s(one.at, now) for one in self._sent]
        return HOUR_S - max(ages) if ages else 0.0

    def choose_message(self, messages: Messages, now: Instant) -> int | None:
        """The place of the message that is sent next; None if all of them have to wait. While
        another's message waits, an owner has at most half of the hour. Without a cap it is the first."""
        if not self.per_hour:
            return 0 if messages else None
        owners = [find_message_owner(message) for message in messages]
        open_to = {owner for owner in owners if self.get_room(owner, now) != 0}
        half = max(1, self.per_hour // 2)
        counted = [one.owner for one in self._sent]
        modest = {owner for owner in open_to if counted.count(owner) < half}
        allowed = modest if len(open_to) > 1 and modest else open_to
        return next(
            (
                place
                for place, message in enumerate(messages)
                if owners[place] in allowed or self.is_free(message)
            ),
            None,
        )

    def _forget_old(self, now: Instant) -> None:
        self._sent = [one for one in self._sent if get_elapsed_s(one.at, now) < HOUR_S]


def put_critical_first(messages: Messages) -> Messages:
    """The messages with the critical ones first. Those about one subject keep their order, so that
    an earlier one goes before a critical one of its subject."""
    urgent = set[tuple[str, str, str, str]]()
    ranks: dict[int, int] = {}
    for place in reversed(range(len(messages))):
        about = {row_subject(row) for row in messages[place]}
        if about & urgent or any(_is_critical(row) for row in messages[place]):
            urgent |= about
            ranks[place] = 0
    order = sorted(range(len(messages)), key=lambda place: (ranks.get(place, 1), place))
    return [messages[place] for place in order]


def find_capped_rows(
    rows: Collection[Outgoing], get_shares: Callable[[str], HourlyShares], now: Instant
) -> tuple[set[int], list[float]]:
    """The rows (`seq`) whose owner has no room on their channel, and the seconds until one of these
    channels may have room again."""
    capped, waits = set[int](), dict[str, float]()
    for row in rows:
        shares = get_shares(row.channel)
        if shares.get_room(find_message_owner([row]), now) == 0 and not shares.is_free([row]):
            capped.add(row.seq)
            waits[row.channel] = shares.get_reopening(now)
    return capped, [*waits.values()]


def _is_critical(row: Outgoing) -> bool:
    return row.notification.severity is Status.CRITICAL and not is_ending(row.notification)
