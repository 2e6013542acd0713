"""Decides what becomes of messages that were written before a person silenced their alert, and were not
sent yet. Pure."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from sentinel.alerting.outbox import (
    Subject,
    is_beginning,
    is_ending,
    is_status_news,
    row_subject,
)
from sentinel.alerting.silences import Silence, find_silence
from sentinel.core.clock import Instant
from sentinel.core.model import Alert, Key, Notification, Outgoing


class SilencedRows(Struct, frozen=True):
    """`waiting` are held until the silence ends. `needless`: the trouble was over before anybody had
    heard of it, or what they were to hear of it is out of date."""

    waiting: Sequence[Outgoing] = ()
    needless: Sequence[Outgoing] = ()


def split_silenced_rows(
    rows: Iterable[Outgoing], silences: Sequence[Silence], now: Instant
) -> SilencedRows:
    """The rows that are not sent now, because a silence covers them that is newer than they are. The end
    of what people have heard of is sent all the same."""
    held: dict[Subject, list[Outgoing]] = {}
    ends: list[Outgoing] = []
    for row in sorted(rows, key=lambda r: r.seq) if silences else ():
        about = row_subject(row)
        if about in held and is_ending(row.notification):
            ends.append(row)
        elif about in held or _is_silenced(row, silences, now):
            held.setdefault(about, []).append(row)
    over = {row_subject(end) for end in ends}
    unheard = {about for about in over if is_beginning(held[about][0].notification)}
    return SilencedRows(
        waiting=[row for about, several in held.items() if about not in over for row in several],
        needless=[
            *(row for about in over for row in held[about]),
            *(end for end in ends if row_subject(end) in unheard),
        ],
    )


def _is_silenced(row: Outgoing, silences: Sequence[Silence], now: Instant) -> bool:
    n = row.notification
    if row.tried is not None or not n.alert or not is_status_news(n) or is_ending(n):
        return False
    if n.reason == "ack":
        return False  # others want to know who has it
    newer = [s for s in silences if s.starts >= row.created.wall]
    return bool(newer) and find_silence(_make_alert(n, row.created), newer, now) is not None


def _make_alert(n: Notification, at: Instant) -> Alert:
    """What a silence can match of the alert of a message."""
    return Alert(
        key=Key(cluster=n.cluster, check=n.check, subject=n.subject),
        id=n.alert,
        kind=n.kind,
        status=n.status,
        severity=n.severity,
        summary=n.summary,
        since=at,
        last=at,
        labels=n.labels,
    )
