"""Who has acknowledged: PagerDuty's REST API, read only.

https://developer.pagerduty.com/api-reference/9d0b4b12e36f9-list-incidents — of an incident that
came as an event the key is asked for, since the incident itself may bear none.
"""

import asyncio
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from sentinel.channels.http import exchange, origin, refusal
from sentinel.channels.post import below, post
from sentinel.core.errors import ChannelError
from sentinel.core.settings import Secret
from sentinel.core.text import one_line

_MOST = 1 << 20
_AT_ONCE = 4
"""Requests in flight: the API takes 960 a minute."""


class Api(Struct, frozen=True):
    """The incidents that our events have opened."""

    url: str
    token: Secret
    timeout: float
    ca_file: str

    async def acknowledged(self, keys: list[str]) -> dict[str, str]:
        """Who has acknowledged, by key; those that nobody has are left out. ChannelError."""
        slots = asyncio.Semaphore(_AT_ONCE)

        async def ask(key: str) -> str:
            async with slots:
                return await self._who(key)

        found = await asyncio.gather(*map(ask, keys))
        return {key: who for key, who in zip(keys, found, strict=True) if who}

    async def _who(self, key: str) -> str:
        query = urlencode({"incident_key": key, "statuses[]": "acknowledged", "limit": 1})
        headers = {
            "Authorization": f"Token token={self.token.reveal()}",
            "Accept": "application/vnd.pagerduty+json;version=2",
        }
        request = post(
            below(self.url, f"incidents?{query}"),
            None,
            self.timeout,
            self.ca_file,
            method="GET",
            headers=headers,
            hidden=(self.token.reveal(),),
            most=_MOST,
        )
        answer = await exchange(request)
        if answer.status != 200:
            raise refusal(request, answer)
        try:
            return _name(msgspec.json.decode(answer.body)["incidents"])
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
            raise ChannelError(
                f"{origin(self.url)} gave no proper answer", reason="server"
            ) from None


def _name(incidents: list[Any]) -> str:
    """Who acknowledged the first of them last; empty where none is."""
    taken = [incident for incident in incidents if incident["status"] == "acknowledged"]
    if not taken:
        return ""
    acks = taken[0].get("acknowledgements") or [{}]
    who = (acks[-1].get("acknowledger") or {}).get("summary") or "somebody"
    return f"{one_line(str(who), 80)} at PagerDuty"
