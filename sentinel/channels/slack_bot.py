"""A Slack bot that posts one message per alert, and later messages in its thread.

No thread is stored. The message carries the ids of its alerts as metadata. After a restart it is
found in the channel's history. https://docs.slack.dev/messaging/message-metadata and
https://docs.slack.dev/reference/methods/conversations.history
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from sentinel.channels.chat import ChatMessage
from sentinel.channels.event import incident_move
from sentinel.channels.format.moments import parse_iso_time
from sentinel.channels.http import exchange_http, refused_status
from sentinel.channels.http_request import HttpRequest, url_origin
from sentinel.channels.post import json_request, url_below
from sentinel.channels.redact import quote_redacted
from sentinel.channels.slack_blocks import slack_payload
from sentinel.core.errors import ChannelError
from sentinel.core.model import Notification
from sentinel.core.settings import Secret
from sentinel.core.text import shorten_to_line

MOST = 4 << 20
"""How many bytes of an answer are read. It must hold a page of history with its metadata."""

_EVENT = "sentinel_alerts"
_BEFORE = 3600  # seconds, because clocks differ; an alert is never posted before it began
_ALERTS = 200
_REASONS = {
    **dict.fromkeys(("access_denied", "account_inactive", "invalid_auth", "missing_scope"), "auth"),
    **dict.fromkeys(("no_permission", "not_allowed_token_type", "not_authed"), "auth"),
    **dict.fromkeys(("org_login_required", "token_expired", "token_revoked"), "auth"),
    **dict.fromkeys(("ratelimited", "rate_limited", "message_limit_exceeded"), "rate"),
    **dict.fromkeys(("fatal_error", "internal_error", "request_timeout"), "server"),
    "service_unavailable": "server",
}
"""What Slack's errors are about. Any other one is about the message: refused for good, tried each hour."""


class ThreadRoot(Struct, frozen=True):
    """The first message of a thread, and the alerts that it is about."""

    channel: str  # Id of the channel.
    ts: str  # Timestamp that names the message.
    alerts: tuple[str, ...]  # Ids of its alerts.

    @classmethod
    def root_of_answer(
        cls, given: dict[str, Any], channel: str, alerts: tuple[str, ...]
    ) -> "ThreadRoot | None":
        """The message that Slack reports to have created."""
        ts = given.get("ts")
        return (
            cls(str(given.get("channel") or channel), ts, alerts) if isinstance(ts, str) else None
        )


async def call_slack(request: HttpRequest) -> dict[str, Any]:
    """Call Slack and return its answer. Raises ChannelError unless the answer is `ok`."""
    answer = await exchange_http(request)
    if not 200 <= answer.status < 300:
        raise refused_status(request, answer)
    given, place = answer.json_fields, url_origin(request.url)
    if given.get("ok") is True:
        return given
    error = given.get("error")
    if not isinstance(error, str):
        raise ChannelError(f"{place} gave no proper answer: {answer.said}", reason="server")
    raise _slack_refusal(
        error, f"{place} answered {quote_redacted(error, request.secret_parts)}", answer.retry_after
    )


def _slack_refusal(error: str, text: str, retry_after: float | None) -> ChannelError:
    reason = _REASONS.get(error, "refused")
    return ChannelError(
        f"{text}; check token and scopes" if reason == "auth" else text,
        permanent=reason in ("auth", "refused"),
        reason=reason,
        retry_after=retry_after if reason == "rate" else None,
    )


def thread_metadata(alerts: Sequence[str]) -> dict[str, Any]:
    """The metadata by which the message can be found."""
    ids = [shorten_to_line(alert, 80) for alert in alerts[:_ALERTS]]
    return {"event_type": _EVENT, "event_payload": {"alerts": " ".join(ids)}}


def roots_in_history(page: dict[str, Any], channel: str) -> Iterator[ThreadRoot]:
    """The messages in a page of history that began a thread. Replies are left out."""
    messages = page.get("messages")
    for found in messages if isinstance(messages, list) else []:
        about = object_member(found, "metadata")
        alerts = object_member(about, "event_payload").get("alerts")
        if about.get("event_type") != _EVENT or not isinstance(alerts, str):
            continue
        if found.get("thread_ts", found.get("ts")) == found.get("ts"):
            yield ThreadRoot(channel, str(found.get("ts")), tuple(alerts.split()))


def object_member(given: Any, key: str) -> dict[str, Any]:
    """The member of an object that is an object itself. Empty if there is none."""
    found = given.get(key) if isinstance(given, dict) else None
    return found if isinstance(found, dict) else {}


def oldest_timestamp(times: Iterable[str]) -> str:
    """A time before all messages about these alerts, in Slack's format."""
    moments = [parse_iso_time(text) for text in times]
    if None in moments:
        return "0"
    first = min(m.timestamp() for m in moments if m)
    return f"{max(0.0, first - _BEFORE):.6f}"


_PAGE, _PAGES = 200, 3
_SHARE = 0.25  # share of the timeout for calls that only improve the look of a message
_REMEMBERED = 5000
_FIRST = ("firing", "test", "flapping")
_ALOUD = ("worse", "again", "repeat")
"""Replies with these reasons are also shown in the channel."""

