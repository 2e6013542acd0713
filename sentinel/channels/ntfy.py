"""Sends notifications through ntfy.sh or another ntfy server:
https://docs.ntfy.sh/publish/#publish-as-json"""

import re
from typing import ClassVar
from urllib.parse import urlsplit

from msgspec.structs import replace

from sentinel.channels.chat import ChatMessage, WebhookChat, button_links, is_quiet, without_answers
from sentinel.channels.http_request import HttpRequest
from sentinel.channels.markup import PLAIN, Markup
from sentinel.channels.post import json_request
from sentinel.channels.settings import check_secret
from sentinel.core.errors import Invalid
from sentinel.core.settings import ExpectedAnswer, Secret

_TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
# Bytes. ntfy turns messages above 4,096 into attachments, and refuses titles above 1,024.
_ROOM, _TITLE = 3600, 900
_PRIORITIES = {"critical": 5, "unknown": 4, "warning": 4, "info": 3, "ok": 3}


class Ntfy(WebhookChat, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Notifications on phones through an ntfy topic; its name is a secret, as its address is.

    Sent as JSON to the server's root, so that no text has to be fit for a header.
    """

    pictures: ClassVar[bool] = True
    answers: ClassVar[tuple[ExpectedAnswer, ...]] = (
        ExpectedAnswer(status=200, json={"id": None, "event": "message"}),
    )
    markup: ClassVar[Markup] = replace(PLAIN, measure=lambda text: len(_encode_text(text)))

    token: Secret | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _TOPIC.fullmatch(self._topic_name()):
            raise Invalid("ends with no topic; write it like https://ntfy.sh/my-topic", "url")
        if self.token is not None:
            check_secret(self.token, "access token, e.g. tk_…", "token")

    def request(self, message: ChatMessage) -> HttpRequest:
        """The request. Its priority depends on the severity. The address of the runbook becomes a
        button."""
        topic = self._topic_name()
        payload = {
            "topic": topic,
            "title": _cut_bytes(message.title_line, _TITLE),
            "message": _cut_bytes(without_answers(message).body_text(_ROOM), _ROOM + 400),
            "priority": 3 if is_quiet(message) else _PRIORITIES.get(message.chat.tone, 3),
            **_action_buttons(message),
        }
        root = urlsplit(self.url.reveal())._replace(path="/", query="", fragment="").geturl()
        return json_request(
            root, payload, self.timeout, self.ca_file, headers=self._auth_headers(), hidden=(topic,)
        )

    def upload(self, picture: bytes) -> HttpRequest:
        """The request that sends the picture, without a sound:
        https://docs.ntfy.sh/publish/#attach-local-file"""
        headers = {"Filename": "picture.png", "Priority": "min", "User-Agent": "sentinel"}
        return HttpRequest(
            url=self.url.reveal(),
            method="PUT",
            headers={**headers, **self._auth_headers()},
            body=picture,
            timeout=self.timeout,
            ca_file=self.ca_file,
            hidden=(self._topic_name(),),
        )

    def _auth_headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token.reveal()}"} if self.token else {}

    def _topic_name(self) -> str:
        return urlsplit(self.url.reveal()).path.strip("/")


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _action_buttons(message: ChatMessage) -> dict[str, object]:
    """The buttons, at most three: https://docs.ntfy.sh/publish/#action-buttons"""
    views = [{"action": "view", "label": word, "url": url} for word, url in button_links(message)]
    return {"actions": views[:3]} if views else {}


def _cut_bytes(text: str, most: int) -> str:
    """Cut the text to this many bytes of UTF-8."""
    data = _encode_text(text)
    return text if len(data) <= most else data[: most - 3].decode("utf-8", "ignore") + "…"
