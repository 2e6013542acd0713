"""The pages behind the links in messages: small, without a script, readable in any browser."""

import base64
from collections.abc import Mapping, Sequence
from html import escape

from sentinel.alerting.signed_links import LinkClaim
from sentinel.core.digests import sha256
from sentinel.core.model import Alert
from sentinel.core.text import shorten_to_line

LINK_SILENCE_LENGTHS: Mapping[str, str] = {"1h": "1 hour", "4h": "4 hours", "12h": "12 hours"}
"""How long a silence by a link may last. For longer silences one has to log in."""

_PAGE_STYLE = """
:root{color-scheme:light dark}
body{margin:0;padding:16px;font:16px/1.5 system-ui,sans-serif;background:#f3f4f6;color:#1b1f24}
main{max-width:560px;margin:0 auto;padding:20px;background:#fff;border:1px solid #d9dee3;
border-radius:8px;overflow-wrap:anywhere}
h1{margin:0 0 4px;font-size:20px}p{margin:8px 0}.dim{color:#5b6670;font-size:14px}
label{display:block;margin:14px 0 4px}
input,select,button{box-sizing:border-box;width:100%;padding:12px;font:inherit;border-radius:6px;
border:1px solid #8b96a1;background:inherit;color:inherit}
button{margin-top:20px;border:0;background:#175cd3;color:#fff;font-weight:600}
:focus-visible{outline:3px solid #84adff;outline-offset:2px}
@media (prefers-color-scheme:dark){body{background:#101418;color:#e6e9ec}
main{background:#1a2026;border-color:#343d46}.dim{color:#9aa5b1}}
"""
_PAGE_STYLE_HASH = base64.b64encode(sha256(_PAGE_STYLE.encode()).digest()).decode()

LINK_PAGE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_PAGE_STYLE_HASH}'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Robots-Tag": "noindex, nofollow",
    "Server": "sentinel",
}
"""Headers that allow no script and no foreign content, and keep the address, which is a key,
secret."""

_QUESTION_TITLES = {"ack": "Acknowledge this alert?", "silence": "Silence this alert?"}
_BUTTON_TEXTS = {"ack": "Acknowledge", "silence": "Silence"}
_ACTION_EXPLANATIONS = {
    "ack": "No repeats and no escalation until it ends. Its end is told, and if it gets worse.",
    "silence": "Nobody is told of it for this time. What still fires then is told again.",
}


def render_question(claim: LinkClaim, alerts: Sequence[Alert], acked_by: str) -> str:
    """The page that asks for confirmation. Opening it changes nothing, since mail scanners open
    every link. `acked_by`: who has acknowledged all of them already."""
    known = f"<p>Already acknowledged by {_escape_line(acked_by)}.</p>" if acked_by else ""
    title = f"Acknowledge these {len(alerts)} alerts?" if len(alerts) > 1 else ""
    return _render_link_page(
        title or _QUESTION_TITLES[claim.deed],
        f"{_render_alert_titles(alerts)}{known}<p>{_ACTION_EXPLANATIONS[claim.deed]}</p>"
        f'<form method="post">{_render_length_choice() if claim.deed == "silence" else ""}'
        '<label for="who">Your name (may stay empty)</label>'
        '<input id="who" name="who" maxlength="60" autocomplete="name">'
        '<label for="note">A note for the others (may stay empty)</label>'
        '<input id="note" name="note" maxlength="200">'
        f"<button>{_BUTTON_TEXTS[claim.deed]}</button></form>",
    )


def render_order_result(title: str, text: str, alerts: Sequence[Alert]) -> str:
    """The page that says what has been done, or why nothing was done."""
    return _render_link_page(title, f"{_render_alert_titles(alerts)}<p>{_escape_line(text)}</p>")


def render_message_page(title: str, text: str) -> str:
    """A page without an alert."""
    return _render_link_page(title, f"<p>{_escape_line(text)}</p>")


def _render_length_choice() -> str:
    options = "".join(
        f'<option value="{v}">{text}</option>' for v, text in LINK_SILENCE_LENGTHS.items()
    )
    return f'<label for="for">For</label><select id="for" name="for">{options}</select>'


def _render_alert_titles(alerts: Sequence[Alert]) -> str:
    return "".join(map(_render_alert_title, alerts))


def _render_alert_title(alert: Alert) -> str:
    title = " ".join(filter(None, (alert.key.cluster, alert.key.check, alert.key.subject)))
    return (
        f'<p class="dim">{escape(alert.status.value.upper())} {_escape_line(title)}</p>'
        f"<p><strong>{_escape_line(alert.summary)}</strong></p>"
    )


def _escape_line(text: str) -> str:
    return escape(shorten_to_line(text, 600))


def _render_link_page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_PAGE_STYLE}</style></head>\n"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>\n"
    )
