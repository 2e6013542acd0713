"""The alert as JSON to an address on the web."""

import re
from collections.abc import Sequence
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from sentinel.channels.http import Request, submit
from sentinel.channels.record import record
from sentinel.core.card import one_line
from sentinel.core.errors import Invalid
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import FilePath, Secret
from sentinel.core.values import Duration

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = ("content-length", "host", "transfer-encoding", "idempotency-key")


class Webhook(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Posts each alert as one JSON object, with its key as Idempotency-Key.

    Redirects are not followed: what is meant for one host goes to no other.
    """

    groups: ClassVar[bool] = False

    url: Secret
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    headers: dict[str, Secret] = {}
    ca_file: FilePath = FilePath("")
    timeout: Duration = Duration(30)

    def __post_init__(self) -> None:
        _check_url(self.url.reveal())
        for name, value in self.headers.items():
            _check_header(name, value.reveal())
        if self.timeout <= 0:
            raise Invalid("must be longer than 0s", "timeout")

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """One request for each."""
        said = ""
        for notification in notifications:
            said = await submit(self._request(notification))
        return Receipt(said)

    def _request(self, notification: Notification) -> Request:
        key = one_line(notification.key, 255).encode("ascii", "backslashreplace").decode()
        own = {"Content-Type": "application/json", "User-Agent": "sentinel"}
        given = {name: value.reveal() for name, value in self.headers.items()}
        kept = {n: v for n, v in own.items() if n.lower() not in {g.lower() for g in given}}
        return Request(
            url=self.url.reveal(),
            method=self.method,
            headers={**kept, **given, "Idempotency-Key": key},
            body=record(notification),
            timeout=self.timeout,
            ca_file=self.ca_file,
        )


def _check_url(url: str) -> None:
    """Never shows the address: whoever knows it can post to it."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or not url.isprintable() or " " in url:
        raise Invalid("is no address like https://hooks.example.org/…", "url")


def _check_header(name: str, value: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise Invalid("is no name of a header", "headers", name)
    if name.lower() in _OURS:
        raise Invalid("is set by sentinel itself", "headers", name)
    if not value.isprintable():
        raise Invalid("its value holds a line break or another control character", "headers", name)
