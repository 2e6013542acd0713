"""The bodies of API requests, and the answers that are not facts."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from sentinel.core.model import Status
from sentinel.status.detail import AlertChange, AlertDelivery
from sentinel.status.types import AlertFact

LENGTH_PATTERN = r"^([1-9][0-9]{0,4}m|[1-9][0-9]{0,2}h|([1-9]|[1-8][0-9]|90)d)$"


class AckBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of an acknowledgement."""

    who: str = ""
    note: str = ""


class SilenceBody(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"for_": "for"}
):
    """The body of a silence. `for`: like 30m, 2h or 3d, from 1m to 90d."""

    for_: Annotated[str, Meta(pattern=LENGTH_PATTERN)]
    who: str = ""
    reason: str = ""


class OrderResult(Struct, frozen=True, kw_only=True):
    """The result of an action. `silence` is the id by which a silence can be ended."""

    alert: str
    done: str
    who: str
    silence: str = ""


class ApiError(Struct, frozen=True, kw_only=True):
    """The error, in one line."""

    error: str


class Summary(Struct, frozen=True, kw_only=True):
    """The state of the cluster in a few numbers.

    `blind` counts checks that cannot see. If `whole` is False, only what the caller may see is
    counted.
    """

    at: float
    cluster: str
    status: Status
    leader: str
    notices: tuple[str, ...]
    firing: int
    pending: int
    node_states: dict[str, int]
    queue: dict[str, int]
    nodes_seen: float | None
    nodes_trouble: str
    blind: int
    whole: bool


class Explained(Struct, frozen=True, kw_only=True):
    """One alert. `alert` is None if it is over. `happened` has the newest change first."""

    id: str
    alert: AlertFact | None
    happened: tuple[AlertChange, ...]
    told: tuple[AlertDelivery, ...]
