"""PagerDuty's Events API v2: https://developer.pagerduty.com/docs/send-alert-event"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from sentinel.channels.event import degree, incident, move
from sentinel.channels.format import text as render
from sentinel.channels.format.text import Card, card, moment
from sentinel.channels.http import Request, exchange, origin, refusal, submit
from sentinel.channels.markup import address_of
from sentinel.channels.post import below, post, pretty
from sentinel.channels.settings import check_secret, check_timeout, check_url
from sentinel.core.errors import ChannelError
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import FilePath, Secret
from sentinel.core.text import one_line, shortened
from sentinel.core.values import Duration
from sentinel.plugin import Channel

_MOST = 1 << 20
_AT_ONCE = 4
"""Requests in flight: the API takes 960 a minute."""


class Api(Struct, frozen=True):
    """The incidents that our events have opened."""

    url: str
    token: Secret
    timeout: float
    ca_file: str

    async def acknowledged(self, keys: list[str]) -> dict[str, str]:
        """Who has acknowledged, by key; those that nobody has are left out. ChannelError."""
        slots = asyncio.Semaphore(_AT_ONCE)

        async def ask(key: str) -> str:
            async with slots:
                return await self._who(key)

        found = await asyncio.gather(*map(ask, keys))
        return {key: who for key, who in zip(keys, found, strict=True) if who}

    async def _who(self, key: str) -> str:
        query = urlencode({"incident_key": key, "statuses[]": "acknowledged", "limit": 1})
        headers = {
            "Authorization": f"Token token={self.token.reveal()}",
            "Accept": "application/vnd.pagerduty+json;version=2",
        }
        request = post(
            below(self.url, f"incidents?{query}"),
            None,
            self.timeout,
            self.ca_file,
            method="GET",
            headers=headers,
            hidden=(self.token.reveal(),),
            most=_MOST,
        )
        answer = await exchange(request)
        if answer.status != 200:
            raise refusal(request, answer)
        try:
            return _name(msgspec.json.decode(answer.body)["incidents"])
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
            raise ChannelError(
                f"{origin(self.url)} gave no proper answer", reason="server"
            ) from None


def _name(incidents: list[Any]) -> str:
    """Who acknowledged the first of them last; empty where none is."""
    taken = [incident for incident in incidents if incident["status"] == "acknowledged"]
    if not taken:
        return ""
    acks = taken[0].get("acknowledgements") or [{}]
    who = (acks[-1].get("acknowledger") or {}).get("summary") or "somebody"
    return f"{one_line(str(who), 80)} at PagerDuty"


_ACTIONS = {"open": "trigger", "acknowledge": "acknowledge", "close": "resolve"}
_SEVERITIES = {"critical": "critical", "unknown": "error", "warning": "warning", "info": "info"}
_WORDS = 250
_SUMMARY = 1024  # https://developer.pagerduty.com/docs/pd-cef


class Pagerduty(Channel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One PagerDuty incident per alert: triggered, acknowledged and resolved.

    `routing_key` is that of an Events API v2 integration; accounts in the EU set `url` to
    https://events.eu.pagerduty.com/v2/enqueue. With `api_token` (read only is enough) an
    acknowledgement given there counts here.
    """

    groups: ClassVar[bool] = False

    routing_key: Secret
    url: str = "https://events.pagerduty.com/v2/enqueue"
    ca_file: FilePath = FilePath("")
    timeout: Duration = Duration(30)
    api_token: Secret | None = None
    api: str = "https://api.pagerduty.com"

    def __post_init__(self) -> None:
        check_secret(self.routing_key, "routing key", "routing_key")
        if self.api_token is not None:
            check_secret(self.api_token, "REST API token", "api_token")
        check_url(self.url, "url")
        check_url(self.api, "api")
        check_timeout(self.timeout)

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """An event for each; a test is resolved at once, so that no incident stays open."""
        said = "nothing to send: PagerDuty takes no notes"
        for notification in notifications:
            for event in _events(notification):
                said = await submit(self._request(event))
        return Receipt(said)

    @property
    def listens(self) -> bool:
        """Whether `acknowledged` may be asked."""
        return self.api_token is not None

    async def acknowledged(self, alerts: Sequence[str]) -> dict[str, str]:
        """Who has acknowledged which of these alerts at PagerDuty. Raises ChannelError."""
        if self.api_token is None:
            return {}
        api = Api(self.api, self.api_token, self.timeout, self.ca_file)
        return await api.acknowledged(list(alerts))

    def preview(self, notifications: Sequence[Notification]) -> list[tuple[str, str]]:
        """The events, without the key."""
        events = (event for n in notifications for event in _events(n))
        return [("event", pretty(event)) for event in events]

    def _request(self, event: dict[str, Any]) -> Request:
        key = self.routing_key.reveal()
        body = {"routing_key": key, **event}
        return post(self.url, body, self.timeout, self.ca_file, hidden=(key,))


def _events(n: Notification) -> Iterator[dict[str, Any]]:
    step = move(n)
    if step != "note":
        yield _event(n, _ACTIONS[step])
    if n.reason == "test":
        yield _event(n, "resolve")


def _event(n: Notification, action: str) -> dict[str, Any]:
    pages = {"Runbook": address_of(one_line(n.runbook, 2000)), "Alert": one_line(n.page, 2000)}
    links = [{"href": href, "text": word} for word, href in pages.items() if href]
    return {
        "event_action": action,
        "dedup_key": incident(n),
        "client": "sentinel",
        "payload": _payload(n, card(n)),
        **({"links": links} if links and action == "trigger" else {}),
    }


def _payload(n: Notification, c: Card) -> dict[str, Any]:
    since = moment(n.since)
    return {
        "summary": shortened(render.subject([n]), _SUMMARY),
        "source": one_line(n.subject or n.cluster or "sentinel", _WORDS),
        "severity": _SEVERITIES[degree(n)],
        **({"timestamp": since.isoformat()} if since else {}),
        "component": one_line(n.check, _WORDS),
        "group": one_line(n.cluster, _WORDS),
        "class": one_line(n.kind, _WORDS),
        "custom_details": _details(n, c),
    }


def _details(n: Notification, c: Card) -> dict[str, str]:
    parts = {
        "summary": c.summary,
        **dict(render.facts(c)),
        "note": one_line(n.note, _WORDS),
        "incident": one_line(n.incident or n.alert, _WORDS),
        "last lines": "\n".join(c.lines),
        "what to do": "\n".join(c.commands),
        "runbook": c.runbook,
        "more": "\n".join(c.more),
    }
    return {name: text for name, text in parts.items() if text}
