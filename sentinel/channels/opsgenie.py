"""Opsgenie's alert API: https://docs.opsgenie.com/docs/alert-api"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from sentinel.channels.event import degree, incident, move
from sentinel.channels.format import text as render
from sentinel.channels.format.text import card
from sentinel.channels.http import Request, submit
from sentinel.channels.post import below, post, pretty
from sentinel.channels.settings import check_secret, check_timeout, check_url
from sentinel.core.errors import Invalid
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import FilePath, Secret
from sentinel.core.text import one_line, shortened
from sentinel.core.values import Duration
from sentinel.plugin import Channel

_PRIORITIES = {"critical": "P1", "unknown": "P2", "warning": "P3", "info": "P5"}
# Characters, by https://docs.opsgenie.com/docs/alert-api#create-alert
_MESSAGE, _DESCRIPTION, _ENTITY, _TAG, _TAGS, _DETAIL = 130, 15_000, 500, 50, 20, 300


class Opsgenie(Channel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One Opsgenie alert per alert: created, acknowledged and closed by its id as alias.

    `api_key` is that of an API integration; accounts in the EU set `api` to
    https://api.eu.opsgenie.com.
    """

    groups: ClassVar[bool] = False

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
        """One or two requests for each; a test is closed at once."""
        said = ""
        for notification in notifications:
            for method, path, body in self._calls(notification):
                said = await submit(self._request(method, path, body))
        return Receipt(said)

    def preview(self, notifications: Sequence[Notification]) -> list[tuple[str, str]]:
        """The requests, without the key."""
        calls = (call for n in notifications for call in self._calls(n))
        return [(f"{method} {path}", pretty(body)) for method, path, body in calls]

    def _calls(self, n: Notification) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Method, path and body. An alert that is there already keeps its priority, unless told."""
        step, alias = move(n), quote(incident(n), safe="")
        said = "; ".join(filter(None, (render.subject([n]), one_line(n.note, 250))))
        note = {"source": "sentinel", "note": shortened(said, 500)}
        if step == "open":
            yield "POST", "v2/alerts", self._alert(n)
            if n.reason == "worse":
                priority = {"priority": _PRIORITIES[degree(n)]}
                yield "PUT", f"v2/alerts/{alias}/priority?identifierType=alias", priority
        if step == "acknowledge":
            yield "POST", f"v2/alerts/{alias}/acknowledge?identifierType=alias", note
        if step == "note":
            yield "POST", f"v2/alerts/{alias}/notes?identifierType=alias", note
        if step == "close" or n.reason == "test":
            yield "POST", f"v2/alerts/{alias}/close?identifierType=alias", note

    def _alert(self, n: Notification) -> dict[str, Any]:
        facts = {name: shortened(text, _DETAIL) for name, text in render.facts(card(n))}
        facts = {"incident": one_line(n.incident or n.alert, _DETAIL)} | facts
        return {
            "message": shortened(render.subject([n]), _MESSAGE),
            "alias": incident(n),
            "description": shortened(render.text([n]), _DESCRIPTION),
            "responders": [{"name": team, "type": "team"} for team in self.teams],
            "tags": self._tags(n),
            "details": dict([*facts.items()][:20]),
            "entity": one_line(n.subject or n.check, _ENTITY),
            "source": "sentinel",
            "priority": _PRIORITIES[degree(n)],
        }

    def _tags(self, n: Notification) -> list[str]:
        own = (n.cluster, n.check, n.kind, degree(n))
        found = [*self.tags, *(one_line(word, _TAG) for word in own)]
        return [*dict.fromkeys(tag for tag in found if tag)][:_TAGS]

    def _request(self, method: str, path: str, body: dict[str, Any]) -> Request:
        key = self.api_key.reveal()
        return post(
            below(self.api, path),
            body,
            self.timeout,
            self.ca_file,
            method=method,
            headers={"Authorization": f"GenieKey {key}"},
        )
