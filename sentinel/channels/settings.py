"""Checks settings that several channels share. Each check raises Invalid with the key."""

from collections.abc import Iterable, Mapping

from sentinel.core.errors import Invalid
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.settings import Secret, is_web_address

LONGEST_SEND = 90.0
"""Seconds after which delivery gives up a send and tries again, even if the send still runs."""

_TOKEN = lazy_pattern(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def check_url(url: str, *path: str | int) -> None:
    """Check an http(s) address. It is never shown, because whoever knows it can post to it."""
    if not is_web_address(url):
        raise Invalid("is no address like https://hooks.example.org/…", *path)


def check_secret(secret: Secret | None, what: str, key: str) -> None:
    """Check a word for a header or an address: no space, no line break."""
    text = secret.reveal() if secret else ""
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise Invalid(f"is no {what}: one word of ASCII", key)


def check_headers(headers: Mapping[str, Secret], ours: Iterable[str]) -> None:
    """Check header names and values: only what HTTP allows, and no header that sentinel sets
    itself."""
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise Invalid("is no name of a header", "headers", name)
        if name.lower() in ours:
            raise Invalid("is set by sentinel itself", "headers", name)
        if not value.reveal().isprintable():
            raise Invalid(
                "its value holds a line break or another control character", "headers", name
            )


def check_timeout(seconds: float) -> None:
    """Check a timeout: it must be positive, and not longer than delivery waits for a send."""
    if not 0 < seconds <= LONGEST_SEND:
        raise Invalid("must be longer than 0s and at most 90s", "timeout")
