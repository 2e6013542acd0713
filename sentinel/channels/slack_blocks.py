"""Formats a message as Slack's blocks.

Rich text consists of elements, and Slack does not parse it. So foreign text cannot mention people,
forge links or set type: https://docs.slack.dev/reference/block-kit/blocks/rich-text-block Slack
parses only `text`, which notifications show. So `text` is escaped:
https://docs.slack.dev/messaging/formatting-message-text#escaping
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from sentinel.channels.chat import ChatMessage
from sentinel.channels.format.blocks import MessageBlock, fit_blocks
from sentinel.channels.format.text import subject_line
from sentinel.channels.markup import split_links
from sentinel.core.text import shortened

_ROOM = 6000
_SECTION = 3000  # https://docs.slack.dev/reference/block-kit/blocks/section-block
_SECTIONS = 3


def slack_payload(message: ChatMessage) -> dict[str, Any]:
    """The payload that webhooks and chat.postMessage share."""
    line = message.words.subject or subject_line(message.notifications)
    return {
        "text": escape_slack(line),
        "mrkdwn": False,
        "blocks": _rich_text_blocks(message),
        "unfurl_links": False,
        "unfurl_media": False,
    }


def escape_slack(text: str) -> str:
    """Escape the text, so that Slack finds no mention, link or command in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _rich_text_blocks(message: ChatMessage) -> list[dict[str, Any]]:
    title = MessageBlock("strong", shortened(message.title_line, 400))
    if message.words.text is not None:
        return [
            {"type": "rich_text", "elements": [_section_element([title])]},
            *_template_blocks(message.words.text),
        ]
    blocks = (title, *fit_blocks(message.chat, _ROOM))
    runs = groupby(blocks, key=lambda block: block.role == "code")
    elements = [
        _code_element(list(run)) if code else _section_element(list(run)) for code, run in runs
    ]
    return [{"type": "rich_text", "elements": elements}]


def _template_blocks(text: str) -> list[dict[str, Any]]:
    """The text of a template, in Slack's markup."""
    parts = [text[i : i + _SECTION] for i in range(0, _SECTION * _SECTIONS, _SECTION)]
    return [
        {"type": "section", "text": {"type": "mrkdwn", "text": part}}
        for part in parts
        if part.strip()
    ]


def _section_element(blocks: Sequence[MessageBlock]) -> dict[str, Any]:
    """One section for all elements. A line ends for certain only at a line break element."""
    elements: list[dict[str, Any]] = []
    for block in blocks:
        elements += [_text_element("\n")] if elements else []
        style = {"strong": {"bold": True}, "dim": {"italic": True}}.get(block.role, {})
        if block.url:
            elements.append({**_link_element(block.url), "text": block.text})
            continue
        elements += [
            _link_element(p) if link else _text_element(p, **style)
            for p, link in split_links(block.text)
        ]
    return {"type": "rich_text_section", "elements": elements}


def _code_element(blocks: Sequence[MessageBlock]) -> dict[str, Any]:
    text = "\n\n".join(block.text for block in blocks)
    return {"type": "rich_text_preformatted", "elements": [_text_element(text)]}


def _text_element(text: str, **style: bool) -> dict[str, Any]:
    return {"type": "text", "text": text, **({"style": style} if style else {})}


def _link_element(url: str) -> dict[str, Any]:
    return {"type": "link", "url": url}
