"""Nouns to rows, outside any transaction: what cannot be stored is found before it begins."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import Instant
from sentinel.core.model import Batch, Key, Outgoing, Receipt, Sample
from sentinel.store.codec import digest, encode

Row = dict[str, Any]
Series = tuple[str, str, str]  # check, subject, name


class Remembered(Struct, frozen=True):
    """The stored memory of a check."""

    check: str
    memory: Mapping[str, Any]


class Outcome(Struct, frozen=True):
    """What became of an outbox row: taken (`sent`) or given up, and in which words. Rows that
    were sent together have the number of the first of them as `message`."""

    at: Instant
    sent: bool
    text: str = ""
    message: int = 0


class Addressed(Struct, frozen=True):
    """All that is read of an outbox row where its message does not matter."""

    channel: str
    group: str = ""


class Rows(Struct, frozen=True, kw_only=True):
    """A batch in stored form; outbox rows still lack their number."""

    at: Instant
    closed: list[Row]
    alerts: list[Row]
    transitions: list[Row]
    outbox: list[Row]
    memory: list[Row]
    runs: list[Row]
    samples: dict[Series, float]


def rows_of(batch: Batch) -> Rows:
    """Raises Unstorable."""
    return Rows(
        at=batch.at,
        closed=[{"k": key_digest(key)} for key in batch.closed],
        alerts=[{"key": key_digest(a.key), "body": encode(a)} for a in batch.alerts],
        transitions=[
            {"id": digest(t.id), "alert": digest(t.alert), "at": t.at.wall, "body": encode(t)}
            for t in batch.transitions
        ],
        outbox=[outbox_row(row) for row in batch.outbox],
        memory=[
            {"key": digest(check), "body": encode(Remembered(check, memory))}
            for check, memory in batch.memory.items()
        ],
        runs=[{"key": digest(run.check), "body": encode(run)} for run in batch.runs],
        samples=numbers(batch.samples),
    )


def key_digest(key: Key) -> str:
    """The name of an alert's row."""
    return digest(key.cluster, key.check, key.subject)


def outbox_row(row: Outgoing) -> Row:
    """A new row, not sent yet."""
    return {
        "seq": row.seq,
        "alert": digest(row.notification.alert),
        "done": 0,
        "outcome": "",
        "body": encode(row),
    }


def numbers(samples: Mapping[str, Iterable[Sample]]) -> dict[Series, float]:
    """One value per series, the last one told; what is not a number is no sample."""
    return {
        (check, sample.subject, sample.name): float(sample.value)
        for check, several in samples.items()
        for sample in several
        if not math.isnan(sample.value)
    }


def numbered(rows: Iterable[Outgoing], last: int) -> tuple[Outgoing, ...]:
    """Rows without a number get the next ones after `last`; others keep theirs."""
    rows = tuple(rows)
    numbers = numbers_after(last, (row.seq for row in rows))
    return tuple(replace(row, seq=seq) for row, seq in zip(rows, numbers, strict=True))


def numbers_after(last: int, given: Iterable[int]) -> list[int]:
    """A number for each: the given one, or for 0 the one after the highest so far."""
    numbers = []
    for number in given:
        numbers.append(number or last + 1)
        last = max(last, numbers[-1])
    return numbers


def taken(rows: Sequence[Outgoing], now: Instant, receipt: Receipt) -> Outcome:
    """The outcome of rows that a channel took, with the recipients it refused."""
    refused = f"; refused: {', '.join(receipt.refused)}" if receipt.refused else ""
    first = min((row.seq for row in rows), default=0)
    return Outcome(now, True, receipt.text + refused, first)


def given_up(row: Outgoing, why: str) -> Outgoing:
    """A row nobody will try again."""
    return replace(row, permanent=True, error=why)
