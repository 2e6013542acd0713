"""Microsoft Teams through a webhook of the Workflows app, as an Adaptive Card.

https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, ClassVar

import msgspec

from sentinel.channels.chat import ChatChannel, Message, buttons, unanswered
from sentinel.channels.format.blocks import Block, fitted
from sentinel.channels.http import Request
from sentinel.channels.markup import PLAIN, Markup
from sentinel.channels.post import post
from sentinel.channels.settings import check_url
from sentinel.core.settings import FilePath, Secret
from sentinel.core.text import shortened

_ROOM, _LINE = 12_000, 120
"""Bytes of JSON, and what a line costs besides its text; Teams takes 28 KB."""

_COLOURS = {"critical": "Attention", "warning": "Warning", "unknown": "Accent", "ok": "Good"}
_STYLES: dict[str, dict[str, Any]] = {
    "line": {},
    "strong": {"weight": "Bolder"},
    "dim": {"isSubtle": True, "size": "Small"},
    "code": {"fontType": "Monospace", "size": "Small"},
}


class Teams(ChatChannel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Adaptive Cards in Microsoft Teams through a webhook of its Workflows app.

    Text runs know no markup, unlike text blocks: https://adaptivecards.io/explorer/TextRun.html
    """

    markup: ClassVar[Markup] = PLAIN

    url: Secret
    ca_file: FilePath = FilePath("")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_url(self.url.reveal(), "url")

    def request(self, message: Message) -> Request:
        """A message with one card."""
        attachment = {
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": None,
            "content": _card(message),
        }
        payload = {"type": "message", "attachments": [attachment]}
        return post(self.url.reveal(), payload, self.timeout, self.ca_file)


def _card(message: Message) -> dict[str, Any]:
    colour = _COLOURS.get(message.chat.tone, "Default")
    title = _run(shortened(message.title, 400), weight="Bolder", size="Medium", color=colour)
    actions = [{"type": "Action.OpenUrl", "title": t, "url": u} for t, u in buttons(message)]
    return {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": [_paragraph(title), *chain.from_iterable(map(_block, _blocks(message)))],
        **({"actions": actions} if actions else {}),
    }


def _blocks(message: Message) -> tuple[Block, ...]:
    if message.words.text is None:
        return fitted(unanswered(message).chat, _ROOM, _size)
    return (Block("line", shortened(message.words.text, _ROOM // 4)),)


def _size(block: Block) -> int:
    return len(msgspec.json.encode(block.text)) + _LINE * (block.text.count("\n") + 1)


def _block(block: Block) -> Iterator[dict[str, Any]]:
    """An element for each line: how a line break within one looks is nowhere promised."""
    for number, line in enumerate(block.text.split("\n")):
        spacing = {"spacing": "None"} if number else {}
        yield {**_paragraph(_run(line or " ", **_STYLES[block.role])), **spacing}


def _paragraph(run: dict[str, Any]) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [run]}


def _run(text: str, **style: Any) -> dict[str, Any]:
    return {"type": "TextRun", "text": text, **style}
