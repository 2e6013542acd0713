"""Converts nouns to stored rows and back, outside any transaction, so that what cannot be stored is
found first.

Every column is a number, a digest or JSON. So no text of a user meets a database's own rules for
text (NUL, lone surrogates, index rows of at most 2704 bytes in PostgreSQL)."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.silences import Ack, Orders, Remark, Silence
from sentinel.core.clock import SECOND, Instant
from sentinel.core.digests import blake2b
from sentinel.core.holds import MessageGroup
from sentinel.core.model import (
    DOUBT_MARK,
    Alert,
    Batch,
    CheckRun,
    Key,
    Outgoing,
    Receipt,
    Sample,
    SentNotification,
)
from sentinel.core.run_ledger import LedgerRow
from sentinel.core.struct_types import convert_value, decode_json
from sentinel.store.errors import Unstorable

Kind = TypeVar("Kind")


class UnreadableRow(ValueError):
    """Stored text has not the form in which it was stored."""


def encode_stored(value: object) -> str:
    """The value as JSON; raises Unstorable. Tuples and sets are read back as lists, NaN as None.

    A noun whose field has another type than declared is refused here: else the next start would
    meet a row that cannot be read."""
    try:
        text = _to_json(value)
        if isinstance(value, Struct):
            _decode_exactly(text, type(value))
        return text
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise Unstorable(f"a {type(value).__name__} cannot be stored: {error}") from error


def _to_json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # lone surrogates: only escapes can carry them
        return json.dumps(msgspec.to_builtins(value))


def decode_stored(text: str, kind: type[Kind]) -> Kind:
    """The value that was encoded, by this sentinel or a newer one. An unknown word is read as
    stored_words.py says. Raises UnreadableRow if the text is not of that kind."""
    try:
        return _decode_exactly(text, kind)
    except (ValueError, RecursionError, msgspec.MsgspecError):  # only new versions raise ValueError
        return _decode_unknown_words(text, kind)


def _decode_exactly(text: str, kind: type[Kind]) -> Kind:
    try:
        return decode_json(text, kind)
    except msgspec.DecodeError:
        return convert_value(json.loads(text), kind)


def _decode_unknown_words(text: str, kind: type[Kind]) -> Kind:
    from sentinel.core.stored_words import convert_leniently  # rarely needed, slow to import

    try:
        return convert_leniently(json.loads(text), kind)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise UnreadableRow(f"a stored {kind.__name__} is unreadable: {error}") from error


def digest_parts(*parts: str) -> str:
    """A name of fixed length for texts of any length and content, to find rows by."""
    return blake2b(_to_json(parts).encode(), digest_size=16).hexdigest()


class StateSnapshot(Struct, frozen=True, kw_only=True):
    """The part of the state that must never be lost.

    seq: The highest number that an outbox row ever had.
    token: The number of the last leader.
    """

    alerts: tuple[Alert, ...] = ()  # Open alerts.
    runs: tuple[CheckRun, ...] = ()  # The last run of each check.
    memory: Mapping[str, Mapping[str, Any]] = {}  # The memory of each check, by its name.
    outbox: tuple[Outgoing, ...] = ()  # Messages that are not sent yet.
    seq: int = 0
    token: int = 0


Row = dict[str, Any]
Series = tuple[str, str, str]  # check, subject, name


class StoredMemory(Struct, frozen=True):
    """The stored memory of a check."""

    check: str  # Name of the check.
    memory: Mapping[str, Any]  # What its last report remembered.


class DeliveryOutcome(Struct, frozen=True):
    """The end of an outbox row: a channel took it (`sent`) or it was given up, and the words for
    that. Rows that were sent together have the number of the first of them as `message`."""

    at: Instant  # When it was accepted or abandoned.
    sent: bool
    text: str = ""  # The answer, or why it was abandoned.
    message: int = 0


DeliveryRecord = tuple[Outgoing, Instant | None, str]
"""A row, when it was sent (None: not), and the receipt, or why it was given up."""


class OutboxAddress(Struct, frozen=True):
    """The part of an outbox row that is read if its message does not matter."""

    channel: str  # Name of the channel.
    bundle: MessageGroup = MessageGroup()  # The group in which the message is sent.
    notification: SentNotification = SentNotification()


class BatchRows(Struct, frozen=True, kw_only=True):
    """A batch in stored form; outbox rows still lack their number."""

    at: Instant  # When it is written.
    closed: list[Row]  # Keys of alerts that have ended.
    alerts: list[Row]  # Open alerts.
    transitions: list[Row]  # Changes of alerts.
    outbox: list[Row]  # Messages to be sent.
    memory: list[Row]  # Memory of checks.
    runs: list[Row]  # Last runs of checks.
    samples: dict[Series, float]  # Numbers, by series.
    ledger: list[Row]  # Rows of the ledger of runs.


def encode_batch(batch: Batch) -> BatchRows:
    """The batch in stored form. Raises Unstorable."""
    return BatchRows(
        at=batch.at,
        closed=[{"key": digest_key(key)} for key in batch.closed],
        alerts=[{"key": digest_key(a.key), "body": encode_stored(a)} for a in batch.alerts],
        transitions=[
            {
                "id": digest_parts(t.id),
                "alert": digest_parts(t.alert),
                "at": t.at.wall,
                "body": encode_stored(t),
            }
            for t in batch.transitions
        ],
        outbox=[encode_outbox_row(row) for row in batch.outbox],
        memory=[
            {"key": digest_parts(check), "body": encode_stored(StoredMemory(check, memory))}
            for check, memory in batch.memory.items()
        ],
        runs=[{"key": digest_parts(run.check), "body": encode_stored(run)} for run in batch.runs],
        samples=collect_values(batch.samples),
        ledger=[encode_ledger_row(row) for row in batch.ledger],
    )


def encode_ledger_row(row: LedgerRow) -> Row:
    """A row of the ledger of runs in stored form."""
    return {
        "key": digest_parts(*row.unique_parts),
        "ended": row.ended,
        "body": encode_stored(row),
        "is_end": int(row.is_end),
    }


def digest_key(key: Key) -> str:
    """The name of an alert's row."""
    return digest_parts(key.cluster, key.check, key.subject)


