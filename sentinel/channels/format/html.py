"""Formats notifications as a small HTML page for mail: inline styles, light and dark, any width.

Mail programs remove style sheets more often than inline styles. So every colour is inline for light
mode. A `prefers-color-scheme` block overrides it for dark mode:
https://www.caniemail.com/features/css-at-media-prefers-color-scheme/
"""

import re
from collections.abc import Iterable, Sequence
from html import escape

from sentinel.channels.format import text
from sentinel.channels.format.text import AlertCard
from sentinel.core.digests import sha256
from sentinel.core.model import ACK_ALL

_COLOURS = {
    "critical": "#b42318",
    "warning": "#b25e02",
    "unknown": "#6941c6",
    "ok": "#067647",
    "info": "#175cd3",
}
_SANS = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;"
_MONO = "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:13px;"
_WRAP = "overflow-wrap:anywhere;word-break:break-word;"
_DARK = """
:root{color-scheme:light dark;supported-color-schemes:light dark}
@media (prefers-color-scheme:dark){
.page{background:#101418!important;color:#e6e9ec!important}
.card{background:#1a2026!important;border-top-color:#343d46!important;
border-right-color:#343d46!important;border-bottom-color:#343d46!important}
.dim{color:#9aa5b1!important}
.code{background:#101418!important;color:#e6e9ec!important;border-color:#343d46!important}
a{color:#84b6ff!important}
a.button{color:#ffffff!important}
}
"""
_URL = re.compile(r"https?://[^\s<>\"']+[^\s<>\"'.,;:!?)]")


def render_cards_html(cards: Sequence[AlertCard]) -> str:
    """A whole page of cards that are sorted. All foreign text is escaped. Nothing is loaded from the
    network, because the mail contains the pictures."""
    head = (
        f'<p class="dim" style="{_DIM}margin-bottom:10px;">{escape(text.overview_line(cards))}</p>'
    )
    body = head if len(cards) > 1 or cards[0].ack_all else ""
    if cards[0].ack_all:
        body += _buttons_html([(ACK_ALL, cards[0].ack_all)])
    body += "".join(_card_html(c) for c in cards[: text.FULL])
    if rest := list(text.further_lines(cards)):
        body += _section_html("Further", rest, _code)
    return _page_html(text.subject_of_cards(cards), body)


_DIM = "margin:0;color:#5b6670;font-size:13px;line-height:20px;"


def _page_html(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{_DARK}</style></head>\n"
        f'<body class="page" style="margin:0;padding:12px;background:#f3f4f6;color:#1b1f24;{_SANS}'
        'font-size:15px;line-height:22px;-webkit-text-size-adjust:100%;">\n'
        f'<div style="max-width:680px;margin:0 auto;">{body}</div>\n</body></html>\n'
    )


def _card_html(c: AlertCard) -> str:
    colour = _COLOURS.get(c.tone, _COLOURS["info"])
    dry = f'<p class="dim" style="{_DIM}">Dry run: nothing was acted upon.</p>' if c.dry_run else ""
    told = {
        name: _section_html(name, lines, _code if name.startswith(_MONOSPACED) else _plain)
        for name, lines in text.card_sections(c)
    }
    names = [name for name in told if name.startswith(_FIRST)]
    first = "".join(told.pop(name) for name in names)
    return (
        f'<div class="card" style="margin:0 0 12px;padding:16px;background:#ffffff;'
        f'border:1px solid #d9dee3;border-left:6px solid {colour};border-radius:6px;">\n'
        f"{dry}{_heading_html(c, colour)}{_answers_html(c)}{_facts_html(c)}{first}{_picture_html(c)}{''.join(told.values())}</div>\n"
    )


def _heading_html(c: AlertCard, colour: str) -> str:
    return (
        f'<div style="line-height:26px;{_WRAP}"><span style="display:inline-block;padding:0 8px;'
        f"margin-right:8px;border-radius:4px;background:{colour};color:#ffffff;font-size:13px;"
        f'font-weight:700;">{escape(c.word)}</span><span class="dim" '
        f'style="color:#5b6670;">{escape(c.title)}</span></div>\n'
        f'<p style="margin:8px 0 12px;font-size:18px;line-height:25px;font-weight:600;{_WRAP}">'
        f"{escape(c.summary)}</p>\n{_impact_html(c)}"
    )


