"""Microsoft Teams through a webhook of the Workflows app, as an Adaptive Card.

https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, ClassVar

import msgspec

from sentinel.channels.chat import ChatMessage, WebhookChat, button_links, without_answers
from sentinel.channels.format.blocks import MessageBlock, fit_blocks
from sentinel.channels.http_request import HttpRequest
from sentinel.channels.markup import PLAIN, Markup
from sentinel.channels.post import json_request
from sentinel.core.settings import ExpectedAnswer
from sentinel.core.text import shortened

_ROOM, _LINE = 12_000, 120
"""Limit for the JSON in bytes, and the bytes that each line needs besides its text. Teams accepts
28 KB."""

_COLOURS = {"critical": "Attention", "warning": "Warning", "unknown": "Accent", "ok": "Good"}
_STYLES: dict[str, dict[str, Any]] = {
    "line": {},
    "strong": {"weight": "Bolder"},
    "dim": {"isSubtle": True, "size": "Small"},
    "code": {"fontType": "Monospace", "size": "Small"},
}


class Teams(WebhookChat, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Adaptive Cards in Microsoft Teams through a webhook of its Workflows app.

    Text runs know no markup, unlike text blocks: https://adaptivecards.io/explorer/TextRun.html
    """

    markup: ClassVar[Markup] = PLAIN
    # Workflows; and the connectors that they replace, which other services still imitate.
    answers: ClassVar[tuple[ExpectedAnswer, ...]] = (
        ExpectedAnswer(status=202, body=re.compile(r"\A\Z")),
        ExpectedAnswer(status=200, body=re.compile(r"\A1\Z")),
    )

    def request(self, message: ChatMessage) -> HttpRequest:
        """A message with one card."""
        attachment = {
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": None,
            "content": _adaptive_card(message),
        }
        payload = {"type": "message", "attachments": [attachment]}
        return json_request(self.url.reveal(), payload, self.timeout, self.ca_file)


def _adaptive_card(message: ChatMessage) -> dict[str, Any]:
    colour = _COLOURS.get(message.chat.tone, "Default")
    title = _text_run(
        shortened(message.title_line, 400), weight="Bolder", size="Medium", color=colour
    )
    actions = [{"type": "Action.OpenUrl", "title": t, "url": u} for t, u in button_links(message)]
    return {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": [
            _rich_paragraph(title),
            *chain.from_iterable(map(_block_elements, _fitted_blocks(message))),
        ],
        **({"actions": actions} if actions else {}),
    }


def _fitted_blocks(message: ChatMessage) -> tuple[MessageBlock, ...]:
    if message.words.text is None:
        return fit_blocks(without_answers(message).chat, _ROOM, _block_size)
    return (MessageBlock("line", shortened(message.words.text, _ROOM // 4)),)


def _block_size(block: MessageBlock) -> int:
    return len(msgspec.json.encode(block.text)) + _LINE * (block.text.count("\n") + 1)


def _block_elements(block: MessageBlock) -> Iterator[dict[str, Any]]:
    """One element per line, because the look of a line break within an element is not documented."""
    for number, line in enumerate(block.text.split("\n")):
        spacing = {"spacing": "None"} if number else {}
        yield {**_rich_paragraph(_text_run(line or " ", **_STYLES[block.role])), **spacing}


def _rich_paragraph(run: dict[str, Any]) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [run]}


def _text_run(text: str, **style: Any) -> dict[str, Any]:
    return {"type": "TextRun", "text": text, **style}
