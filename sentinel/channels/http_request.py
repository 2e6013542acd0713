"""An HTTP request, its answer, and the proxy for it."""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from msgspec import Struct

from sentinel.core.settings import is_this_machine
from sentinel.core.text import visible

_BODY = 4096


MAX_RETRY_AFTER_S = 86400.0


_TELLING = 6  # shorter parts of an address are too common to hide


_PROXIES = ("http", "https")


class HttpRequest(Struct, frozen=True, kw_only=True):
    """An HTTP request.

    The address, the header values and `hidden` (parts of the body) are secrets. `timeout` limits
    the whole exchange in seconds. At most `most` bytes of the answer are read.
    """

    url: str  # The address.
    method: str  # GET, POST or PUT.
    headers: Mapping[str, str]  # Headers, by name.
    body: bytes  # The body.
    timeout: float
    ca_file: str = ""  # PEM file of the only CA to trust; empty: the system's.
    hidden: tuple[str, ...] = ()
    most: int = _BODY
    patience: float = 1.0  # seconds for the rest of an answer after its status was read

    @property
    def secret_parts(self) -> set[str]:
        """The secrets of the request: the address after its host, the header values, and all their
        parts."""
        parts = urlsplit(self.url)
        query = [value for _, value in parse_qsl(parts.query)]
        pieces = [*parts.path.split("/"), *query, parts.username or "", parts.password or ""]
        words = [word for value in self.headers.values() for word in (value, *value.split())]
        raw = {p for p in (*pieces, *words) if len(p) >= _TELLING}
        return (
            raw
            | {unquote(p) for p in raw}
            | {
                self.url,
                f"{parts.path}?{parts.query}",
                *self.hidden,
            }
        )


class HttpAnswer(Struct, frozen=True):
    """An HTTP answer: status, the beginning of its text, the redirect target, when to try again,
    and the media type."""

    status: int  # Status code.
    said: str  # Beginning of the answer, without control characters.
    location: str = ""  # Target of a redirect.
    retry_after: float | None = None  # Seconds until it may be tried again.
    body: bytes = b""  # The body, cut at the limit.
    media_type: str = ""  # Lower case, without parameters; empty: none was named.

    @property
    def json_value(self) -> Any:
        """The JSON in the body. None if it is none. Its texts may hold control characters."""
        try:
            return msgspec.json.decode(self.body.removeprefix(codecs.BOM_UTF8))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    @property
    def json_fields(self) -> dict[str, Any]:
        """The JSON object in the body. Empty if it is none."""
        found = self.json_value
        return found if isinstance(found, dict) else {}


def url_origin(url: str) -> str:
    """Scheme, host and port. Only this part of an address may be shown."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return visible(f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}")


def find_proxy(url: str, env: Mapping[str, str]) -> str | None:
    """The proxy from the environment variables, with the names and forms of curl(1). Without a
    scheme it is an HTTP proxy."""
    chosen = _chosen_proxy(url, env)
    return chosen if urlsplit(chosen).scheme in _PROXIES else None


def find_unusable_proxy(url: str, env: Mapping[str, str]) -> str:
    """The proxy in the environment that cannot be used, without its password. Empty if there is
    none.

    SOCKS is not supported, because it needs another library.
    """
    chosen = _chosen_proxy(url, env)
    return "" if not chosen or urlsplit(chosen).scheme in _PROXIES else url_origin(chosen)


def _chosen_proxy(url: str, env: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    names = {name.lower(): value for name, value in env.items() if name.lower().endswith("_proxy")}
    chosen = (names.get(f"{parts.scheme}_proxy") or names.get("all_proxy") or "").strip()
    rules = names.get("no_proxy", "").replace(",", " ").split()
    if (
        not chosen
        or is_this_machine(parts.hostname or "")
        or any(_covers_host(rule, parts.hostname or "", parts.port) for rule in rules)
    ):
        return ""
    scheme, found, rest = chosen.partition("://")
    return f"{scheme.lower()}://{rest}" if found else f"http://{chosen}"


def retry_after_s(header: str, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks to wait (RFC 9110 10.2.3), at most one day."""
    if re.fullmatch(r"\d{1,9}", header.strip()):
        return min(float(header), MAX_RETRY_AFTER_S)
    try:
        seconds = (parsedate_to_datetime(header) - now).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(0.0, seconds), MAX_RETRY_AFTER_S)


def _covers_host(rule: str, host: str, port: int | None) -> bool:
    """Whether an entry of NO_PROXY matches the host.

    An entry is a name with all names below it (`example.org`, `.example.org`, `*.example.org`), or
    a network (10.0.0.0/8). It may name a port.
    """
    rule = rule.strip().lower()
    if rule == "*":
        return True
    name, _, number = rule.rpartition(":")
    if name and number.isdigit() and (":" not in name or name.endswith("]")):
        return int(number) == port and _covers_host(name, host, port)
    rule = rule.removeprefix("*").lstrip(".").strip("[]")
    with contextlib.suppress(ValueError):
        return ip_address(host) in ip_network(rule, strict=False)
    return bool(rule) and (host == rule or host.endswith("." + rule))
