"""Sends text as gzip to clients that accept it: a page over a slow line arrives several times
sooner.

Pages hold no secret that their size could give away (https://breachattack.com): neither the token
nor the session is in a page."""

from __future__ import annotations

import gzip
import re
from functools import lru_cache

from aiohttp import web

WORTH, LEVEL = 1400, 5
"""A body that fits into one packet (bytes) is sent as it is. Higher levels take longer and save
little."""

_TEXT_TYPES = re.compile(r"text/|application/(json|openmetrics-text)|image/svg")
_GZIP_REFUSED = re.compile(r"(gzip|\*)\s*;\s*q=0(\.0*)?\s*(,|$)")


def compress_response(request: web.Request, answer: web.StreamResponse) -> web.StreamResponse:
    """The answer, compressed if that is worth it. A stream of events is never compressed."""
    body = answer.body if isinstance(answer, web.Response) else None
    if (
        not isinstance(body, bytes)
        or len(body) < WORTH
        or not _TEXT_TYPES.match(answer.content_type)
    ):
        return answer
    assert isinstance(answer, web.Response)
    answer.headers["Vary"] = "Accept-Encoding"
    accepted = request.headers.get("Accept-Encoding", "").lower()
    if "gzip" in accepted and not _GZIP_REFUSED.search(accepted):
        answer.body = _gzip_body(body)
        answer.headers["Content-Encoding"] = "gzip"
    return answer


@lru_cache(maxsize=16)
def _gzip_body(body: bytes) -> bytes:
    """The compressed body; it is compressed once for all who ask for the same page."""
    return gzip.compress(body, LEVEL, mtime=0)
