"""A JSON document as an HTTP request."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from sentinel.channels.http import Request


def post(
    url: str,
    payload: Any,
    timeout: float,
    ca_file: str = "",
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    hidden: tuple[str, ...] = (),
) -> Request:
    """The request; `hidden` are the secrets that the payload holds."""
    own = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "sentinel"}
    return Request(
        url=url,
        method=method,
        headers={**own, **(headers or {})},
        body=msgspec.json.encode(payload),
        timeout=timeout,
        ca_file=ca_file,
        hidden=hidden,
    )


def below(base: str, path: str) -> str:
    """An address below another, whether or not that ends with a slash."""
    parts = urlsplit(base)
    return parts._replace(path=parts.path.rstrip("/") + "/" + path.lstrip("/")).geturl()
