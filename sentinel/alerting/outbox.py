"""Decides which outbox rows are sent next, and how long a failed row waits. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.owners import is_recipient_failure
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.errors import ChannelError
from sentinel.core.holds import MessageGroup
from sentinel.core.letters import WISH_REASON
from sentinel.core.model import DOUBT_MARK, Notification, Outgoing, SentNotification, Status

REDIRECTED_MARK = "given to the fallback"
"""The receipt in the history of a row that another channel sends instead."""

_ASIDE_REASONS = ("action", "test", "digest", WISH_REASON)
"""Reasons of messages that tell no status of an alert."""

_UNSHARED_REASONS = ("repeat", "test", WISH_REASON)
"""Reasons of messages that only their own channel gets, whatever it answers."""

Subject = tuple[str, str, str, str]
Delivery = tuple[Outgoing, Instant | None, str]
"""A row, the time when it was accepted, and the answer, as in state.Store.read_deliveries."""


class EndDuty(Struct, frozen=True):
    """Who reports an end. `too`: the fallback reports it, because it reported the beginning.
    `alone`: only the fallback does, because the channel itself never delivered a message about it.
    """

    too: bool
    alone: bool


def row_subject(row: Outgoing) -> Subject:
    """The subject of the row on its channel. Rows of one subject keep their order."""
    n = row.notification
    return row.channel, n.cluster, n.check, n.subject


def is_beginning(n: Notification | SentNotification) -> bool:
    """Whether it is the first message about a problem."""
    return n.reason in ("firing", "flapping")


def is_ending(n: Notification | SentNotification) -> bool:
    """Whether it says that the problem is over."""
    return n.reason in ("resolved", "gone") or (n.reason == "settled" and n.status is Status.OK)


def is_letter(row: Outgoing) -> bool:
    """Whether it is for the author of a wish alone: nobody gets it in their place."""
    return row.notification.reason == WISH_REASON


def is_answerable(n: Notification) -> bool:
    """Whether it is about a problem that a person can still acknowledge or silence."""
    return bool(n.alert) and not is_ending(n) and n.reason not in _ASIDE_REASONS


def find_overtaken(rows: Iterable[Outgoing], taken: Iterable[Outgoing]) -> list[Outgoing]:
    """Rows that must not be sent any more, because a newer row about the same subject was accepted.

    A `firing` that arrives after its `resolved` is worse than none.
    """
    told = sorted(filter(_is_news, taken), key=lambda r: r.seq)
    newest = {row_subject(row): row.seq for row in told}
    return [row for row in rows if _is_news(row) and row.seq < newest.get(row_subject(row), 0)]


class RefusedRows:
    """Rows that one channel did not accept, while its queue goes on.

    They are grouped by subject, because there may be very many.
    """

    def __init__(self, rows: Iterable[Outgoing]) -> None:
        self._rows: dict[Subject, list[Outgoing]] = {}
        self._unheard: set[Subject] = set()
        for row in rows:
            self._rows.setdefault(row_subject(row), []).append(row)

    def add_refused(self, rows: Iterable[Outgoing]) -> None:
        """Add rows that the channel has just refused for good."""
        for row in rows:
            self._rows.setdefault(row_subject(row), []).append(row)
            if is_beginning(row.notification):
                self._unheard.add(row_subject(row))

    def hold_back(self, row: Outgoing) -> bool:
        """Whether the row is the end of an alert whose beginning was refused just now."""
        return row_subject(row) in self._unheard and is_ending(row.notification)

    def overtaken_by(self, taken: Sequence[Outgoing]) -> list[Outgoing]:
        """Rows that are out of date, now that these rows were accepted."""
        late: list[Outgoing] = []
        for row in filter(_is_news, taken):
            about = row_subject(row)
            self._unheard.discard(about)
            late += find_overtaken(self._rows.get(about, ()), [row])
            self._rows[about] = [r for r in self._rows.get(about, ()) if r.seq > row.seq]
        return late


def decide_end_duty(row: Outgoing, past: Iterable[Delivery], fallback: str) -> EndDuty:
    """Decide who reports an end, from the deliveries of its alert."""
    past = list(past)
    own = [d for d in past if d[0].channel == row.channel and d[0].seq != row.seq]
    there = {d[0].notification.key for d in past if d[0].channel == fallback}
    given = any(d[2] == REDIRECTED_MARK and d[0].notification.key in there for d in own)
    known = any(d[1] is not None for d in own)
    return EndDuty(given and row.notification.key not in there, given and not known)


def is_status_news(n: Notification) -> bool:
    """Whether it tells the status of a problem. Messages about actions and tests do not."""
    return n.reason not in _ASIDE_REASONS


def _is_news(row: Outgoing) -> bool:
    return is_status_news(row.notification)


FIRST_WAIT_S = 2.0
MAX_WAIT_S = 300.0
REFUSED_WAIT_S = 3600.0
GIVE_UP_S = 7 * 86400.0
"""Seconds between attempts to send a row: at first, at most, and after a refusal. GIVE_UP_S is the
age at which a row is given up. A refusal may come from a mistake in the configuration, so a refused
row is tried again, but only once an hour."""

DOUBT_WAITS_S = (300.0, 3600.0)
"""Seconds before a row is sent again after the first and the second doubtful answer."""

FALLBACK_AFTER_S = 300.0
"""Seconds after which an undelivered row is given to the fallback channel."""

HOUR_S = 3600.0
BLOCKING_ATTEMPTS = 10
"""After this many failures, a row delays only its own alert, and no longer the whole channel."""

NEWS_AFTER_S = 30.0
"""Seconds after the last failure of a channel in which a message that was never tried waits too.
Later it passes the failed ones: the channel may be well again, and their waits are up to
MAX_WAIT_S."""

Group = tuple[str, MessageGroup]
"""A channel and one of its groups."""

_NEVER_NOTIFIED: Mapping[Group, Instant] = {}


def due_rows(
    rows: Sequence[Outgoing], now: Instant, told: Mapping[Group, Instant] = _NEVER_NOTIFIED
) -> list[Outgoing]:
    """The rows to send now, in order. No row is sent before an earlier one of its channel.

    There are exceptions: rows that were refused for good, or failed very often, do not delay
    others. A row that was never tried waits for failed ones only NEWS_AFTER_S after the last
    failure, or as long as the channel asked for (Retry-After). Newer rows about the same subject may be sent before a refused row (see
    `find_overtaken`). But an end is not sent before its beginning. `told` says when each channel
    last got a message about a group.
    """
    return [row for row in _unblocked_rows(rows, now, told) if is_due(row, now)]


def is_due(row: Outgoing, now: Instant) -> bool:
    """Whether the row's wait is over. If the wall clock is set back, the wait does not get longer."""
    if _is_gathering(row, now):
        return False
    return (
        row.tried is None or row.tried.wall > now.wall or get_elapsed_s(row.tried, now) >= row.wait
    )


