"""Sends messages through a Mattermost webhook:
https://developers.mattermost.com/integrate/webhooks/incoming/"""

import re
from typing import ClassVar

from sentinel.channels.chat import ChatMessage, WebhookChat
from sentinel.channels.http_request import HttpRequest
from sentinel.channels.markup import MATTERMOST, Markup
from sentinel.channels.post import json_request
from sentinel.core.settings import ExpectedAnswer

_ROOM = 7500
"""Characters. A post may have 16,383, but nobody reads such a long one."""


class Mattermost(WebhookChat, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages in a Mattermost channel through an incoming webhook; nobody is mentioned."""

    markup: ClassVar[Markup] = MATTERMOST
    answers: ClassVar[tuple[ExpectedAnswer, ...]] = (
        ExpectedAnswer(status=200, body=re.compile(r"\Aok\Z")),
    )

    channel: str = ""

    def request(self, message: ChatMessage) -> HttpRequest:
        """The request. `channel`, if set, replaces the webhook's own channel."""
        place = {"channel": self.channel} if self.channel else {}
        payload = {"text": message.whole_text(_ROOM), **place}
        return json_request(self.url.reveal(), payload, self.timeout, self.ca_file)
