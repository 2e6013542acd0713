"""Makes the answer of another side fit for an error message: short, without control characters and
secrets."""

import os
import re
from collections.abc import Iterable

from sentinel.core.text import shortened, visible

_LIMIT = 200
_SHORTEST = 4


def quote_redacted(said: str | bytes, secrets: Iterable[str] = ()) -> str:
    """One line of at most 200 characters without control characters. Secrets are replaced by `***`.

    A server may repeat what it was sent. Secrets of fewer than four characters are not replaced.
    """
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    text = text[: 20 * _LIMIT]
    for secret in sorted({s for s in secrets if len(s) >= _SHORTEST}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return shortened(visible(re.sub(r"\s+", " ", text).strip()), _LIMIT)


def connection_failure(error: OSError) -> str:
    """Why no connection was made. asyncio wraps the system's error in words of its own, one for
    each address it tried. For an unknown name there is no system error."""
    numbers = dict.fromkeys(re.findall(r"\[Errno (\d+)\]", str(error)))
    said = " and ".join(os.strerror(int(n)) for n in numbers) or error.strerror or str(error)
    return quote_redacted(said or "no connection")