def next_wait(
    rows: Sequence[Outgoing], now: Instant, told: Mapping[Group, Instant] = _NEVER_NOTIFIED
) -> float | None:
    """Seconds until the next row can be sent. None if no row waits."""
    waits = [_row_wait(row, now) for row in _unblocked_rows(rows, now, told)]
    return min(waits) if waits else None


def bundle_messages(rows: Sequence[Outgoing]) -> list[list[Outgoing]]:
    """Combine the rows of one channel into messages.

    Rows of a group go together. Each subject appears only once in a message, and its rows keep
    their order. Letters may have the same subject: each is about another job.
    """
    messages: list[list[Outgoing]] = []
    place: dict[MessageGroup, int] = {}
    last: dict[tuple[str, str], int] = {}
    for row in rows:
        n = row.notification
        about = (n.check, n.key if is_letter(row) else n.subject)
        at = place.get(row.bundle, -1)
        if row.bundle.is_alone or at <= last.get(about, -1):
            at = place[row.bundle] = len(messages)
            messages.append([])
        messages[at].append(row)
        last[about] = at
    return messages


def join_messages(messages: list[list[Outgoing]], count: int) -> list[list[Outgoing]]:
    """The messages in the same order, up to `count` of them in one call of a channel."""
    return [
        [row for message in messages[first : first + count] for row in message]
        for first in range(0, len(messages), count)
    ]


