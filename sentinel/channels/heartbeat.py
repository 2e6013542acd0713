"""The heartbeat over the web: a GET, as healthchecks and its like take it."""

from sentinel.channels.http import Request, submit
from sentinel.core.settings import HeartbeatSettings


class WebPulse:
    """Pings the address while all is well; with `style: healthchecks` troubles go to its /fail.

    https://healthchecks.io/docs/signaling_failures/ — other services take any request to an
    address below theirs for a sign of life, so by default trouble is silence.
    """

    def __init__(self, settings: HeartbeatSettings) -> None:
        self._settings = settings

    async def beat(self, well: bool, text: str) -> None:
        """Raises ChannelError when the outside did not take it."""
        url = self._settings.url.reveal().rstrip("/")
        if not well and self._settings.style == "plain":
            return
        await submit(
            Request(
                url=url if well else f"{url}/fail",
                method="GET" if well else "POST",
                headers={"User-Agent": "sentinel"},
                body=text.encode("utf-8", "replace")[:10_000],
                timeout=float(self._settings.timeout),
            )
        )