def _impact_html(c: AlertCard) -> str:
    if not c.impact:
        return ""
    return f'<p style="{_plain}margin:0 0 12px;">If nobody acts: {escape(c.impact)}</p>\n'


def _facts_html(c: AlertCard) -> str:
    rows = "".join(_row_html(name, value) for name, value in text.card_facts(c))
    return f'<table role="presentation" style="border-collapse:collapse;">{rows}</table>\n'


def _row_html(name: str, value: str) -> str:
    cell = "padding:1px 0;vertical-align:top;text-align:left;font-size:14px;line-height:21px;"
    return (
        f'<tr><td class="dim" style="{cell}padding-right:16px;white-space:nowrap;color:#5b6670;">{escape(name)}</td>'
        f'<td style="{cell}{_WRAP}">{escape(value)}</td></tr>'
    )


def _answers_html(c: AlertCard) -> str:
    """Who has acknowledged, and the buttons. They come early, so that a phone shows them without
    scrolling."""
    note = f'<p style="{_plain}margin:0 0 10px;">{escape(c.note)}</p>\n' if c.note else ""
    if not c.links:
        return note
    return note + _buttons_html(c.links)


def _buttons_html(links: Iterable[tuple[str, str]]) -> str:
    buttons = "".join(
        f'<a class="button" href="{escape(url)}" style="{_BUTTON}">{escape(word)}</a>'
        for word, url in links
    )
    return f'<p style="margin:0 0 8px;">{buttons}</p>\n'


def picture_id(picture: bytes) -> str:
    """The name of the picture within the mail (RFC 2392)."""
    return f"{sha256(picture).hexdigest()[:20]}@sentinel"


def _picture_html(c: AlertCard) -> str:
    if not c.picture:
        return ""
    return (
        f'<p style="margin:12px 0 0;"><img src="cid:{picture_id(c.picture)}" width="626" '
        f'alt="How {escape(c.title)} went" style="width:100%;height:auto;border-radius:4px;"></p>\n'
    )


def _section_html(heading: str, lines: Sequence[str], style: str) -> str:
    """A section. Each command has a box of its own, because on a phone each is several lines long."""
    apart = heading.startswith(("What to do", text.COMMANDS_HEADING, text.ACTS_HEADING))
    boxes = lines if apart else ["\n".join(lines)]
    mark = " class=code" if style is _code else ""
    content = "".join(f'<div{mark} style="{style}">{_link_addresses(box)}</div>\n' for box in boxes)
    return f'<p class="dim" style="{_DIM}margin-top:14px;">{escape(heading)}</p>\n{content}'


def _link_addresses(line: str) -> str:
    """Escape the text and make links of http(s) addresses. Other schemes never become links."""
    parts, end = [], 0
    for match in _URL.finditer(line):
        url = escape(match[0])
        parts += [escape(line[end : match.start()]), f'<a href="{url}">{url}</a>']
        end = match.end()
    return "".join(parts) + escape(line[end:])


_code = (
    f"margin-top:4px;padding:8px 10px;background:#f6f7f9;color:#1b1f24;border:1px solid #e3e7eb;"
    f"border-radius:4px;line-height:19px;white-space:pre-wrap;{_MONO}{_WRAP}"
)
_BUTTON = (
    "display:inline-block;margin:0 7px 6px 0;padding:9px 11px;border-radius:6px;font-size:14px;"
    "background:#175cd3;color:#ffffff;font-weight:600;text-decoration:none;"
)
_plain = f"margin-top:2px;font-size:15px;line-height:22px;{_WRAP}"
_FIRST = ("Runbook", "What to do", text.COMMANDS_HEADING, text.ACTS_HEADING)
_MONOSPACED = (
    "Details",
    "Last lines",
    text.COMMANDS_HEADING,
    text.ACTS_HEADING,
    text.HISTORY_HEADING,
)
