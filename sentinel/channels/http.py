"""Sends a message by one HTTP request. Raises sentinel's errors, which contain no secrets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec.structs import replace

from sentinel.channels.http_request import (
    MAX_RETRY_AFTER_S,
    HttpAnswer,
    HttpRequest,
    url_origin,
)
from sentinel.core.errors import CannotTell, ChannelError
from sentinel.core.model import Receipt
from sentinel.core.patterns import compile_by_line
from sentinel.core.settings import ExpectedAnswer
from sentinel.core.text import shorten_to_line, visible

_ABOUT_THE_REQUEST = frozenset(
    (400, 401, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422, 431, 451)
)
"""With these statuses the same request would fail again (RFC 9110, 15.5). Others from 400 on are
temporary, or come from a proxy or balancer: 407, 408, 421, 423, 425, 429, 460, 499."""
_REASONS = {401: "auth", 403: "auth", 407: "auth", 408: "timeout", 429: "rate"}

_FAILED_TEXTS = (
    (re.compile(rb"Webhook message delivery failed with error: .{0,200}?HTTP error ([0-9]{3})"), 0),
    (re.compile(rb"Webhook message delivery failed"), 400),
)
"""Bodies that report a failure although the status is 2xx, and the status that they mean (0: it is
in the text). Connectors of Teams: https://github.com/MicrosoftDocs/msteams-docs/issues/1810."""
_WEB_PAGE_PATTERN = re.compile(rb"\s*<(?:!doctype html|html)\b", re.IGNORECASE)
_PAGE_TYPES = ("text/html", "application/xhtml+xml")


async def submit_request(
    request: HttpRequest, forms: Sequence[ExpectedAnswer] = (), *, pages: bool = False
) -> Receipt:
    """Send the request. Success is an answer like one of `forms`; without forms it is a 2xx that affirms,
    or that says nothing.

    Another 2xx answer is a doubt in the receipt. Raises ChannelError if the status is not 2xx, or
    if the body reports a failure. A web page is a failure too, since no service answers with one:
    it is the login page of the network. With `pages` (a program of the user) it is a doubt.
    """
    answer = await exchange_http(request)
    status, doubt = answer.status, ""
    if not 200 <= status < 300:
        raise refused_status(request, answer)
    if not any(_is_like(answer, form) for form in forms):
        if (failure := _status_within(answer)) is not None:
            raise refused_status(request, replace(answer, status=failure))
        if _is_web_page(answer):
            if not pages:
                raise refused_status(request, replace(answer, status=511))
            doubt = "it answered with a web page, as a login or a front page does"
        if forms or not _affirms(answer):
            doubt = doubt or _describe_doubt(answer)
    return Receipt(
        f"{url_origin(request.url)} answered {status} {answer.said}".rstrip(), doubt=doubt
    )


def _is_like(answer: HttpAnswer, form: ExpectedAnswer) -> bool:
    fields = answer.json_fields if form.json else {}
    return (
        form.status in (None, answer.status)
        and form.type.lower() in ("", answer.media_type)
        and (form.body is None or _is_found(form.body, answer.body))
        and all(
            fields.get(name) is not None if value is None else fields.get(name) == value
            for name, value in form.json.items()
        )
    )


def _is_found(pattern: re.Pattern[str], body: bytes) -> bool:
    """Whether the text has a line like that. No, if the pattern finds no end."""
    try:
        found = compile_by_line(pattern).search(body.decode("utf-8", "replace").strip())
    except CannotTell:
        return False
    return found is not None


def _is_web_page(answer: HttpAnswer) -> bool:
    """Whether it is HTML. The type alone says nothing: Slack's "ok" is text/html too."""
    marked = answer.media_type in _PAGE_TYPES and answer.body.lstrip().startswith(b"<")
    return marked or _WEB_PAGE_PATTERN.match(answer.body) is not None


def _describe_doubt(answer: HttpAnswer) -> str:
    """Why it is not known whether the message was taken."""
    said = shorten_to_line(answer.said, 120) or "an empty text"
    what = " ".join(filter(None, (str(answer.status), answer.media_type)))
    return f"its answer ({what}: {said}) does not say that the message was accepted (see `expect`)"


def _status_within(answer: HttpAnswer) -> int | None:
    """The status that the body of a 2xx answer reports, if it reports a failure.

    It is found by the texts above, or in JSON by `ok`, `success` (Telegram, Uptime Kuma) or
    `errcode` (DingTalk, WeCom). Without a known reason it is 503, so that the message is tried
    again.
    """
    for pattern, status in _FAILED_TEXTS:
        if found := pattern.match(answer.body.lstrip()):
            return status or int(found[1])
    fields = answer.json_fields
    code = fields.get("errcode")
    failed = fields.get("ok") is False or fields.get("success") is False
    if not failed and (not isinstance(code, int) or code == 0):
        return None
    told = fields.get("error_code")
    return told if isinstance(told, int) and 400 <= told < 600 else 503


