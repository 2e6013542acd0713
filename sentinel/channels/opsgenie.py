"""Sends alerts to Opsgenie: https://docs.opsgenie.com/docs/alert-api"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from sentinel.channels.event import incident_key, incident_move, severity_word
from sentinel.channels.format import text as render
from sentinel.channels.format.text import make_card
from sentinel.channels.http_channel import HttpChannel
from sentinel.channels.http_request import HttpRequest
from sentinel.channels.post import json_request, pretty_json, url_below
from sentinel.channels.settings import check_secret, check_timeout, check_url
from sentinel.core.errors import Invalid
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import ExpectedAnswer, FilePath, Secret
from sentinel.core.text import shorten_to_line, shortened
from sentinel.core.values import Duration

_PRIORITIES = {"critical": "P1", "unknown": "P2", "warning": "P3", "info": "P5"}
# Limits in characters, from https://docs.opsgenie.com/docs/alert-api#create-alert
_MESSAGE, _DESCRIPTION, _ENTITY, _TAG, _TAGS, _DETAIL = 130, 15_000, 500, 50, 20, 300


class Opsgenie(HttpChannel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One Opsgenie alert per alert: created, acknowledged and closed by its id as alias.

    `api_key` is that of an API integration; accounts in the EU set `api` to
    https://api.eu.opsgenie.com.
    """

    groups: ClassVar[bool] = False
    answers: ClassVar[tuple[ExpectedAnswer, ...]] = (
        ExpectedAnswer(status=202, json={"requestId": None}),
    )

    api_key: Secret
    api: str = "https://api.opsgenie.com"
    teams: list[str] = []
    tags: list[str] = []
    ca_file: FilePath = FilePath("")
    timeout: Duration = Duration(30)

    def __post_init__(self) -> None:
        check_secret(self.api_key, "API key", "api_key")
        check_url(self.api, "api")
        check_timeout(self.timeout)
        for i, tag in enumerate(self.tags):
            if not 0 < len(tag) <= _TAG:
                raise Invalid(f"a tag has 1 to {_TAG} characters", "tags", i)

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Send one or two requests per alert. A test alert is closed at once."""
        calls = (call for n in notifications for call in self._api_calls(n))
        none = "nothing to send: Opsgenie has no alert for this"
        return await self.submit(*(self._api_request(*call) for call in calls), none=none)

    def preview(self, notifications: Sequence[Notification]) -> list[tuple[str, str]]:
        """The requests, without the API key."""
        calls = (call for n in notifications for call in self._api_calls(n))
        return [(f"{method} {path}", pretty_json(body)) for method, path, body in calls]

    def _api_calls(self, n: Notification) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Method, path and body of each request. An open alert keeps its priority, unless it
        changed."""
        step, alias = incident_move(n), quote(incident_key(n), safe="")
        said = "; ".join(filter(None, (render.subject_line([n]), shorten_to_line(n.note, 250))))
        note = {"source": "sentinel", "note": shortened(said, 500)}
        if step == "open":
            yield "POST", "v2/alerts", self._alert_body(n)
            if n.reason == "worse":
                priority = {"priority": _PRIORITIES[severity_word(n)]}
                yield "PUT", f"v2/alerts/{alias}/priority?identifierType=alias", priority
        if step == "acknowledge":
            yield "POST", f"v2/alerts/{alias}/acknowledge?identifierType=alias", note
        if step == "note" and n.reason != "digest":
            yield "POST", f"v2/alerts/{alias}/notes?identifierType=alias", note
        if step == "close" or n.reason == "test":
            yield "POST", f"v2/alerts/{alias}/close?identifierType=alias", note

    def _alert_body(self, n: Notification) -> dict[str, Any]:
        facts = {name: shortened(text, _DETAIL) for name, text in render.card_facts(make_card(n))}
        facts = {"incident": shorten_to_line(n.incident or n.alert, _DETAIL)} | facts
        return {
            "message": shortened(render.subject_line([n]), _MESSAGE),
            "alias": incident_key(n),
            "description": shortened(render.render_text([n]), _DESCRIPTION),
            "responders": [{"name": team, "type": "team"} for team in self.teams],
            "tags": self._alert_tags(n),
            "details": dict([*facts.items()][:20]),
            "entity": shorten_to_line(n.subject or n.check, _ENTITY),
            "source": "sentinel",
            "priority": _PRIORITIES[severity_word(n)],
        }

    def _alert_tags(self, n: Notification) -> list[str]:
        own = (n.cluster, n.check, n.kind, severity_word(n))
        found = [*self.tags, *(shorten_to_line(word, _TAG) for word in own)]
        return [*dict.fromkeys(tag for tag in found if tag)][:_TAGS]

    def _api_request(self, method: str, path: str, body: dict[str, Any]) -> HttpRequest:
        key = self.api_key.reveal()
        return json_request(
            url_below(self.api, path),
            body,
            self.timeout,
            self.ca_file,
            method=method,
            headers={"Authorization": f"GenieKey {key}"},
        )
