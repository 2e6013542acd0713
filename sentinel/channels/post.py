"""A JSON document as an HTTP request."""

from collections.abc import Mapping
from typing import Any

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
    most: int = 4096,
) -> Request:
    """The request; `hidden` are the secrets that the payload holds. No payload, no body."""
    own = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "sentinel"}
    return Request(
        url=url,
        method=method,
        headers={**own, **(headers or {})},
        body=b"" if payload is None else msgspec.json.encode(payload),
        timeout=timeout,
        ca_file=ca_file,
        hidden=hidden,
        most=most,
    )


def below(base: str, path: str) -> str:
    """An address below another, whether or not that ends with a slash."""
    return f"{base.rstrip('/')}/{path.lstrip('/')}"


def pretty(payload: Any) -> str:
    """A payload as people read it."""
    return msgspec.json.format(msgspec.json.encode(payload), indent=2).decode()