def undelivered_rows(
    rows: Iterable[Outgoing], fallbacks: Mapping[str, str], now: Instant
) -> list[Outgoing]:
    """Rows of channels that have a fallback, if the channel has refused them, or has tried and not
    delivered them for FALLBACK_AFTER_S."""
    return [
        row
        for row in rows
        if row.attempts
        and not is_letter(row)
        and not _is_in_doubt(row)
        and fallbacks.get(row.channel)
        and (row.permanent or get_elapsed_s(row.created, now) >= FALLBACK_AFTER_S)
    ]


def redirect_row(row: Outgoing, channel: str, now: Instant, doubt: str = "") -> Outgoing:
    """A copy of the row for another channel, with a note that says why it is sent there."""
    why = f"sent here because {row.channel} does not deliver: {row.error}"
    if doubt:
        why = f"sent here too: it is not known whether {row.channel} accepted it"
    message = replace(
        row.notification, note="; ".join(n for n in (row.notification.note, why) if n)
    )
    return Outgoing(
        channel=channel, notification=message, created=now, bundle=replace(row.bundle, owner=None)
    )


def share_doubtful(
    row: Outgoing, past: Iterable[Delivery], fallback: str, others: Iterable[str]
) -> tuple[list[str], bool]:
    """Where a row is sent too, whose channel gave a doubtful answer; and whether somebody has it,
    so that it counts as sent.

    It goes to the fallback, else to the `others`; never twice to one channel, so that doubtful
    channels do not send to each other for ever. An end goes where something of its alert went.
    """
    n, past = row.notification, [d for d in past if d[0].channel != row.channel]
    if n.reason in _UNSHARED_REASONS:
        return [], True
    there = {told.channel for told, _, _ in past if told.notification.key == n.key}
    heard = any(
        told.notification.key == n.key
        and (DOUBT_MARK not in said if at else not said and not told.attempts)
        for told, at, said in past
    )
    others = [fallback] if fallback and fallback not in there else others
    if is_ending(n):
        others = [name for name in others if name in {told.channel for told, _, _ in past}]
    to = [] if heard else [name for name in others if name not in there]
    return to, heard or bool(to)


def after_doubt(row: Outgoing, doubt: str, now: Instant) -> Outgoing | None:
    """The row after a doubtful answer that nobody else has. It is sent twice more, and delays no
    other. None after that: it may have arrived each time, so it counts as sent."""
    said = row.error.removeprefix(DOUBT_MARK).partition(" ")[0] if _is_in_doubt(row) else "0"
    count = int(said) if said.isdigit() else 0  # not the wait: people may end that
    if count >= len(DOUBT_WAITS_S):
        return None
    return replace(
        row,
        attempts=row.attempts + 1,
        tried=now,
        wait=DOUBT_WAITS_S[count],
        permanent=True,
        error=f"{DOUBT_MARK}{count + 1} of {len(DOUBT_WAITS_S) + 1} attempts: {doubt}",
    )


def _is_in_doubt(row: Outgoing) -> bool:
    return row.error.startswith(DOUBT_MARK)


def after_failure(row: Outgoing, error: ChannelError, now: Instant) -> Outgoing:
    """The row after a failure, with the time until its next attempt. The wait doubles each time, up
    to a limit.

    If only the recipient is at fault (one user's own address), the row counts as failed very often,
    so that it delays no others.
    """
    attempts = row.attempts + 1
    if is_recipient_failure(row, error):
        attempts = max(attempts, BLOCKING_ATTEMPTS)
    wait = max(_own_backoff(attempts), min(error.retry_after or 0.0, 3600.0))
    wait = REFUSED_WAIT_S if error.permanent else wait
    return replace(
        row, attempts=attempts, tried=now, wait=wait, permanent=error.permanent, error=str(error)
    )


def _own_backoff(attempts: int) -> float:
    """Seconds after so many failures, if the channel asks for no other time."""
    return min(MAX_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempts - 1, 20))


def find_early_retries(rows: Iterable[Outgoing]) -> list[Outgoing]:
    """The rows that were refused for good, with the wait of other failed rows.

    For a start of the service: the configuration may be mended now. A service that starts again
    and again tries them no more often than once in MAX_WAIT_S. A wait that the channel has asked
    for (Retry-After) stays.
    """
    return [replace(r, wait=MAX_WAIT_S) for r in rows if r.permanent and r.wait > MAX_WAIT_S]


