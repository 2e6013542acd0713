"""What another side said, fit for an error message: inert, short, without secrets."""

import os
import re
from collections.abc import Iterable

from sentinel.core.text import shortened, visible

_LIMIT = 200
_SHORTEST = 4


def quote_redacted(said: str | bytes, secrets: Iterable[str] = ()) -> str:
    """One inert line of at most 200 characters; what equals a secret becomes `***`.

    A server may echo what it was sent. Secrets below four characters are not looked for.
    """
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    text = text[: 20 * _LIMIT]
    for secret in sorted({s for s in secrets if len(s) >= _SHORTEST}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return shortened(visible(re.sub(r"\s+", " ", text).strip()), _LIMIT)


def connection_failure(error: OSError) -> str:
    """Why no connection was made. An event loop wraps the system's number in words of its own, one
    for each address that it tried; a name that is not known has none."""
    numbers = dict.fromkeys(re.findall(r"\[Errno (\d+)\]", str(error)))
    said = " and ".join(os.strerror(int(n)) for n in numbers) or error.strerror or str(error)
    return quote_redacted(said or "no connection")
