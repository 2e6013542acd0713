"""Limits how many requests one address may make. Pure."""

from sentinel.core.clock import Instant, get_elapsed_s

MAX_BURST_REQUESTS = 120
"""Requests at once. A mail scanner opens every link of a mail about many alerts."""

REFILL_PER_S = 2.0
"""Requests a second after that."""

MAX_KNOWN_ADDRESSES = 1000
"""Addresses that are remembered."""


class RequestRateLimiter:
    """A token bucket for each address; only the addresses that asked last are remembered."""

    def __init__(self, burst: int = MAX_BURST_REQUESTS, refill: float = REFILL_PER_S) -> None:
        self._burst, self._refill = burst, refill
        self._left: dict[str, tuple[float, Instant]] = {}

    def take_token(self, address: str, now: Instant) -> float:
        """Seconds that the address has to wait. 0: the request may go on, and is counted."""
        left, at = self._left.pop(address, (float(self._burst), now))
        left = min(self._burst, left + get_elapsed_s(at, now) * self._refill)
        for old in [*self._left][: max(0, len(self._left) + 1 - MAX_KNOWN_ADDRESSES)]:
            del self._left[old]
        self._left[address] = (max(0.0, left - 1) if left >= 1 else left, now)
        return 0.0 if left >= 1 else (1 - left) / self._refill
