"""All of the state that a running sentinel needs, as one value."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sentinel.core.model import Alert, Outgoing, Run


class Snapshot(Struct, frozen=True, kw_only=True):
    """What must never be lost; `seq` is the highest number any outbox row ever had."""

    alerts: tuple[Alert, ...] = ()
    runs: tuple[Run, ...] = ()
    memory: Mapping[str, Mapping[str, Any]] = {}
    outbox: tuple[Outgoing, ...] = ()
    seq: int = 0
