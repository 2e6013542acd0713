"""Messages for the users of jobs: told apart by user, and so many a day to each. Pure.

Whose a message is stands at the end of its row's group: so it is stored with the row, and known
of what was sent before a restart.
"""

from collections.abc import Iterable, Mapping, Sequence

from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.errors import ChannelError
from sentinel.core.model import Outgoing

DAY_S = 86400.0
OWNER_LABEL = "user"
"""The label of an alert that names whose it is."""

RECIPIENT_REASON = "recipient"
"""The reason of a ChannelError that is about this recipient alone."""

_OWNER_MARK = "\0owner="

Messages = list[list[Outgoing]]


def group_for_owner(group: str, owner: str) -> str:
    """The group for a message that only this user gets."""
    return f"{group}{_OWNER_MARK}{owner}"


def owner_of(group: str) -> str | None:
    """Whose the message is; None on a channel that tells all of it to the same people."""
    _, mark, owner = group.rpartition(_OWNER_MARK)
    return owner if mark else None


def group_without_owner(group: str) -> str:
    """The group without its user, for a channel that does not tell them apart."""
    return group.partition(_OWNER_MARK)[0]


def is_recipient_failure(row: Outgoing, error: ChannelError) -> bool:
    """Whether the failure is that of one user, and holds up nobody else."""
    return error.reason == RECIPIENT_REASON and owner_of(row.group) is not None


def daily_cap_reopens(sent: Sequence[Instant], per_day: int, now: Instant) -> float:
    """Seconds until a user may be told again; 0 where they may."""
    within = sorted(get_elapsed_s(at, now) for at in sent if get_elapsed_s(at, now) < DAY_S)
    return DAY_S - within[per_day - 1] if len(within) >= per_day else 0.0


def ration_messages(
    messages: Messages, sent: Mapping[str, Sequence[Instant]], per_day: int, now: Instant
) -> Messages:
    """The messages with no more to each user than a day has left: the last holds all the rest."""
    kept: dict[str, Messages] = {}
    for message in messages:
        owner = owner_of(message[0].group) or ""
        used = sum(get_elapsed_s(at, now) < DAY_S for at in sent.get(owner, ()))
        mine = kept.setdefault(owner, [])
        if len(mine) < max(1, per_day - used):
            mine.append(message)
        else:
            mine[-1] = [*mine[-1], *message]
    return _sort_messages(messages, kept)


def _sort_messages(messages: Messages, kept: Mapping[str, Messages]) -> Messages:
    """As they would have come, whoever has fewer now."""
    left = {owner: iter(mine) for owner, mine in kept.items()}
    found = (next(left[owner_of(m[0].group) or ""], None) for m in messages)
    return [message for message in found if message]


def owners_at_cap(
    rows: Iterable[Outgoing],
    sent: Mapping[tuple[str, str], Sequence[Instant]],
    caps: Mapping[str, int],
    now: Instant,
) -> dict[tuple[str, str], float]:
    """Channel and user where the day is full, with the seconds until it is not."""
    found = {(r.channel, owner_of(r.group) or "") for r in rows if caps.get(r.channel)}
    waits = {key: daily_cap_reopens(sent.get(key, ()), caps[key[0]], now) for key in found}
    return {key: wait for key, wait in waits.items() if wait > 0}
