"""Makes HTTP requests with a JSON body."""

from collections.abc import Mapping
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from sentinel.channels.http_request import HttpRequest

MAX_ANSWER = 1 << 18
"""How many bytes of an answer are read. Some services answer with the whole message, escaped."""

_FIELD = "Content-Disposition: form-data; "


def json_request(
    url: str,
    payload: Any,
    timeout: float,
    ca_file: str = "",
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    hidden: tuple[str, ...] = (),
    most: int = MAX_ANSWER,
) -> HttpRequest:
    """The request. `hidden` are the secrets in the payload. Without a payload there is no body."""
    own = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "sentinel"}
    return HttpRequest(
        url=url,
        method=method,
        headers={**own, **(headers or {})},
        body=b"" if payload is None else msgspec.json.encode(payload),
        timeout=timeout,
        ca_file=ca_file,
        hidden=hidden,
        most=most,
    )


def form_request(
    url: str,
    fields: Mapping[str, str],
    name: str,
    picture: bytes,
    timeout: float,
    ca_file: str = "",
    *,
    hidden: tuple[str, ...] = (),
) -> HttpRequest:
    """A form with a PNG in the field `name` (RFC 7578). Fields must not contain foreign text,
    because nothing is escaped."""
    line = f"--{(mark := token_hex(16))}"
    head = "".join(f'{line}\r\n{_FIELD}name="{k}"\r\n\r\n{v}\r\n' for k, v in fields.items())
    head += f'{line}\r\n{_FIELD}name="{name}"; filename="picture.png"\r\nContent-Type: image/png\r\n\r\n'
    return HttpRequest(
        url=url,
        method="POST",
        headers={"Content-Type": f"multipart/form-data; boundary={mark}", "User-Agent": "sentinel"},
        body=head.encode() + picture + f"\r\n{line}--\r\n".encode(),
        timeout=timeout,
        ca_file=ca_file,
        hidden=hidden,
        most=MAX_ANSWER,
    )


def url_below(base: str, path: str) -> str:
    """An address below another one, which may end with a slash. A query stays at the end."""
    parts, (more, _, query) = urlsplit(base), path.partition("?")
    joined = f"{parts.path.rstrip('/')}/{more.lstrip('/')}"
    return urlunsplit(
        parts._replace(path=joined, query="&".join(filter(None, (parts.query, query))))
    )


def pretty_json(payload: Any) -> str:
    """The payload as indented JSON for people."""
    return msgspec.json.format(msgspec.json.encode(payload), indent=2).decode()