_roots: dict[tuple[str, str, str], ThreadRoot] = {}


class SlackBot(Struct, frozen=True):
    """Calls Slack's Web API. The token needs the scope chat:write. To find threads after a restart
    it also needs channels:history, or groups:history for a private channel."""

    token: Secret  # The bot's token.
    channel: str  # Name or id of the channel.
    api: str  # Address of the API.
    timeout: float  # Seconds that a request may take.
    ca_file: str  # PEM file of the only CA to trust; empty: the system's.

    async def post_message(self, message: ChatMessage) -> str:
        """Post the message, in the thread of its alerts if there is one."""
        about = _alert_ids(message.notifications)
        root, trouble = await self._find_root(message.notifications)
        try:
            given = await self._post_in_thread(message, root, about)
        except ChannelError as error:
            if root is None or not error.permanent or error.reason != "refused":
                raise
            root, trouble = None, f"; not in its thread: {error}"
            given = await self._post_in_thread(message, root, about)
        if root is None:
            self._remember_root(ThreadRoot.root_of_answer(given, self.channel, about))
            return f"Slack accepted it for channel {self.channel}{trouble}"
        _roots.update({self._root_key(alert): root for alert in about})
        if root.alerts == about and any(incident_move(n) != "note" for n in message.notifications):
            trouble = await self._refresh_root(root, message)
        return f"Slack accepted it in a thread of channel {self.channel}{trouble}"

    async def _post_in_thread(
        self, message: ChatMessage, root: ThreadRoot | None, about: tuple[str, ...]
    ) -> dict[str, Any]:
        body = {
            **slack_payload(message),
            "channel": self.channel,
            "metadata": thread_metadata(about),
        }
        if root is not None:
            aloud = any(n.reason in (*_ALOUD, *_FIRST) for n in message.notifications)
            body |= {"channel": root.channel, "thread_ts": root.ts, "reply_broadcast": aloud}
        return await self._call_method("chat.postMessage", body, 1 - 2 * _SHARE)

    async def _find_root(
        self, notifications: Sequence[Notification]
    ) -> tuple[ThreadRoot | None, str]:
        """The one message that was about all these alerts, or about the cause of their incident.
        Also the reason why it could not be found."""
        if any(n.reason in _FIRST or not n.alert for n in notifications):
            causes = {n.incident for n in notifications if n.incident != n.alert}
            of_all = len(causes) == 1 and all(n.incident in causes for n in notifications)
            return (_roots.get(self._root_key(causes.pop())) if of_all else None), ""
        known = {_roots.get(self._root_key(n.alert)) for n in notifications}
        if known != {None}:
            return (known.pop(), "") if len(known) == 1 else (None, "")
        import asyncio

        try:
            return await asyncio.wait_for(
                self._find_in_history(notifications), self.timeout * _SHARE
            ), ""
        except ChannelError as error:
            return None, f"; not in a thread: {error}"
        except (asyncio.TimeoutError, TimeoutError):
            return None, "; not in a thread: the channel's history did not come in time"

    async def _find_in_history(self, notifications: Sequence[Notification]) -> ThreadRoot | None:
        """This bot's message in the channel's history that names all of the alerts."""
        wanted = set(_alert_ids(notifications))
        query = {"channel": self.channel, "limit": str(_PAGE), "include_all_metadata": "true"}
        query["oldest"] = oldest_timestamp(n.since for n in notifications)
        for _ in range(_PAGES):
            page = await self._call_method(
                f"conversations.history?{urlencode(query)}", None, _SHARE
            )
            for root in roots_in_history(page, self.channel):
                self._remember_root(root)
                if wanted <= set(root.alerts):
                    return root
            query["cursor"] = str(object_member(page, "response_metadata").get("next_cursor") or "")
            if not query["cursor"]:
                break
        return None

    async def _refresh_root(self, root: ThreadRoot, message: ChatMessage) -> str:
        """Edit the first message of the thread so that it shows the current state.

        If Slack refuses the edit, a note for the receipt is returned. This does not count as a
        failure.
        """
        body = {**slack_payload(message), "channel": root.channel, "ts": root.ts}
        try:
            await self._call_method(
                "chat.update", {**body, "metadata": thread_metadata(root.alerts)}, _SHARE
            )
        except ChannelError as error:
            return f"; the first message stays as it was: {error}"
        return ""

    async def _call_method(self, method: str, body: Any, share: float) -> dict[str, Any]:
        limit = self.timeout * share
        headers = {"Authorization": f"Bearer {self.token.reveal()}"}
        request = json_request(
            url_below(self.api, method),
            body,
            limit,
            self.ca_file,
            method="GET" if body is None else "POST",
            headers=headers,
            most=MOST,
        )
        return await call_slack(request)

    def _root_key(self, alert: str) -> tuple[str, str, str]:
        return self.api, self.channel, alert

    def _remember_root(self, root: ThreadRoot | None) -> None:
        if root is not None:
            _roots.update({self._root_key(alert): root for alert in root.alerts})
        for old in [*_roots][: max(0, len(_roots) - _REMEMBERED)]:
            del _roots[old]


def _alert_ids(notifications: Sequence[Notification]) -> tuple[str, ...]:
    return tuple(sorted({n.alert for n in notifications if n.alert}))
