"""Which outbox rows are sent next, and how long a failed one waits. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.owners import group_without_owner, is_recipient_failure
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.errors import ChannelError
from sentinel.core.model import Notification, Outgoing, Status

REDIRECTED_MARK = "given to the fallback"
"""What the history says of a row that another channel tells instead."""

Subject = tuple[str, str, str, str]
Delivery = tuple[Outgoing, Instant | None, str]
"""A row, when it was taken, and what was answered; as in state.Store.read_deliveries."""


class EndDuty(Struct, frozen=True):
    """Of an end: whether the fallback has to tell it `too`, for it told the beginning, and
    whether it does so `alone`, for the channel itself was never heard."""

    too: bool
    alone: bool


def row_subject(row: Outgoing) -> Subject:
    """What the row is about on its channel: the order of such rows is kept."""
    n = row.notification
    return row.channel, n.cluster, n.check, n.subject


def is_beginning(n: Notification) -> bool:
    """Whether it is the first that somebody hears of a trouble."""
    return n.reason in ("firing", "flapping")


def is_ending(n: Notification) -> bool:
    """Whether it says that all is good again."""
    return n.reason in ("resolved", "gone") or (n.reason == "settled" and n.status is Status.OK)


def is_answerable(n: Notification) -> bool:
    """Whether it is about a trouble that a person may still acknowledge or silence."""
    return bool(n.alert) and not is_ending(n) and n.reason not in ("action", "test", "digest")


def find_overtaken(rows: Iterable[Outgoing], taken: Iterable[Outgoing]) -> list[Outgoing]:
    """What must not be sent any more, because a newer row about the same subject was taken:
    a `firing` that comes after its `resolved` is worse than none."""
    told = sorted(filter(_is_news, taken), key=lambda r: r.seq)
    newest = {row_subject(row): row.seq for row in told}
    return [row for row in rows if _is_news(row) and row.seq < newest.get(row_subject(row), 0)]


class RefusedRows:
    """What one channel did not take, while its queue goes on: by subject, for there may be very
    many."""

    def __init__(self, rows: Iterable[Outgoing]) -> None:
        self._rows: dict[Subject, list[Outgoing]] = {}
        self._unheard: set[Subject] = set()
        for row in rows:
            self._rows.setdefault(row_subject(row), []).append(row)

    def add_refused(self, rows: Iterable[Outgoing]) -> None:
        """These were refused for good just now."""
        for row in rows:
            self._rows.setdefault(row_subject(row), []).append(row)
            if is_beginning(row.notification):
                self._unheard.add(row_subject(row))

    def hold_back(self, row: Outgoing) -> bool:
        """Whether it is the end of what was refused just now."""
        return row_subject(row) in self._unheard and is_ending(row.notification)

    def overtaken_by(self, taken: Sequence[Outgoing]) -> list[Outgoing]:
        """What nobody needs any more, now that these were taken."""
        late: list[Outgoing] = []
        for row in filter(_is_news, taken):
            about = row_subject(row)
            self._unheard.discard(about)
            late += find_overtaken(self._rows.get(about, ()), [row])
            self._rows[about] = [r for r in self._rows.get(about, ()) if r.seq > row.seq]
        return late


def decide_end_duty(row: Outgoing, past: Iterable[Delivery], fallback: str) -> EndDuty:
    """Whose it is to tell an end, from the deliveries of its alert."""
    past = list(past)
    own = [d for d in past if d[0].channel == row.channel and d[0].seq != row.seq]
    there = {d[0].notification.key for d in past if d[0].channel == fallback}
    given = any(d[2] == REDIRECTED_MARK and d[0].notification.key in there for d in own)
    known = any(d[1] is not None for d in own)
    return EndDuty(given and row.notification.key not in there, given and not known)


def _is_news(row: Outgoing) -> bool:
    """Whether it says how the trouble stands; an action or a test does not."""
    return row.notification.reason not in ("action", "test", "digest")


FIRST_WAIT_S = 2.0
MAX_WAIT_S = 300.0
REFUSED_WAIT_S = 3600.0
GIVE_UP_S = 7 * 86400.0
"""Seconds. A refusal may be a mistake in the configuration: it is tried again, but hourly."""

FALLBACK_AFTER_S = 300.0
"""Seconds after which a row that its channel does not deliver goes to the fallback."""

HOUR_S = 3600.0
BLOCKING_ATTEMPTS = 10
"""After so many failures a row holds up only its own alert, no longer its channel."""

Group = tuple[str, str]
"""A channel and one of the groups it is told of."""

_NEVER_NOTIFIED: Mapping[Group, Instant] = {}


def due_rows(
    rows: Sequence[Outgoing], now: Instant, told: Mapping[Group, Instant] = _NEVER_NOTIFIED
) -> list[Outgoing]:
    """The rows to send now, in order: none overtakes an earlier one of its channel.

    Only a row that was refused for good, or failed very often, lets others pass. What was
    refused lets newer news of its own subject pass too (see `find_overtaken`), but never an end:
    nobody is told of the end of what they have not heard of. `told`: when a channel was last
    told of a group.
    """
    return [row for row in _unblocked_rows(rows, now, told) if is_due(row, now)]


def is_due(row: Outgoing, now: Instant) -> bool:
    """Whether the row's wait is over; a wall clock set back does not prolong it."""
    if _is_gathering(row, now):
        return False
    return (
        row.tried is None or row.tried.wall > now.wall or get_elapsed_s(row.tried, now) >= row.wait
    )


