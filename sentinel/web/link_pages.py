"""The pages behind a link: small, inert, readable anywhere, without a script."""

import base64
import hashlib
from collections.abc import Mapping
from html import escape

from sentinel.alerting.signed_links import Claim
from sentinel.core.model import Alert
from sentinel.core.text import one_line

LENGTHS: Mapping[str, str] = {"1h": "1 hour", "4h": "4 hours", "12h": "12 hours"}
"""For how long a link may silence: longer silences are given where one logs in."""

_STYLE = """
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
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Robots-Tag": "noindex, nofollow",
    "Server": "sentinel",
}
"""No script, nothing from elsewhere, and the address, which is a key, is told to nobody."""

_TITLES = {"ack": "Acknowledge this alert?", "silence": "Silence this alert?"}
_BUTTONS = {"ack": "Acknowledge", "silence": "Silence"}
_MEANS = {
    "ack": "No repeats and no escalation until it ends. Its end is told, and if it gets worse.",
    "silence": "Nobody is told of it for this time. What still fires then is told again.",
}


def question(claim: Claim, alert: Alert, acked_by: str) -> str:
    """The page that asks; opening it changes nothing, as mail scanners open every link."""
    known = f"<p>Already acknowledged by {_text(acked_by)}.</p>" if acked_by else ""
    return _page(
        _TITLES[claim.deed],
        f"{_about(alert)}{known}<p>{_MEANS[claim.deed]}</p>"
        f'<form method="post">{_length() if claim.deed == "silence" else ""}'
        '<label for="who">Your name (may stay empty)</label>'
        '<input id="who" name="who" maxlength="60" autocomplete="name">'
        '<label for="note">A note for the others (may stay empty)</label>'
        '<input id="note" name="note" maxlength="200">'
        f"<button>{_BUTTONS[claim.deed]}</button></form>",
    )


def done(title: str, text: str, alert: Alert) -> str:
    """What has been done, or why there was nothing to do."""
    return _page(title, f"{_about(alert)}<p>{_text(text)}</p>")


def message(title: str, text: str) -> str:
    """A page without an alert."""
    return _page(title, f"<p>{_text(text)}</p>")


def _length() -> str:
    options = "".join(f'<option value="{v}">{text}</option>' for v, text in LENGTHS.items())
    return f'<label for="for">For</label><select id="for" name="for">{options}</select>'


def _about(alert: Alert) -> str:
    title = " ".join(filter(None, (alert.key.cluster, alert.key.check, alert.key.subject)))
    return (
        f'<p class="dim">{escape(alert.status.value.upper())} {_text(title)}</p>'
        f"<p><strong>{_text(alert.summary)}</strong></p>"
    )


def _text(text: str) -> str:
    return escape(one_line(text, 600))


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>\n"
    )
