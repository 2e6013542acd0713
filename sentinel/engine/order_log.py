"""Writes one record into the log for every acknowledgement and silence, from any source."""

import logging
from collections.abc import Iterable, Mapping

from sentinel.alerting.silences import Ack, Orders, Remark, Silence
from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.model import Alert
from sentinel.core.text import visible

_LOG = logging.getLogger("sentinel")


class OrderLog:
    """Reads the orders of the state and logs those that are new. They may come from another
    process. Orders that were given after `since` (µs UTC, the last run) while nobody led are logged
    too."""

    def __init__(self, store: Store, since: int) -> None:
        self._store, self._since = store, since
        self._known: Mapping[tuple[str, str], int] | None = None

    def read_and_log(self, alerts: Iterable[Alert], now: Instant) -> Orders:
        """The orders that people have given. Raises StoreError."""
        orders = self._store.read_orders()
        given = {("ack", ack.alert): ack.at.wall for ack in orders.acks.values()}
        given |= {("remark", repr(remark)): 0 for remark in orders.remarks}
        given |= {("silence", one.id): one.ends for one in orders.silences}
        if given != self._known:
            for ack in orders.acks.values():
                if self._is_new(("ack", ack.alert), ack.at.wall, ack.at.wall, now):
                    _log_ack(ack, alerts)
            for one in orders.silences:
                if self._is_new(("silence", one.id), one.ends, one.starts, now):
                    _log_silence(one, now)
            for remark in orders.remarks:
                if self._is_new(("remark", repr(remark)), 0, remark.at.wall, now):
                    _log_remark(remark)
            self._known = given
        return orders

    def _is_new(self, name: tuple[str, str], version: int, since: int, now: Instant) -> bool:
        if self._known is None:
            return self._since <= since <= now.wall
        return self._known.get(name) != version


def _log_ack(ack: Ack, alerts: Iterable[Alert]) -> None:
    fields = {"event": "ack", "alert": ack.alert}
    for alert in alerts:
        if alert.id == ack.alert:
            fields |= {"check": alert.key.check, "subject": alert.key.subject}
    _log_order(f"alert {ack.alert}: acknowledged", ack.who, ack.how, ack.note, fields)


def _log_remark(remark: Remark) -> None:
    fields = {"event": remark.deed, "incident": remark.incident, "alert": remark.alert}
    text = f"incident {remark.incident}: {remark.deed} {remark.alert}".rstrip()
    _log_order(text, remark.who, remark.how, remark.text, fields)


def _log_silence(one: Silence, now: Instant) -> None:
    from sentinel.status.silences import describe_silence  # most passes find no new one

    match = describe_silence(one)
    fields: dict[str, object] = {"event": "silence", "silence": one.id, "match": match}
    if one.ends <= now.wall:
        fields["event"] = "unsilence"
        _log_order(f"silence {one.id}: ended ({match})", one.who, one.how, one.reason, fields)
        return
    fields["seconds"] = (one.ends - one.starts) // SECOND
    text = f"silence {one.id}: {match} for {fields['seconds']} s"
    _log_order(text, one.who, one.how, one.reason, fields)


def _log_order(text: str, who: str, how: str, note: str, fields: Mapping[str, object]) -> None:
    words = f"{text} by {who or 'somebody'}{f' through {how}' if how else ''}"
    more = {**fields, "who": who, "how": how, "note": note}
    _LOG.info("%s", visible(f"{words}{f': {note}' if note else ''}"), extra={"fields": more})