def find_next_attempt(row: Outgoing, now: Instant) -> float | None:
    """Seconds until the row is tried again; 0 if it is due, None if it was never tried."""
    if row.tried is None:
        return None
    return 0.0 if is_due(row, now) else max(0.0, row.wait - get_elapsed_s(row.tried, now))


def expired_rows(rows: Sequence[Outgoing]) -> list[Outgoing]:
    """Rows to give up, because they were tried for more than GIVE_UP_S.

    The age at the last attempt counts. So after a long stop of the service, each row gets one more
    attempt. If a beginning is given up, its end is too.
    """
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
    """The rows that no earlier row delays, due or not. Their `hold` is that of their group."""
    held: set[Subject] = set()
    paused: dict[str, float] = {}
    unheard: set[Subject] = set()
    opening, over = _group_openings(rows, now, told), _end_times(rows)
    for row in sorted(rows, key=lambda r: r.seq):
        about = row_subject(row)
        if about in held or (row.channel in paused and row.attempts):
            held.add(about)
            continue
        if about in unheard and is_ending(row.notification):
            continue
        wait = max(opening[row.channel, row.bundle], paused.get(row.channel, 0.0))
        row = replace(row, hold=get_elapsed_s(row.created, now) + wait if wait > 0 else 0.0)
        row = replace(row, wait=0.0) if _is_worth_a_retry(row, over.get(about)) else row
        _track_refused(row, about, unheard, now)
        yield row
        if _is_gathering(row, now):
            held.add(about)
        elif not is_due(row, now) and not row.permanent:
            held.add(about)
            if row.attempts < BLOCKING_ATTEMPTS:
                paused[row.channel] = _pause_of_news(rows, row, now)


def _pause_of_news(rows: Iterable[Outgoing], failed: Outgoing, now: Instant) -> float:
    """Seconds in which messages that were never tried wait behind this one."""
    tries = [r.tried for r in rows if r.channel == failed.channel and not r.permanent and r.tried]
    pause = max(_seconds_left(NEWS_AFTER_S, at, now) for at in tries)
    left = _row_wait(failed, now)
    return left if failed.wait > _own_backoff(failed.attempts) else min(pause, left)


def _end_times(rows: Iterable[Outgoing]) -> dict[Subject, Instant]:
    """When the waiting ends were committed."""
    return {row_subject(row): row.created for row in rows if is_ending(row.notification)}


def _is_worth_a_retry(row: Outgoing, over: Instant | None) -> bool:
    """Whether to try a refused beginning once more. This is done when its end has been committed,
    because the end waits for it."""
    refused = row.permanent and is_beginning(row.notification)
    return bool(refused and over and row.tried and _is_before(row.tried, over))


def _is_before(first: Instant, second: Instant) -> bool:
    if first.boot and first.boot == second.boot:
        return first.mono < second.mono
    return first.wall < second.wall


def _track_refused(row: Outgoing, about: Subject, unheard: set[Subject], now: Instant) -> None:
    """Update the subjects whose beginning was refused and that have no newer message. If the
    beginning is tried again now, its end may follow."""
    if row.permanent and is_beginning(row.notification) and not is_due(row, now):
        unheard.add(about)
    elif not row.permanent:
        unheard.discard(about)


def _group_openings(
    rows: Sequence[Outgoing], now: Instant, told: Mapping[Group, Instant]
) -> dict[Group, float]:
    """Seconds until each group may be sent.

    The first of its rows must have waited long enough. The interval since the last message about
    the group must be over.
    """
    waits: dict[Group, float] = {}
    for row in rows:
        group = (row.channel, row.bundle)
        own = _own_wait(row, now, told.get(group))
        waits[group] = min(own, waits.get(group, own))
    return waits


def _own_wait(row: Outgoing, now: Instant, told: Instant | None) -> float:
    if row.attempts:
        return 0.0
    gathering = _seconds_left(row.hold, row.created, now)
    if row.bundle.is_alone or told is None:
        return gathering
    return max(gathering, _seconds_left(row.interval, told, now))


def _seconds_left(length: float, since: Instant, now: Instant) -> float:
    """Seconds left. 0 if the wall clock was set back across a reboot."""
    return max(0.0, length - get_elapsed_s(since, now)) if since.wall <= now.wall else 0.0


def _is_gathering(row: Outgoing, now: Instant) -> bool:
    """Whether the row waits for others of its group. All are sent when the first one has waited
    long enough."""
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
