"""Text is sent as gzip to whoever takes it: a page over a slow line comes several times sooner.

Pages hold no secret that their size could give away (https://breachattack.com): the token and the
session are in none.
"""

from __future__ import annotations

import gzip
import re
from functools import lru_cache

from aiohttp import web

WORTH, LEVEL = 1400, 5
"""Bytes that one packet has room for are sent as they are. Higher levels take longer for little."""

_TEXT_TYPES = re.compile(r"text/|application/(json|openmetrics-text)|image/svg")
_GZIP_REFUSED = re.compile(r"(gzip|\*)\s*;\s*q=0(\.0*)?\s*(,|$)")


def compress_response(request: web.Request, answer: web.StreamResponse) -> web.StreamResponse:
    """The answer, compressed where that is worth it; a stream of events is sent as it comes."""
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
    """Once for all who ask for the same page."""
    return gzip.compress(body, LEVEL, mtime=0)