def next_wait(
    rows: Sequence[Outgoing], now: Instant, told: Mapping[Group, Instant] = _NEVER_NOTIFIED
) -> float | None:
    """Seconds until some row can be sent; None when nothing waits."""
    waits = [_row_wait(row, now) for row in _unblocked_rows(rows, now, told)]
    return min(waits) if waits else None


def bundle_messages(rows: Sequence[Outgoing]) -> list[list[Outgoing]]:
    """Rows of one channel as messages: those of a group together, each subject once in a
    message, and no word about a subject before an earlier one."""
    messages: list[list[Outgoing]] = []
    place: dict[str, int] = {}
    last: dict[tuple[str, str], int] = {}
    for row in rows:
        about = (row.notification.check, row.notification.subject)
        at = place.get(row.group, -1)
        if not row.group or at <= last.get(about, -1):
            at = place[row.group] = len(messages)
            messages.append([])
        messages[at].append(row)
        last[about] = at
    return messages


def hourly_room(sent: Sequence[Instant], per_hour: int, now: Instant) -> int | None:
    """How many messages may still go within the hour; None where there is no cap."""
    if not per_hour:
        return None
    return max(0, per_hour - sum(get_elapsed_s(at, now) < HOUR_S for at in sent))


def hourly_cap_reopens(sent: Sequence[Instant], per_hour: int, now: Instant) -> float:
    """Seconds until a full hour has room again."""
    within = sorted(get_elapsed_s(at, now) for at in sent if get_elapsed_s(at, now) < HOUR_S)
    return HOUR_S - within[per_hour - 1] if len(within) >= per_hour else 0.0


def undelivered_rows(
    rows: Iterable[Outgoing], fallbacks: Mapping[str, str], now: Instant
) -> list[Outgoing]:
    """Rows that their channel has refused or failed to deliver for too long, and that have
    somebody to stand in."""
    return [
        row
        for row in rows
        if row.attempts
        and fallbacks.get(row.channel)
        and (row.permanent or get_elapsed_s(row.created, now) >= FALLBACK_AFTER_S)
    ]


def redirect_row(row: Outgoing, channel: str, now: Instant) -> Outgoing:
    """The row anew for another channel, with a word about why it comes this way."""
    why = f"sent here because {row.channel} does not deliver: {row.error}"
    message = replace(
        row.notification, note="; ".join(n for n in (row.notification.note, why) if n)
    )
    return Outgoing(
        channel=channel, notification=message, created=now, group=group_without_owner(row.group)
    )


def after_failure(row: Outgoing, error: ChannelError, now: Instant) -> Outgoing:
    """The row as it waits for its next attempt: twice as long each time, up to a bound. What is
    one user's own trouble counts as failed very often: it holds up nobody else."""
    attempts = row.attempts + 1
    if is_recipient_failure(row, error):
        attempts = max(attempts, BLOCKING_ATTEMPTS)
    wait = min(MAX_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempts - 1, 20))
    wait = REFUSED_WAIT_S if error.permanent else max(wait, min(error.retry_after or 0.0, 3600.0))
    return replace(
        row, attempts=attempts, tried=now, wait=wait, permanent=error.permanent, error=str(error)
    )


