"""Slack's Web API: one call, its errors in ours, and where earlier messages are.

https://docs.slack.dev/apis/web-api/#responses: the status is 200 even where `ok` is false.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from sentinel.channels.format.text import moment
from sentinel.channels.http import Request, exchange, origin, refusal
from sentinel.channels.redact import quoted
from sentinel.core.errors import ChannelError
from sentinel.core.text import one_line

MOST = 4 << 20
"""Bytes of an answer that are read: a page of history with its metadata."""

_EVENT = "sentinel_alerts"
_BEFORE = 3600  # seconds: clocks differ, and an alert is told after it began, never before
_ALERTS = 200
_AUTH = (
    "access_denied",
    "account_inactive",
    "invalid_auth",
    "missing_scope",
    "no_permission",
    "not_allowed_token_type",
    "not_authed",
    "org_login_required",
    "token_expired",
    "token_revoked",
)
_RATE = ("ratelimited", "rate_limited", "message_limit_exceeded")
_LATER = ("fatal_error", "internal_error", "request_timeout", "service_unavailable")


class Root(Struct, frozen=True):
    """The message that a thread hangs on: where it is, and which alerts it is about."""

    channel: str
    ts: str
    alerts: tuple[str, ...]

    @classmethod
    def of(cls, given: dict[str, Any], channel: str, alerts: tuple[str, ...]) -> "Root | None":
        """The message that Slack says it has made."""
        ts = given.get("ts")
        return (
            cls(str(given.get("channel") or channel), ts, alerts) if isinstance(ts, str) else None
        )


async def call(request: Request) -> dict[str, Any]:
    """What Slack answers where it is `ok`, else ChannelError."""
    answer = await exchange(request)
    if not 200 <= answer.status < 300:
        raise refusal(request, answer)
    given, place = answer.fields, origin(request.url)
    if given.get("ok") is True:
        return given
    error = given.get("error")
    if not isinstance(error, str):
        raise ChannelError(f"{place} gave no proper answer: {answer.said}", reason="server")
    raise _said_no(error, f"{place} answered {quoted(error, request.secrets)}", answer.retry_after)


def _said_no(error: str, text: str, retry_after: float | None) -> ChannelError:
    if error in _AUTH:
        return ChannelError(f"{text}; check token and scopes", permanent=True, reason="auth")
    if error in _RATE:
        return ChannelError(text, reason="rate", retry_after=retry_after)
    if error in _LATER:
        return ChannelError(text, reason="server")
    return ChannelError(text, permanent=True, reason="refused")


def metadata(alerts: Sequence[str]) -> dict[str, Any]:
    """What a message says about itself to those who look for it."""
    ids = [one_line(alert, 80) for alert in alerts[:_ALERTS]]
    return {"event_type": _EVENT, "event_payload": {"alerts": " ".join(ids)}}


def roots_in(page: dict[str, Any], channel: str) -> Iterator[Root]:
    """The messages of a page of history that began something; replies are none."""
    messages = page.get("messages")
    for found in messages if isinstance(messages, list) else []:
        about = member(found, "metadata")
        alerts = member(about, "event_payload").get("alerts")
        if about.get("event_type") != _EVENT or not isinstance(alerts, str):
            continue
        if found.get("thread_ts", found.get("ts")) == found.get("ts"):
            yield Root(channel, str(found.get("ts")), tuple(alerts.split()))


def member(given: Any, key: str) -> dict[str, Any]:
    """The object that this member of another is; empty where it is none."""
    found = given.get(key) if isinstance(given, dict) else None
    return found if isinstance(found, dict) else {}


def oldest(times: Iterable[str]) -> str:
    """The moment before which none of the alerts can have been told, as Slack writes it."""
    moments = [moment(text) for text in times]
    if None in moments:
        return "0"
    first = min(m.timestamp() for m in moments if m)
    return f"{max(0.0, first - _BEFORE):.6f}"
