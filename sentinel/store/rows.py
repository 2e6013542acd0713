"""Nouns to stored rows and back, outside any transaction: what cannot be stored is found before.

Every column is a number, a digest or JSON: so no text of a user ever meets a database's own idea
of text (NUL, lone surrogates, index rows of at most 2704 bytes in PostgreSQL).
"""

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
from sentinel.core.model import Alert, Batch, CheckRun, Key, Outgoing, Receipt, Sample
from sentinel.store.errors import Unstorable

Kind = TypeVar("Kind")


class UnreadableRow(ValueError):
    """Stored text is not what was stored."""


def encode_stored(value: object) -> str:
    """JSON; raises Unstorable. Tuples and sets come back as lists, NaN as None.

    A noun with a field of another type than it says is refused here: one row that cannot be read
    is met at the next start, and then costs the whole state.
    """
    try:
        text = _to_json(value)
        if isinstance(value, Struct):
            decode_stored(text, type(value))
        return text
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unstorable(f"a {type(value).__name__} cannot be stored: {error}") from error


def _to_json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # lone surrogates: only escapes can carry them
        return json.dumps(msgspec.to_builtins(value))


def decode_stored(text: str, kind: type[Kind]) -> Kind:
    """The value that was encoded; raises UnreadableRow where it is not of that kind."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError:
        return _decode_escapes(text, kind)


def _decode_escapes(text: str, kind: type[Kind]) -> Kind:
    try:
        value: Any = json.loads(text)
        return msgspec.convert(value, kind)
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        raise UnreadableRow(f"a stored {kind.__name__} is unreadable: {error}") from error


def digest_parts(*parts: str) -> str:
    """A fixed-length name for texts of any length and content, to find rows by."""
    return blake2b(_to_json(parts).encode(), digest_size=16).hexdigest()


class StateSnapshot(Struct, frozen=True, kw_only=True):
    """What must never be lost; `seq` is the highest number any outbox row ever had, `token` that
    of the last leader."""

    alerts: tuple[Alert, ...] = ()
    runs: tuple[CheckRun, ...] = ()
    memory: Mapping[str, Mapping[str, Any]] = {}
    outbox: tuple[Outgoing, ...] = ()
    seq: int = 0
    token: int = 0


Row = dict[str, Any]
Series = tuple[str, str, str]  # check, subject, name


class StoredMemory(Struct, frozen=True):
    """The stored memory of a check."""

    check: str
    memory: Mapping[str, Any]


class DeliveryOutcome(Struct, frozen=True):
    """What became of an outbox row: taken (`sent`) or given up, and in which words. Rows that
    were sent together have the number of the first of them as `message`."""

    at: Instant
    sent: bool
    text: str = ""
    message: int = 0


DeliveryRecord = tuple[Outgoing, Instant | None, str]
"""A row, when it was sent (None: not), and the receipt, or why it was given up."""


class OutboxAddress(Struct, frozen=True):
    """All that is read of an outbox row where its message does not matter."""

    channel: str
    group: str = ""


class BatchRows(Struct, frozen=True, kw_only=True):
    """A batch in stored form; outbox rows still lack their number."""

    at: Instant
    closed: list[Row]
    alerts: list[Row]
    transitions: list[Row]
    outbox: list[Row]
    memory: list[Row]
    runs: list[Row]
    samples: dict[Series, float]


def encode_batch(batch: Batch) -> BatchRows:
    """Raises Unstorable."""
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
    )


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
    """One value per series, the last one told; what is not a number is no sample."""
    return {
        (check, sample.subject, sample.name): float(sample.value)
        for check, several in samples.items()
        for sample in several
        if not math.isnan(sample.value)
    }


def number_outgoing(rows: Iterable[Outgoing], last: int) -> tuple[Outgoing, ...]:
    """Rows without a number get the next ones after `last`; others keep theirs."""
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
    return DeliveryOutcome(now, True, receipt.text + refused, first)


def mark_given_up(row: Outgoing, why: str) -> Outgoing:
    """A row nobody will try again."""
    return replace(row, permanent=True, error=why)


ORDER_RETENTION_US = 90 * 86400 * SECOND
"""An acknowledgement outlives any alert worth the name; it matters only while that fires. A maintenance
names its incident when it is over."""


class StoredOrder(Struct, frozen=True):
    """One of them."""

    silence: Silence | None = None
    ack: Ack | None = None
    remark: Remark | None = None

    @property
    def unique_name(self) -> str:
        """What a later order of the same name replaces."""
        if self.remark:
            r = self.remark
            return f"remark {r.incident} {r.deed} {r.alert} {r.at.wall}"
        return (
            f"silence {self.silence.id}" if self.silence else f"ack {self.ack and self.ack.alert}"
        )

    @property
    def forget_at(self) -> int:
        """When it may be forgotten, µs UTC."""
        if self.silence:
            return self.silence.ends + (ORDER_RETENTION_US if self.silence.is_planned else 0)
        given = self.ack or self.remark
        return (given.at.wall if given else 0) + ORDER_RETENTION_US


def collect_orders(several: Iterable[StoredOrder]) -> Orders:
    """As the core wants them."""
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
