"""Silences and acknowledgements in stored form."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, bindparam, delete, insert, select

from sentinel.alerting.silences import Ack, Orders, Silence
from sentinel.core.clock import SECOND
from sentinel.store.rows import decode, digest, encode
from sentinel.store.schema import orders

KEEP = 90 * 86400 * SECOND
"""An acknowledgement outlives any alert worth the name; it matters only while that fires."""

_all = select(orders.c.body)
_old = delete(orders).where(orders.c.ends < bindparam("t"))
_same = delete(orders).where(orders.c.key == bindparam("k"))
_new = insert(orders)


class Order(Struct, frozen=True):
    """One of both."""

    silence: Silence | None = None
    ack: Ack | None = None

    @property
    def name(self) -> str:
        """What a later order of the same name replaces."""
        return (
            f"silence {self.silence.id}" if self.silence else f"ack {self.ack and self.ack.alert}"
        )

    @property
    def ends(self) -> int:
        """When it may be forgotten, µs UTC."""
        if self.silence:
            return self.silence.ends
        return (self.ack.at.wall if self.ack else 0) + KEEP


def read(connection: Connection) -> Orders:
    """All that is stored."""
    return together(decode(body, Order) for (body,) in connection.execute(_all))


def write(connection: Connection, order: Order) -> None:
    """In place of an earlier one of the same name."""
    row: dict[str, Any] = {"key": digest(order.name), "ends": order.ends, "body": encode(order)}
    connection.execute(_same, {"k": row["key"]})
    connection.execute(_new, row)


def forget(connection: Connection, before: int) -> None:
    """Those that ended before this moment (µs UTC)."""
    connection.execute(_old, {"t": before})


def together(several: Iterable[Order]) -> Orders:
    """As the core wants them."""
    known = list(several)
    return Orders(
        silences=tuple(o.silence for o in known if o.silence),
        acks={o.ack.alert: o.ack for o in known if o.ack},
    )
