"""Asks the API of other sentinels about their clusters: a row each, for the overview.

Nothing of this is stored, judged or notified: that is the other sentinel's work."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from sentinel.channels.http import exchange_http
from sentinel.channels.http_request import HttpRequest
from sentinel.channels.post import url_below
from sentinel.config.settings import OtherClusterSettings
from sentinel.core.clock import SECOND
from sentinel.core.errors import ChannelError
from sentinel.core.model import Status, get_worst_status
from sentinel.core.ports import Clock
from sentinel.core.struct_types import decode_json
from sentinel.core.text import shortened, visible
from sentinel.status.types import ClusterFact
from sentinel.web.messages import Summary

EVERY, LIMIT = 15.0, 10.0
"""Seconds between two questions, and for one answer."""

MAX_ANSWER_BYTES = 1 << 20
"""Bytes of an answer that are read."""

STALE_AFTER_S = 60.0
"""Seconds after which an answer is shown as stale: the loop has stood still, or has not asked
again."""


_LOG = logging.getLogger("sentinel")


class OtherClusters:
    """Asks other clusters. `settings`: by the cluster's name. Only one event loop may use it."""

    def __init__(self, settings: Mapping[str, OtherClusterSettings], clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._rows = {
            name: ClusterFact(
                name=visible(name), url=one.url, status=Status.UNKNOWN, trouble="not asked yet"
            )
            for name, one in settings.items()
        }

    def list_cluster_facts(self) -> tuple[ClusterFact, ...]:
        """A row for each cluster, the worst first."""
        rows = [self._mark_stale_row(row) for row in self._rows.values()]
        return tuple(sorted(rows, key=lambda row: -row.status.rank))

    async def poll_forever(self) -> None:
        """Ask all clusters at once, again and again."""
        while self._settings:
            await asyncio.gather(*map(self._poll_cluster, self._settings))
            await asyncio.sleep(EVERY)

    async def _poll_cluster(self, name: str) -> None:
        try:
            said = await _fetch_summary(self._settings[name])
        except Exception as error:
            if not isinstance(error, ChannelError):  # one peer's answer costs no other its row
                _LOG.exception("cluster %s: its answer broke the poll", visible(name))
            trouble = shortened(visible(str(error)), 200)
            self._rows[name] = replace(self._rows[name], status=Status.UNKNOWN, trouble=trouble)
            return
        seen = get_worst_status(
            [said.status, *([Status.UNKNOWN] if said.blind or not said.whole else [])]
        )
        self._rows[name] = replace(
            self._rows[name],
            status=seen,
            firing=said.firing,
            blind=said.blind,
            pending=said.pending,
            nodes=None if said.nodes_trouble else sum(said.node_states.values()),
            seen=self._clock.now().wall / SECOND,
            trouble="" if said.whole else "it does not show all without its token",
        )

    def _mark_stale_row(self, row: ClusterFact) -> ClusterFact:
        if (
            row.trouble
            or row.seen is None
            or self._clock.now().wall / SECOND - row.seen <= STALE_AFTER_S
        ):
            return row
        return replace(row, status=Status.UNKNOWN, trouble="not asked lately")


async def _fetch_summary(other: OtherClusterSettings) -> Summary:
    headers = {"Accept": "application/json", "User-Agent": "sentinel"}
    if other.token is not None:
        proof = b64encode(f"sentinel:{other.token.reveal()}".encode()).decode()
        # with Bearer, the request would count as the proxy's and show only a part
        headers["Authorization"] = f"Basic {proof}"
    more: dict[str, Any] = {"ca_file": other.ca_file, "timeout": LIMIT, "most": MAX_ANSWER_BYTES}
    request = HttpRequest(
        url=url_below(other.url, "api/v1"), method="GET", headers=headers, body=b"", **more
    )
    answer = await exchange_http(request)
    if answer.status != 200:
        raise ChannelError(f"it answered {answer.status} {answer.said}".rstrip())
    try:
        return decode_json(answer.body, Summary)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ChannelError("its answer is not that of a sentinel, or of an older one") from None
