"""Sends a message by one HTTP request. Raises sentinel's errors, which contain no secrets."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any
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
    (re.compile(rb"OK \(not found\)"), 404),
    (re.compile(rb"OK \(rate limited\)"), 429),
)
"""Bodies that report a failure although the status is 2xx, and the status that they mean (0: it is
in the text). Connectors of Teams: https://github.com/MicrosoftDocs/msteams-docs/issues/1810;
Healthchecks: https://healthchecks.io/docs/http_api/."""
_WEB_PAGE_PATTERN = re.compile(rb"\s*<(?:!doctype html|html)\b", re.IGNORECASE)
_PAGE_TYPES = ("text/html", "application/xhtml+xml")


async def submit_request(
    request: HttpRequest, forms: Sequence[ExpectedAnswer] = (), *, pages: bool = False
) -> Receipt:
    """Send the request. Success is an answer like one of `forms`; without forms it is any 2xx.

    Another 2xx answer is a doubt in the receipt, and without forms one whose JSON sounds like a
    failure. Raises ChannelError if the status is not 2xx, or
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
        if forms or _sounds_failed(answer):
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


_FAILED_WORD = re.compile(r"err(?:or)?|fail(?:ed|ure)?|rejected", re.IGNORECASE)
_REFUSAL = re.compile(
    r"^\W{0,3}no (?!err|fail)|(?<!\bno )(?<!\b0 )(?<!\bwithout )\b(?:"
    r"err(?:or)?s?(?!\W{1,3}0\b)|fail(?:s|ed|ure|ures)?(?!\W{1,3}0\b)|reject(?:ed|ion)?|invalid|wrong|denied|refused|not"
    r"|unauthori[sz]ed|forbidden|unable|cannot|unknown|undelivered|undeliverable|unreachable|unavailable|missing"
    r"|insufficient|inactive|expired|suspended|paused|disabled|exceeded|throttled|blocked|blacklist(?:ed)?)\b",
    re.IGNORECASE,
)
"""A short text that denies, and none that counts 0 errors: `ERR: 105, …`, `Invalid login or password`, `no active
devices …`, and with its words apart `INSUFFICIENT_CREDIT`."""
MAX_REFUSAL_CHARS = 120
"""A longer text is prose, or the message itself."""
_WORD_BREAKS = re.compile(r"[_-]+|(?<=[a-z])(?=[A-Z])")
_OUTCOME_NAME = re.compile(r".{0,40}(?:status|state|result|outcome|info)", re.IGNORECASE)
_SUCCESS = re.compile(r"ok|success|succeeded", re.IGNORECASE)


_ELEMENT = re.compile(r"<([A-Za-z][\w.-]{0,60})[^<>]{0,200}>([^<>]{1,200})</")


def _sounds_failed(answer: HttpAnswer) -> bool:
    """Whether an object anywhere in the JSON sounds like a failure: gateways answer for each message in a
    list. In XML the elements are members, and one that comes again begins another object. Otherwise:
    whether the text denies."""
    waiting, objects = [answer.json_value], list[dict[str, Any]]()
    if answer.said.startswith("<"):
        for name, text in _ELEMENT.findall(answer.body.decode("utf-8", "replace")):
            if not objects or name in objects[-1]:
                objects.append({})
            objects[-1][name] = text
    while waiting:
        one = waiting.pop()
        objects += [one] if isinstance(one, dict) else []
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    good = {code for one in objects if _tells_success(one) for code in _list_codes(one)}
    return any(_tells_failure(one, good) for one in objects) or (
        not objects and answer.json_value is None and _is_refusal(answer.said)
    )


def _is_refusal(text: str) -> bool:
    said = _WORD_BREAKS.sub(" ", text) if len(text) <= MAX_REFUSAL_CHARS else ""
    return _REFUSAL.search(said) is not None


def _list_outcomes(members: dict[str, Any]) -> list[str]:
    """The texts that say what became of it."""
    return [
        value
        for name, value in members.items()
        if isinstance(value, str) and _OUTCOME_NAME.fullmatch(name)
    ]


def _tells_success(members: dict[str, Any]) -> bool:
    return (
        members.get("success") is True
        or members.get("ok") is True
        or any(_SUCCESS.fullmatch(text) for text in _list_outcomes(members))
    )


def _list_codes(members: dict[str, Any]) -> list[int]:
    return [
        int(value)
        for name, value in members.items()
        if re.fullmatch(r"-?[0-9]{1,9}", str(value))
        and (
            name.lower().endswith(("code", "errno"))
            or (name.lower() == "status" and int(value) >= 400)
        )
    ]


def _tells_failure(members: dict[str, Any], good: Collection[int]) -> bool:
    """Whether a text says so: one is the word `error` or `failed`, or what became of it is denied. Else by
    codes (Feishu's `code`, `retcode`): one that is neither 0 nor 2xx nor `good`, which another object has
    that tells success. Without a code: whether a member tells an error (`errorMessage` of AWS Lambda,
    `errors` of GraphQL)."""
    texts = [value for value in members.values() if isinstance(value, str)]
    if any(map(_FAILED_WORD.fullmatch, texts)) or any(map(_is_refusal, _list_outcomes(members))):
        return True
    if codes := _list_codes(members):
        return any(code != 0 and not 200 <= code < 300 and code not in good for code in codes)
    return any(name.lower().startswith("err") and bool(value) for name, value in members.items())


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
