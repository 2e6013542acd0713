"""Sends alerts to an existing Prometheus Alertmanager, which routes and groups them itself.

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
from msgspec.structs import replace

from sentinel.channels.event import incident_move, severity_word
from sentinel.channels.format.moments import parse_iso_time
from sentinel.channels.format.text import make_card, more_commands
from sentinel.channels.http import exchange_http, refused_status
from sentinel.channels.http_channel import HttpChannel
from sentinel.channels.http_request import HttpRequest, url_origin
from sentinel.channels.markup import first_address
from sentinel.channels.post import json_request, pretty_json, url_below
from sentinel.channels.settings import check_headers, check_timeout, check_url
from sentinel.core.command_places import comment_places
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.model import Notification, Receipt
from sentinel.core.settings import ExpectedAnswer, FilePath, Secret
from sentinel.core.text import shorten_to_line
from sentinel.core.values import Duration, duration_text

_OURS = ("content-length", "content-type", "host", "transfer-encoding")
_LABEL, _MOST = 200, 1 << 20
_TEST_S = 300.0
_ACKNOWLEDGED = 30 * 86400.0  # seconds: an acknowledged alert is not repeated
_KEPT = ("labels", "annotations", "startsAt")
_KEY = ("cluster", "alertname", "subject")
_EVENT = "event"

Labels = Mapping[str, str]


class Alertmanager(HttpChannel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pushes alerts to every instance of a Prometheus Alertmanager, by its v2 API.

    An alert that is not repeated ends there after `expires`: it must be longer than the
    repeats of the route. A test message ends after 5 minutes. What has ended is ended there at once.
    """

    groups: ClassVar[bool] = False
    answers: ClassVar[tuple[ExpectedAnswer, ...]] = (
        ExpectedAnswer(status=200, body=re.compile(r"\A\Z")),
    )

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
        """The problem with a route that repeats after this many seconds. Empty if there is none."""
        if seconds < self.expires:
            return ""
        return (
            f"an alert ends at Alertmanager after {duration_text(self.expires)} ('expires'), but "
            f"is repeated only every {duration_text(seconds)}: it would come and go"
        )

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Send to all instances. As with Prometheus, success at one is enough. There is a doubt if
        no instance is beyond doubt."""
        tries = (self._tell_instance(url, notifications) for url in self.urls)
        results = await asyncio.gather(*tries, return_exceptions=True)
        errors = [r for r in results if isinstance(r, BaseException)]
        if len(errors) == len(self.urls):
            raise min(errors, key=lambda error: getattr(error, "permanent", False))
        failed = [u for u, r in zip(self.urls, results, strict=True) if r in errors]
        taken = [r for r in results if isinstance(r, Receipt)]
        said = "; ".join(r.text if isinstance(r, Receipt) else str(r) for r in results)
        doubt = "" if any(not r.doubt for r in taken) else taken[0].doubt
        return Receipt(said, tuple(map(url_origin, failed)), doubt)

    def preview(self, notifications: Sequence[Notification]) -> list[tuple[str, str]]:
        """The alerts in the form of the API."""
        now = datetime.now(timezone.utc)
        return [
            (
                "alerts",
                pretty_json([api_alert(n, now, self.expires) for n in _alerts_only(notifications)]),
            )
        ]

    async def _tell_instance(self, url: str, notifications: Sequence[Notification]) -> Receipt:
        now = datetime.now(timezone.utc)
        requests = []
        for n in _alerts_only(notifications):
            own = api_alert(n, now, self.expires)
            known = [] if n.reason == "firing" else await self._known_alerts(url, own["labels"])
            posted = _replace_known(own, known, n, now)
            requests.append(self._make_request(url, "api/v2/alerts", posted))
        return await self.submit(*requests, none="nothing to send: Alertmanager takes no notes")

    async def _known_alerts(self, url: str, labels: Labels) -> list[dict[str, Any]]:
        """The alerts about the same subject that Alertmanager has. Their labels may be older."""
        filters = [("filter", f"{name}={_quote_matcher(labels.get(name, ''))}") for name in _KEY]
        request = self._make_request(url, f"api/v2/alerts?{urlencode(filters)}", None)
        answer = await exchange_http(request)
        if answer.status != 200:
            raise refused_status(request, answer)
        try:
            found = msgspec.json.decode(answer.body, type=list[dict[str, Any]])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise ChannelError(
                f"{url_origin(url)} gave no proper answer", reason="server"
            ) from None
        return [old for old in found if _is_same_subject(old.get("labels"), labels)]

    def _make_request(self, url: str, path: str, body: Any) -> HttpRequest:
        headers = {name: value.reveal() for name, value in self.headers.items()}
        method = "GET" if body is None else "POST"
        return json_request(
            url_below(url, path),
            body,
            self.timeout / 2,
            self.ca_file,
            method=method,
            headers=headers,
            most=_MOST,
        )


def _alerts_only(notifications: Sequence[Notification]) -> list[Notification]:
    """The notifications about the status of an alert. Alertmanager has no place for notes."""
    return [n for n in notifications if incident_move(n) != "note"]


def api_alert(n: Notification, now: datetime, expires: float) -> dict[str, Any]:
    """An alert of the v2 API. It has an end if the notification is about an end."""
    ended = incident_move(n) == "close"
    lasts = max(expires, _ACKNOWLEDGED) if incident_move(n) == "acknowledge" else expires
    lasts = _TEST_S if n.reason == "test" else lasts
    end = min(parse_iso_time(n.at) or now, now) if ended else now + timedelta(seconds=lasts)
    start = min(parse_iso_time(n.since) or now, end)
    return {
        "labels": _label_set(n),
        "annotations": _annotation_set(n),
        "startsAt": start.isoformat(),
        "endsAt": end.isoformat(),
    }


def _label_set(n: Notification) -> dict[str, str]:
    """The labels for Alertmanager's routes. Empty ones are left out, and names are changed to what
    Prometheus allows."""
    given = {_label_name(name): shorten_to_line(text, _LABEL) for name, text in n.labels.items()}
    own = {
        "alertname": n.check,
        "cluster": n.cluster,
        "kind": n.kind,
        "subject": n.subject,
        "severity": severity_word(n),
        # Alertmanager tells people of an alert once. A further death has to be an alert of its own.
        _EVENT: n.key if n.reason == "again" else "",
    }
    labels = {**given, **{name: shorten_to_line(text, _LABEL) for name, text in own.items()}}
    return {name: text for name, text in labels.items() if text}


def _label_name(text: str) -> str:
    name = re.sub(r"[^a-zA-Z0-9_]", "_", text[:_LABEL])
    return f"_{name}" if not name or name[0].isdigit() else name


def _annotation_set(n: Notification) -> dict[str, str]:
    # Others look at it there as long as it fires: they need all but what submits it a second time.
    c = make_card(replace(n, acts=(), reason="repeat") if n.reason == "ack" else n)
    parts = {
        "summary": c.summary,
        "description": "\n".join(c.lines),
        "commands": "\n".join(comment_places((*c.command_groups, *more_commands(c)))),
        "acts": "\n".join(comment_places(c.act_groups)),
        "impact": c.impact,
        "what_to_do": "\n".join(c.steps),
        "host": shorten_to_line(str(n.values.get("host") or ""), _LABEL),
        "runbook": c.runbook,
        "runbook_url": first_address(c.runbook),
        "note": c.note,
        "page": shorten_to_line(n.page, 2000),
        "sentinel_alert": shorten_to_line(n.alert, _LABEL),
        "sentinel_incident": shorten_to_line(n.incident or n.alert, _LABEL),
    }
    return {name: text for name, text in parts.items() if text}


def _replace_known(
    own: dict[str, Any], known: Sequence[dict[str, Any]], n: Notification, now: datetime
) -> list[dict[str, Any]]:
    """The alert, and an end for each older alert that it replaces.

    Alertmanager identifies an alert by its labels. A worse severity makes another alert. An end
    with other labels than the beginning would end nothing. A repeat is no new event.
    """
    labels = own["labels"]
    alike = [
        o["labels"] for o in known if {**o.get("labels", {}), _EVENT: ""} == {**labels, _EVENT: ""}
    ]
    if alike and n.reason != "again":
        own = {**own, "labels": alike[-1]}
    if incident_move(n) == "close":
        end = parse_iso_time(own["endsAt"]) or now
        # What to do, and what happens if nobody does it, is over.
        said = {"annotations": own["annotations"]}
        return [{**_end_old(old, end), **said} for old in known] or [own]
    others = [old for old in known if old.get("labels") != own["labels"]]
    return [*(_end_old(old, now) for old in others), own]


def _is_same_subject(found: Any, labels: Labels) -> bool:
    """Whether the alert is about the same subject. Alerts of others are never ended."""
    known = found if isinstance(found, dict) else {}
    return all(known.get(name, "") == labels.get(name, "") for name in _KEY)


def _end_old(old: dict[str, Any], end: datetime) -> dict[str, Any]:
    """An end for an older alert. It is not before its beginning, because Alertmanager would refuse
    that."""
    kept = {name: value for name, value in old.items() if name in _KEPT}
    begun = parse_iso_time(str(old.get("startsAt", ""))) or end
    return {**kept, "endsAt": max(end, begun).isoformat()}


def _quote_matcher(text: str) -> str:
    """The value in quotes, as in a matcher:
    https://prometheus.io/docs/alerting/latest/configuration/#matcher"""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
