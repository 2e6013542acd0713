"""Messages for the users of jobs: they are separated by user, and each user gets a limited number
per day. Pure.

The owner of a message is stored in its row's bundle. So the owners of messages from before a
restart are known too.
"""

from collections.abc import Iterable, Mapping, Sequence

from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.errors import ChannelError
from sentinel.core.model import Outgoing, Sending

DAY_S = 86400.0
OWNER_LABEL = "user"
"""The label of an alert that names its owner."""

RECIPIENT_REASON = "recipient"
"""The reason of a ChannelError that affects only this recipient."""

Messages = list[list[Outgoing]]


def find_message_owner(message: Sequence[Outgoing | Sending]) -> str:
    """The user whose job or file the message is about. Empty if it is about no user, or about
    several."""
    users = {row.bundle.owner or row.notification.labels.get(OWNER_LABEL, "") for row in message}
    return users.pop() if len(users) == 1 else ""


def is_recipient_failure(row: Outgoing, error: ChannelError) -> bool:
    """Whether only one user is affected by the failure, so that others do not wait."""
    return error.reason == RECIPIENT_REASON and row.bundle.owner is not None


def daily_cap_reopens(sent: Sequence[Instant], per_day: int, now: Instant) -> float:
    """Seconds until a user may get another message. 0 means now."""
    within = sorted(get_elapsed_s(at, now) for at in sent if get_elapsed_s(at, now) < DAY_S)
    return DAY_S - within[per_day - 1] if len(within) >= per_day else 0.0


def ration_messages(
    messages: Messages, sent: Mapping[str, Sequence[Instant]], per_day: int, now: Instant
) -> Messages:
    """The messages within each user's daily limit. The last one of the day holds all that remain."""
    kept: dict[str, Messages] = {}
    for message in messages:
        owner = message[0].bundle.owner or ""
        used = sum(get_elapsed_s(at, now) < DAY_S for at in sent.get(owner, ()))
        mine = kept.setdefault(owner, [])
        if len(mine) < max(1, per_day - used):
            mine.append(message)
        else:
            mine[-1] = [*mine[-1], *message]
    return _sort_messages(messages, kept)


def _sort_messages(messages: Messages, kept: Mapping[str, Messages]) -> Messages:
    """The kept messages in their original order. A user who is over the limit gets fewer."""
    left = {owner: iter(mine) for owner, mine in kept.items()}
    found = (next(left[m[0].bundle.owner or ""], None) for m in messages)
    return [message for message in found if message]


def owners_at_cap(
    rows: Iterable[Outgoing],
    sent: Mapping[tuple[str, str], Sequence[Instant]],
    caps: Mapping[str, int],
    now: Instant,
) -> dict[tuple[str, str], float]:
    """The pairs of channel and user for which a message waits, and whose user has reached the
    channel's daily limit. Each has the seconds until the user may get another message there."""
    found = {(r.channel, r.bundle.owner or "") for r in rows if caps.get(r.channel)}
    waits = {key: daily_cap_reopens(sent.get(key, ()), caps[key[0]], now) for key in found}
    return {key: wait for key, wait in waits.items() if wait > 0}
