"""A message as Slack's blocks.

Rich text is made of elements and parsed for nothing, so no text of others can call people,
forge links or set type: https://docs.slack.dev/reference/block-kit/blocks/rich-text-block
Only `text`, which notifications show, is parsed and therefore escaped:
https://docs.slack.dev/messaging/formatting-message-text#escaping
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from sentinel.channels.chat import Message
from sentinel.channels.format.blocks import Block, fitted
from sentinel.channels.format.text import subject
from sentinel.channels.markup import links
from sentinel.core.text import shortened

_ROOM = 6000
_SECTION = 3000  # https://docs.slack.dev/reference/block-kit/blocks/section-block
_SECTIONS = 3


def payload(message: Message) -> dict[str, Any]:
    """What webhooks and chat.postMessage have in common."""
    line = message.words.subject or subject(message.notifications)
    return {
        "text": escaped(line),
        "mrkdwn": False,
        "blocks": _blocks(message),
        "unfurl_links": False,
        "unfurl_media": False,
    }


def escaped(text: str) -> str:
    """Nothing in it is a mention, a link or a command of Slack's."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _blocks(message: Message) -> list[dict[str, Any]]:
    title = Block("strong", shortened(message.title, 400))
    if message.words.text is not None:
        return [{"type": "rich_text", "elements": [_section([title])]}, *_own(message.words.text)]
    blocks = (title, *fitted(message.chat, _ROOM))
    runs = groupby(blocks, key=lambda block: block.role == "code")
    elements = [_code(list(run)) if code else _section(list(run)) for code, run in runs]
    return [{"type": "rich_text", "elements": elements}]


def _own(text: str) -> list[dict[str, Any]]:
    """The text of a template, in Slack's own markup."""
    parts = [text[i : i + _SECTION] for i in range(0, _SECTION * _SECTIONS, _SECTION)]
    return [
        {"type": "section", "text": {"type": "mrkdwn", "text": part}}
        for part in parts
        if part.strip()
    ]


def _section(blocks: Sequence[Block]) -> dict[str, Any]:
    """One section for all of them: only a line break of its own surely ends a line."""
    elements: list[dict[str, Any]] = []
    for block in blocks:
        elements += [_text("\n")] if elements else []
        style = {"strong": {"bold": True}, "dim": {"italic": True}}.get(block.role, {})
        if block.url:
            elements.append({**_link(block.url), "text": block.text})
            continue
        elements += [_link(p) if link else _text(p, **style) for p, link in links(block.text)]
    return {"type": "rich_text_section", "elements": elements}


def _code(blocks: Sequence[Block]) -> dict[str, Any]:
    text = "\n\n".join(block.text for block in blocks)
    return {"type": "rich_text_preformatted", "elements": [_text(text)]}


def _text(text: str, **style: bool) -> dict[str, Any]:
    return {"type": "text", "text": text, **({"style": style} if style else {})}


def _link(url: str) -> dict[str, Any]:
    return {"type": "link", "url": url}
