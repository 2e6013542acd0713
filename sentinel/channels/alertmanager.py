"""Alerts for an existing Prometheus Alertmanager, which routes and groups them its own way.

https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml and
https://prometheus.io/docs/alerting/latest/clients/
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, ClassVar
from urllib.parse import urlencode

import msgspec

from sentinel.channels.event import degree, move
from sentinel.channels.format.text import card, moment
from sentinel.channels.http import Request, exchange, origin, refusal, submit
from sentinel.channels.markup import address_of
from sentinel.channels.post import below, post, pretty
from sentinel.channels.settings import check_headers, check_timeout, check_url
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import FilePath, Secret
from sentinel.core.text import one_line
from sentinel.core.values import Duration, duration_text
from sentinel.plugin import Channel

_OURS = ("content-length", "content-type", "host", "transfer-encoding")
_LABEL, _MOST = 200, 1 << 20
_ACKNOWLEDGED = 30 * 86400.0  # seconds: what somebody has is not repeated
_KEPT = ("labels", "annotations", "startsAt")
_KEY = ("cluster", "alertname", "subject")

Labels = Mapping[str, str]


class Alertmanager(Channel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pushes alerts to every instance of a Prometheus Alertmanager, by its v2 API.

    An alert that is not repeated ends there after `expires`: it must be longer than the
    repeats of the route. What has ended is ended there at once.
    """

    groups: ClassVar[bool] = False

    urls: list[str]
    headers: dict[str, Secret] = {}
    expires: Duration = Duration(25 * 3600)
    ca_file: FilePath = FilePath("")
    timeout: Duration = Duration(30)

    def __post_init__(self) -> None:
        if not self.urls:
            raise Invalid("name at least one, e.g. http://localhost:9093", "urls")
        for i, url in enumerate(self.urls):
            check_url(url, "urls", i)
        check_headers(self.headers, _OURS)
        check_timeout(self.timeout)
        if self.expires < 60:
            raise Invalid("must be at least 1m", "expires")

    def judge_repeat(self, seconds: float) -> str:
        """What is wrong with a route that repeats after so many seconds; empty where nothing."""
        if seconds < self.expires:
            return ""
        return (
            f"an alert ends at Alertmanager after {duration_text(self.expires)} ('expires'), but "
            f"is repeated only every {duration_text(seconds)}: it would come and go"
        )

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Tell all instances; one that takes them is enough, as with Prometheus."""
        tries = (self._tell(url, notifications) for url in self.urls)
        results = await asyncio.gather(*tries, return_exceptions=True)
        errors = [r for r in results if isinstance(r, BaseException)]
        if len(errors) == len(self.urls):
            raise min(errors, key=lambda error: getattr(error, "permanent", False))
        failed = [u for u, r in zip(self.urls, results, strict=True) if r in errors]
        return Receipt("; ".join(map(str, results)), tuple(map(origin, failed)))

    def preview(self, notifications: Sequence[Notification]) -> list[tuple[str, str]]:
        """The alerts as the API takes them."""
        now = datetime.now(timezone.utc)
        return [("alerts", pretty([alert(n, now, self.expires) for n in _alerts(notifications)]))]

    async def _tell(self, url: str, notifications: Sequence[Notification]) -> str:
        now = datetime.now(timezone.utc)
        said = "nothing to send: Alertmanager takes no notes"
        for n in _alerts(notifications):
            own = alert(n, now, self.expires)
            known = [] if n.reason == "firing" else await self._known(url, own["labels"])
            posted = _replacing(own, known, n, now)
            said = await submit(self._request(url, "api/v2/alerts", posted))
        return said

    async def _known(self, url: str, labels: Labels) -> list[dict[str, Any]]:
        """The alerts about the same subject that are there: their labels may be older ones."""
        filters = [("filter", f"{name}={_quoted(labels.get(name, ''))}") for name in _KEY]
        request = self._request(url, f"api/v2/alerts?{urlencode(filters)}", None)
        answer = await exchange(request)
        if answer.status != 200:
            raise refusal(request, answer)
        try:
            found = msgspec.json.decode(answer.body, type=list[dict[str, Any]])
        except msgspec.MsgspecError:
            raise ChannelError(f"{origin(url)} gave no proper answer", reason="server") from None
        return [old for old in found if _same(old.get("labels"), labels)]

    def _request(self, url: str, path: str, body: Any) -> Request:
        headers = {name: value.reveal() for name, value in self.headers.items()}
        method = "GET" if body is None else "POST"
        return post(
            below(url, path),
            body,
            self.timeout / 2,
            self.ca_file,
            method=method,
            headers=headers,
            most=_MOST,
        )


def _alerts(notifications: Sequence[Notification]) -> list[Notification]:
    """Those that say how an alert is; Alertmanager has no place for notes."""
    return [n for n in notifications if move(n) != "note"]


def alert(n: Notification, now: datetime, expires: float) -> dict[str, Any]:
    """An alert of the v2 API; it has ended where the message says so."""
    ended = move(n) == "close"
    lasts = max(expires, _ACKNOWLEDGED) if move(n) == "acknowledge" else expires
    end = min(moment(n.at) or now, now) if ended else now + timedelta(seconds=lasts)
    start = min(moment(n.since) or now, end)
    return {
        "labels": _labels(n),
        "annotations": _annotations(n),
        "startsAt": start.isoformat(),
        "endsAt": end.isoformat(),
    }


def _labels(n: Notification) -> dict[str, str]:
    """What its routes match on; an empty label is none, and names are what Prometheus allows."""
    given = {_name(name): one_line(text, _LABEL) for name, text in n.labels.items()}
    own = {
        "alertname": n.check,
        "cluster": n.cluster,
        "kind": n.kind,
        "subject": n.subject,
        "severity": degree(n),
    }
    labels = {**given, **{name: one_line(text, _LABEL) for name, text in own.items()}}
    return {name: text for name, text in labels.items() if text}


def _name(text: str) -> str:
    name = re.sub(r"[^a-zA-Z0-9_]", "_", text[:_LABEL])
    return f"_{name}" if not name or name[0].isdigit() else name


def _annotations(n: Notification) -> dict[str, str]:
    c = card(n)
    parts = {
        "summary": c.summary,
        "description": "\n".join(c.lines),
        "commands": "\n".join((*c.commands, *c.more)),
        "runbook": c.runbook,
        "runbook_url": address_of(c.runbook),
        "note": c.note,
        "page": one_line(n.page, 2000),
        "sentinel_alert": one_line(n.alert, _LABEL),
        "sentinel_incident": one_line(n.incident or n.alert, _LABEL),
    }
    return {name: text for name, text in parts.items() if text}


def _replacing(
    own: dict[str, Any], known: Sequence[dict[str, Any]], n: Notification, now: datetime
) -> list[dict[str, Any]]:
    """The alert, and an end for each that it takes the place of.

    Labels are the identity there: worse is another alert, and an end with other labels than
    the beginning would end nothing.
    """
    if move(n) == "close":
        end = moment(own["endsAt"]) or now
        return [_ended(old, end) for old in known] or [own]
    others = [old for old in known if old.get("labels") != own["labels"]]
    return [*(_ended(old, now) for old in others), own]


def _same(found: Any, labels: Labels) -> bool:
    """Whether it is about our subject: what belongs to others is never ended."""
    known = found if isinstance(found, dict) else {}
    return all(known.get(name, "") == labels.get(name, "") for name in _KEY)


def _ended(old: dict[str, Any], end: datetime) -> dict[str, Any]:
    """Never before its beginning: that would be refused."""
    kept = {name: value for name, value in old.items() if name in _KEPT}
    begun = moment(str(old.get("startsAt", ""))) or end
    return {**kept, "endsAt": max(end, begun).isoformat()}


def _quoted(text: str) -> str:
    """As a matcher quotes it: https://prometheus.io/docs/alerting/latest/configuration/#matcher"""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
