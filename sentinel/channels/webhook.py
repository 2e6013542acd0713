"""Sends the alert as JSON to a web address."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from sentinel.channels.http import submit_request
from sentinel.channels.http_channel import HttpChannel
from sentinel.channels.http_request import HttpRequest
from sentinel.channels.post import MAX_ANSWER
from sentinel.channels.record import json_record
from sentinel.channels.settings import check_headers, check_timeout, check_url
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import FilePath, Secret
from sentinel.core.text import shorten_to_line
from sentinel.core.values import Duration

_OURS = ("content-length", "host", "transfer-encoding", "idempotency-key")


class Webhook(HttpChannel, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
        check_url(self.url.reveal(), "url")
        check_headers(self.headers, _OURS)
        check_timeout(self.timeout)

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Send one request per alert."""
        receipt = Receipt("")
        for request in map(self._webhook_request, notifications):
            receipt = await submit_request(request, self.forms, pages=True)
        return receipt

    def _webhook_request(self, notification: Notification) -> HttpRequest:
        key = shorten_to_line(notification.key, 255).encode("ascii", "backslashreplace").decode()
        own = {"Content-Type": "application/json", "User-Agent": "sentinel"}
        given = {name: value.reveal() for name, value in self.headers.items()}
        kept = {n: v for n, v in own.items() if n.lower() not in {g.lower() for g in given}}
        return HttpRequest(
            url=self.url.reveal(),
            method=self.method,
            headers={**kept, **given, "Idempotency-Key": key},
            body=json_record(notification),
            timeout=self.timeout,
            ca_file=self.ca_file,
            most=MAX_ANSWER,
        )
