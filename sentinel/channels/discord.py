"""Sends messages to Discord through a webhook:
https://discord.com/developers/docs/resources/webhook#execute-webhook"""

from typing import ClassVar

from sentinel.channels.chat import ChatMessage, WebhookChat
from sentinel.channels.http_request import HttpRequest
from sentinel.channels.markup import DISCORD, Markup
from sentinel.channels.post import form_request, json_request
from sentinel.core.settings import ExpectedAnswer
from sentinel.core.text import shortened

# https://discord.com/developers/docs/resources/message#embed-object-embed-limits
_TITLE, _ROOM = 256, 4000
_COLOURS = {
    "critical": 0xB42318,
    "warning": 0xB25E02,
    "unknown": 0x6941C6,
    "ok": 0x067647,
    "info": 0x175CD3,
}


class Discord(WebhookChat, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages in a Discord channel through its webhook; nobody is ever mentioned."""

    markup: ClassVar[Markup] = DISCORD
    pictures: ClassVar[bool] = True
    answers: ClassVar[tuple[ExpectedAnswer, ...]] = (
        ExpectedAnswer(status=200, json={"id": None}),
        ExpectedAnswer(status=204),
    )

    def request(self, message: ChatMessage) -> HttpRequest:
        """An embed with a colour for the severity. `content` would appear above it, so it is not
        used."""
        embed = {
            "title": shortened(self.markup.escape(shortened(message.title_line, 180)), _TITLE),
            "description": message.body_text(_ROOM),
            "color": _COLOURS.get(message.chat.tone, _COLOURS["info"]),
        }
        payload = {"embeds": [embed], "allowed_mentions": {"parse": []}}
        return json_request(_add_wait(self.url.reveal()), payload, self.timeout, self.ca_file)

    def upload(self, picture: bytes) -> HttpRequest:
        """The request that uploads the picture:
        https://discord.com/developers/docs/reference#uploading-files"""
        url = _add_wait(self.url.reveal())
        return form_request(url, {}, "files[0]", picture, self.timeout, self.ca_file)


def _add_wait(url: str) -> str:
    """Add `wait=true` to the address. Without it, Discord answers before it has stored the message,
    and some messages are lost without an error."""
    return f"{url}{'&' if '?' in url else '?'}wait=true"