_AFFIRMING = re.compile(
    r"ok|okay|success|successful|successfully|succeeded|accepted|received|queued|enqueued|sent|delivered|created|inserted"
    r"|started|triggered|submitted|scheduled|processed|published|posted|stored|done|thanks|pong|true"
)
"""Words that say that a message was taken. A word that is missing here costs a doubt, and loses nothing."""
_SILENT = re.compile(
    r"ids?|uu?id|messages?|msg|events?|alerts?|notification|request|workflow|webhook|heartbeat|your|the|this|it|an?"
    r"|for|was|is|has|have|been|got|with|null|(?!0$)(?=.*\d).*"
)
"""Words that say nothing of it. What has a digit is an id, a number or a date; a zero alone may count what was sent."""
_WORD_BREAKS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_CODE_NAME = re.compile(r"|.{0,40}(?:code|errno)", re.IGNORECASE)
_OUTCOME_NAME = re.compile(r".{0,40}(?:status|state|result|outcome)", re.IGNORECASE)
_ERROR_NAME = re.compile(r"(?i:err|fail|reject|invalid)")
_NOTHING = ("", "0", "none", "null", "no", "false")

_Said = Literal["taken", "not taken", "strange code", "strange words", "nothing"]
"""What a part of an answer says of the message."""


def _affirms(answer: HttpAnswer) -> bool:
    """Whether the answer says that the message was taken, or nothing at all: no body, or numbers, dates and
    ids alone. Words that are not known do not affirm; 201 does (RFC 9110 15.3.2). An object anywhere in the
    JSON that denies counts more than one that affirms, since gateways answer for each message in a list."""
    if answer.json_value is None:
        return _read_words(answer.said) != "strange words"
    said: set[_Said] = {"taken"} if answer.status == 201 else set()
    waiting: list[dict[str, Any]] = [{"": answer.json_value}]
    while waiting:
        one = waiting.pop()
        parts = [(n, part) for n, v in one.items() for part in (isinstance(v, list) and v) or [v]]
        waiting += [
            p if isinstance(p, dict) else {"": p}
            for _, p in parts
            if isinstance(p, list | dict) and p
        ]
        own = {_read_member(name, part) for name, part in parts}
        said |= own if "taken" in own or "strange code" not in own else {"not taken"}
    return "not taken" not in said and ("taken" in said or "strange words" not in said)


def _read_member(name: str, value: Any) -> _Said:
    """What a member says. A code other than 0 and 2xx denies, unless another member affirms."""
    number = int(value) if re.fullmatch(r"-?[0-9]{1,9}", str(value)) else None
    words, known = _split_words(name), number == 0 or 200 <= (number or 0) < 300
    told = _read_words(value) if isinstance(value, str) and number is None else "nothing"
    if number is not None and (
        _CODE_NAME.fullmatch(name) or (name.lower() == "status" and number not in (0, 1))
    ):
        return "taken" if known else "strange code"
    if any(map(_ERROR_NAME.match, words)):
        empty = not value or told == "taken" or str(value).strip().lower() in _NOTHING
        return "nothing" if empty else "not taken"
    affirming = not name or any(map(_AFFIRMING.fullmatch, words))
    if affirming and (isinstance(value, bool) or number is not None):
        return "taken" if number or value is True else "not taken"
    if told == "strange words" and _OUTCOME_NAME.fullmatch(name):
        return "not taken"
    return "nothing" if words[-1:] == ["id"] else told


def _split_words(text: str) -> list[str]:
    return [word.lower() for word in _WORD_BREAKS.split(text) if word]


def _read_words(text: str) -> _Said:
    words = _split_words(text)
    taken = any(map(_AFFIRMING.fullmatch, words))
    if any(map(_ERROR_NAME.match, words)) or (text.strip() and not words):
        return "strange words"  # `ERR105` is no id, and a lone sign may mean anything
    if all(_AFFIRMING.fullmatch(word) or _SILENT.fullmatch(word) for word in words):
        return "taken" if taken else "nothing"
    return "strange words"


async def exchange_http(request: HttpRequest) -> HttpAnswer:
    """Send the request and return the answer, whatever its status. Raises ChannelError if there is
    none."""
    # importing aiohttp takes half of the start-up time
    from sentinel.channels.http_exchange import exchange_once

    return await exchange_once(request)


def refused_status(request: HttpRequest, answer: HttpAnswer) -> ChannelError:
    """The error for a status that is not 2xx. It is permanent if the same request would fail again."""
    status, place = answer.status, url_origin(request.url)
    permanent = 300 <= status < 400 or (status in _ABOUT_THE_REQUEST and answer.retry_after is None)
    text = f"{place} answered {status}{f': {answer.said}' if answer.said else ''}"
    if 300 <= status < 400:
        target = _host_of(answer.location)
        text = f"{place} answered {status}, a redirect{target}; set url to the final address"
    return ChannelError(
        text,
        permanent=permanent,
        reason=_REASONS.get(status, "refused" if permanent else "server"),
        retry_after=_told_wait_s(answer),
    )


def _told_wait_s(answer: HttpAnswer) -> float | None:
    """Seconds to wait: from the header, or from the body as Discord and Telegram write it:
    https://discord.com/developers/docs/topics/rate-limits and
    https://core.telegram.org/bots/api#responseparameters."""
    if answer.retry_after is not None:
        return answer.retry_after
    found: Any = answer.json_fields
    inner = found.get("parameters")
    told = (inner if isinstance(inner, dict) else found).get("retry_after")
    if not isinstance(told, int | float) or isinstance(told, bool):
        return None
    return min(max(0.0, told), MAX_RETRY_AFTER_S)


def _host_of(location: str) -> str:
    try:
        host = urlsplit(location).hostname
    except ValueError:
        host = None
    return f" to {visible(host[:200])}" if host else ""
