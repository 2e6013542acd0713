"""Sends events to PagerDuty, by its Events API v2:
https://developer.pagerduty.com/docs/send-alert-event"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from sentinel.channels.event import incident_key, incident_move, severity_word
from sentinel.channels.format import text as render
from sentinel.channels.format.moments import parse_iso_time
from sentinel.channels.format.text import AlertCard, make_card
from sentinel.channels.http import exchange_http, refused_status
from sentinel.channels.http_channel import HttpChannel
from sentinel.channels.http_request import HttpRequest, url_origin
from sentinel.channels.markup import first_address
from sentinel.channels.post import json_request, pretty_json, url_below
from sentinel.channels.settings import check_secret, check_timeout, check_url
from sentinel.core.command_places import comment_places
from sentinel.core.errors import ChannelError
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import ExpectedAnswer, FilePath, Secret
from sentinel.core.text import shorten_to_line, shortened
from sentinel.core.values import Duration

_MOST = 1 << 20
_AT_ONCE = 4
"""How many requests run at once. The API accepts 960 a minute."""


class IncidentsApi(Struct, frozen=True):
    """Reads the incidents that sentinel's events have opened."""

    url: str  # Address of the API.
    token: Secret  # The token.
    timeout: float  # Seconds that a request may take.
    ca_file: str  # PEM file of the only CA to trust; empty: the system's.

    async def find_acknowledged(self, keys: list[str]) -> dict[str, str]:
        """Who has acknowledged, by key. Incidents that nobody has acknowledged are left out. Raises
        ChannelError."""
        slots = asyncio.Semaphore(_AT_ONCE)

        async def ask_one(key: str) -> str:
            async with slots:
                return await self._who_acknowledged(key)

        found = await asyncio.gather(*map(ask_one, keys))
        return {key: who for key, who in zip(keys, found, strict=True) if who}

    async def _who_acknowledged(self, key: str) -> str:
        query = urlencode({"incident_key": key, "statuses[]": "acknowledged", "limit": 1})
        headers = {
            "Authorization": f"Token token={self.token.reveal()}",
            "Accept": "application/vnd.pagerduty+json;version=2",
        }
        request = json_request(
            url_below(self.url, f"incidents?{query}"),
            None,
            self.timeout,
            self.ca_file,
            method="GET",
            headers=headers,
            hidden=(self.token.reveal(),),
            most=_MOST,
        )
        answer = await exchange_http(request)
        if answer.status != 200:
            raise refused_status(request, answer)
        try:
            return _acknowledger_name(msgspec.json.decode(answer.body)["incidents"])
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            RecursionError,
            msgspec.MsgspecError,
        ):
            raise ChannelError(
                f"{url_origin(self.url)} gave no proper answer", reason="server"
            ) from None


def _acknowledger_name(incidents: list[Any]) -> str:
    """The name of the person who last acknowledged the first incident. Empty if there is none."""
    taken = [incident for incident in incidents if incident["status"] == "acknowledged"]
    if not taken:
        return ""
    acks = taken[0].get("acknowledgements") or [{}]
    who = (acks[-1].get("acknowledger") or {}).get("summary") or "somebody"
    return f"{shorten_to_line(str(who), 80)} at PagerDuty"


_ACTIONS = {"open": "trigger", "acknowledge": "acknowledge", "close": "resolve"}
_SEVERITIES = {"critical": "critical", "unknown": "error", "warning": "warning", "info": "info"}
_WORDS = 250
_SUMMARY = 1024  # https://developer.pagerduty.com/docs/pd-cef


class Pagerduty(HttpChannel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One PagerDuty incident per alert: triggered, acknowledged and resolved.

    `routing_key` is that of an Events API v2 integration; accounts in the EU set `url` to
    https://events.eu.pagerduty.com/v2/enqueue. With `api_token` (read only is enough) an
    acknowledgement given there counts here.
    """

    groups: ClassVar[bool] = False
    answers: ClassVar[tuple[ExpectedAnswer, ...]] = (
        ExpectedAnswer(status=202, json={"status": "success"}),
    )

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
        """Send one event per alert. A test is resolved at once, so that no incident stays open."""
        events = (event for n in notifications for event in _events_for(n))
        none = "nothing to send: PagerDuty takes no notes"
        return await self.submit(*map(self._event_request, events), none=none)

    @property
    def listens(self) -> bool:
        """Whether `acknowledged` can be used."""
        return self.api_token is not None

    async def acknowledged(self, alerts: Sequence[str]) -> dict[str, str]:
        """Who has acknowledged which of these alerts at PagerDuty. Raises ChannelError."""
        if self.api_token is None:
            return {}
        api = IncidentsApi(self.api, self.api_token, self.timeout, self.ca_file)
        return await api.find_acknowledged(list(alerts))

    def preview(self, notifications: Sequence[Notification]) -> list[tuple[str, str]]:
        """The events, without the routing key."""
        events = (event for n in notifications for event in _events_for(n))
        return [("event", pretty_json(event)) for event in events]

    def _event_request(self, event: dict[str, Any]) -> HttpRequest:
        key = self.routing_key.reveal()
        body = {"routing_key": key, **event}
        return json_request(self.url, body, self.timeout, self.ca_file, hidden=(key,))


def _events_for(n: Notification) -> Iterator[dict[str, Any]]:
    step = incident_move(n)
    if step != "note":
        yield _make_event(n, _ACTIONS[step])
    if n.reason == "test":
        yield _make_event(n, "resolve")


def _make_event(n: Notification, action: str) -> dict[str, Any]:
    pages = {
        "Runbook": first_address(shorten_to_line(n.runbook, 2000)),
        "Alert": shorten_to_line(n.page, 2000),
    }
    links = [{"href": href, "text": word} for word, href in pages.items() if href]
    return {
        "event_action": action,
        "dedup_key": incident_key(n),
        "client": "sentinel",
        "payload": _event_payload(n, make_card(n)),
        **({"links": links} if links and action == "trigger" else {}),
    }


def _event_payload(n: Notification, c: AlertCard) -> dict[str, Any]:
    since = parse_iso_time(n.since)
    return {
        "summary": shortened(render.subject_line([n]), _SUMMARY),
        "source": shorten_to_line(n.subject or n.cluster or "sentinel", _WORDS),
        "severity": _SEVERITIES[severity_word(n)],
        **({"timestamp": since.isoformat()} if since else {}),
        "component": shorten_to_line(n.check, _WORDS),
        "group": shorten_to_line(n.cluster, _WORDS),
        "class": shorten_to_line(n.kind, _WORDS),
        "custom_details": _event_details(n, c),
    }


def _event_details(n: Notification, c: AlertCard) -> dict[str, str]:
    parts = {
        "summary": c.summary,
        **dict(render.card_facts(c)),
        "if nobody acts": c.impact,
        "note": shorten_to_line(n.note, _WORDS),
        "incident": shorten_to_line(n.incident or n.alert, _WORDS),
        "last lines": "\n".join(c.lines),
        "what to do": "\n".join((*c.steps, *comment_places(c.command_groups))),
        "act on it": "\n".join(comment_places(c.act_groups)),
        "runbook": c.runbook,
        "more": "\n".join(comment_places(render.more_commands(c))),
    }
    return {name: text for name, text in parts.items() if text}