def expired_rows(rows: Sequence[Outgoing]) -> list[Outgoing]:
    """Rows that were tried for too long to matter to anybody: what a service owes that was off
    meanwhile is tried once more. With a beginning goes the end that waits for it."""
    old = {r.seq: r for r in rows if r.tried and get_elapsed_s(r.created, r.tried) > GIVE_UP_S}
    unheard = {
        (r.channel, r.notification.alert) for r in old.values() if is_beginning(r.notification)
    }
    ended = {
        r.seq: r
        for r in rows
        if is_ending(r.notification) and (r.channel, r.notification.alert) in unheard
    }
    return list({**old, **ended}.values())


def _unblocked_rows(
    rows: Sequence[Outgoing], now: Instant, told: Mapping[Group, Instant]
) -> Iterator[Outgoing]:
    """The rows that no earlier one holds up, due or not; `hold` is as their group has it."""
    held: set[tuple[str, ...]] = set()
    unheard: set[Subject] = set()
    opening, over = _group_openings(rows, now, told), _end_times(rows)
    for row in sorted(rows, key=lambda r: r.seq):
        about = row_subject(row)
        if (row.channel,) in held or about in held:
            continue
        if about in unheard and is_ending(row.notification):
            continue
        wait = opening[row.channel, row.group]
        row = replace(row, hold=get_elapsed_s(row.created, now) + wait if wait > 0 else 0.0)
        row = replace(row, wait=0.0) if _is_worth_a_retry(row, over.get(about)) else row
        _track_refused(row, about, unheard, now)
        yield row
        if _is_gathering(row, now):
            held.add(about)
        elif not is_due(row, now) and not row.permanent:
            held.add(about if row.attempts >= BLOCKING_ATTEMPTS else (row.channel,))


def _end_times(rows: Iterable[Outgoing]) -> dict[Subject, Instant]:
    """When the ends that wait were committed."""
    return {row_subject(row): row.created for row in rows if is_ending(row.notification)}


def _is_worth_a_retry(row: Outgoing, over: Instant | None) -> bool:
    """A refused beginning is tried once more when its end has come, which waits for it."""
    refused = row.permanent and is_beginning(row.notification) and row.tried is not None
    return bool(refused and over and row.tried and _is_before(row.tried, over))


def _is_before(first: Instant, second: Instant) -> bool:
    if first.boot and first.boot == second.boot:
        return first.mono < second.mono
    return first.wall < second.wall


def _track_refused(row: Outgoing, about: Subject, unheard: set[Subject], now: Instant) -> None:
    """Keep count of the subjects whose beginning was refused, with no later news to come; one
    that is tried again now goes first, and its end with it."""
    if row.permanent and is_beginning(row.notification) and not is_due(row, now):
        unheard.add(about)
    elif not row.permanent:
        unheard.discard(about)


def _group_openings(
    rows: Sequence[Outgoing], now: Instant, told: Mapping[Group, Instant]
) -> dict[Group, float]:
    """Seconds until each group may be told: when the first of its rows has waited enough, and
    not sooner after the last message about it than its rows say."""
    waits: dict[Group, float] = {}
    for row in rows:
        group = (row.channel, row.group)
        own = _own_wait(row, now, told.get(group))
        waits[group] = min(own, waits.get(group, own))
    return waits


def _own_wait(row: Outgoing, now: Instant, told: Instant | None) -> float:
    if row.attempts:
        return 0.0
    gathering = _seconds_left(row.hold, row.created, now)
    return (
        max(gathering, _seconds_left(row.interval, told, now)) if row.group and told else gathering
    )


def _seconds_left(length: float, since: Instant, now: Instant) -> float:
    """Seconds left; none where the wall clock was set back across a boot."""
    return max(0.0, length - get_elapsed_s(since, now)) if since.wall <= now.wall else 0.0


def _is_gathering(row: Outgoing, now: Instant) -> bool:
    """Whether the row waits for others of its group; all go when the first has waited enough."""
    return (
        not row.attempts
        and row.created.wall <= now.wall
        and get_elapsed_s(row.created, now) < row.hold
    )


def _row_wait(row: Outgoing, now: Instant) -> float:
    if is_due(row, now):
        return 0.0
    return (
        row.hold - get_elapsed_s(row.created, now)
        if row.tried is None
        else row.wait - get_elapsed_s(row.tried, now)
    )