def encode_outbox_row(row: Outgoing) -> Row:
    """A new row, not sent yet."""
    return {
        "seq": row.seq,
        "alert": digest_parts(row.notification.alert),
        "done": 0,
        "outcome": "",
        "body": encode_stored(row),
    }


def collect_values(samples: Mapping[str, Iterable[Sample]]) -> dict[Series, float]:
    """One value per series, the last one. NaN is left out."""
    return {
        (check, sample.subject, sample.name): float(sample.value)
        for check, several in samples.items()
        for sample in several
        if not math.isnan(sample.value)
    }


def number_outgoing(rows: Iterable[Outgoing], last: int) -> tuple[Outgoing, ...]:
    """Give rows without a number the next ones after `last`; others keep theirs."""
    rows = tuple(rows)
    numbers = assign_numbers(last, (row.seq for row in rows))
    return tuple(replace(row, seq=seq) for row, seq in zip(rows, numbers, strict=True))


def assign_numbers(last: int, given: Iterable[int]) -> list[int]:
    """A number for each: the given one, or for 0 the one after the highest so far."""
    numbers = []
    for number in given:
        numbers.append(number or last + 1)
        last = max(last, numbers[-1])
    return numbers


def make_sent_outcome(rows: Sequence[Outgoing], now: Instant, receipt: Receipt) -> DeliveryOutcome:
    """The outcome of rows that a channel took, with the recipients it refused."""
    refused = f"; refused: {', '.join(receipt.refused)}" if receipt.refused else ""
    first = min((row.seq for row in rows), default=0)
    doubt = f"; {DOUBT_MARK}{receipt.doubt}" if receipt.doubt else ""
    return DeliveryOutcome(now, True, receipt.text + refused + doubt, first)


def mark_given_up(row: Outgoing, why: str) -> Outgoing:
    """The row, marked so that it is not tried again."""
    return replace(row, permanent=True, error=why)


ORDER_RETENTION_US = 90 * 86400 * SECOND
"""How long orders are kept, in µs. An acknowledgement matters only while its alert fires; a
maintenance names its incident when it is over."""


class StoredOrder(Struct, frozen=True):
    """One order of a person: a silence, an acknowledgement or a remark."""

    silence: Silence | None = None  # A silence.
    ack: Ack | None = None  # An acknowledgement.
    remark: Remark | None = None  # A remark about an incident.

    @property
    def unique_name(self) -> str:
        """The name of the order; a later order of the same name replaces it."""
        if self.remark:
            r = self.remark
            return f"remark {r.incident} {r.deed} {r.alert} {r.at.wall}"
        return (
            f"silence {self.silence.id}" if self.silence else f"ack {self.ack and self.ack.alert}"
        )

    @property
    def forget_at(self) -> int:
        """When the order may be forgotten, µs UTC."""
        if self.silence:
            return self.silence.ends + (ORDER_RETENTION_US if self.silence.is_planned else 0)
        given = self.ack or self.remark
        return (given.at.wall if given else 0) + ORDER_RETENTION_US


def collect_orders(several: Iterable[StoredOrder]) -> Orders:
    """The orders in the form that the core uses."""
    known = list(several)
    return Orders(
        silences=tuple(o.silence for o in known if o.silence),
        acks={o.ack.alert: o.ack for o in known if o.ack},
        remarks=tuple(sorted((o.remark for o in known if o.remark), key=lambda r: r.at.wall)),
    )


def make_delivery(row: Outgoing, outcome: DeliveryOutcome | None) -> DeliveryRecord:
    """When the row was sent (None: not) and the receipt, or why it was given up."""
    if outcome is None:
        return row, None, ""
    return row, outcome.at if outcome.sent else None, outcome.text
