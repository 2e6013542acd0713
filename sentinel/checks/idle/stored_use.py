"""How busy GPUs were, as a Prometheus has it from DCGM's exporter. It is asked once in a pass."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Mapping
from itertools import pairwise
from urllib.parse import urlencode

import msgspec
from msgspec import Raw, Struct

from sentinel.channels.http import exchange_http, refused_status
from sentinel.channels.http_request import HttpRequest, url_origin
from sentinel.channels.post import url_below
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import CannotTell, ChannelError
from sentinel.core.struct_types import decode_json
from sentinel.core.values import duration_text

METRIC = "DCGM_FI_DEV_GPU_UTIL"

MAX_ANSWER_BYTES = 2**26
"""The answer about 50,000 GPUs. One that is cut off is unknown."""


class StoredUse(Struct, frozen=True, kw_only=True):
    """The highest use of each GPU in percent since the last look, by UUID. `holes`: the longest time
    in seconds without a sample, of each GPU for which it was too long."""

    peaks: Mapping[str, float] = {}
    holes: Mapping[str, float] = {}

    def explain_missing(self, uuid: str) -> str:
        """Why the use of a GPU is not known."""
        if hole := self.holes.get(uuid):
            return f"Prometheus has no {METRIC} of {uuid} for {duration_text(hole)}"
        return f"Prometheus has no {METRIC} of {uuid}"


MAX_SERIES, MAX_SERIES_BYTES = 200_000, 2**18
"""Several of each of 50,000 GPUs. Of one series: nine thousand samples. Each is decoded alone, for no other thread of sentinel runs meanwhile:
somebody else on the port of a Prometheus that is down stopped all checks for half a minute."""


class _Series(Struct, frozen=True):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Found(Struct, frozen=True):
    result: list[Raw]


class _Answer(Struct, frozen=True):
    data: _Found


def ask_stored_use(url: str, seconds: float, gap: float, now: Instant, limit: float) -> StoredUse:
    """The use over the last `seconds`. Between two samples of a GPU, before the first and after the
    last one, no more than `gap` seconds may lie. Raises CannotTell."""
    span = int(seconds + gap) + 1
    words = {"query": f"{METRIC}[{span}s]", "time": f"{now.wall / SECOND:.3f}"}
    request = HttpRequest(
        url=url_below(url, f"api/v1/query?{urlencode(words)}"),
        method="GET",
        headers={},
        body=b"",
        timeout=limit,
        most=MAX_ANSWER_BYTES,
        patience=limit,
    )
    try:
        answer = asyncio.run(exchange_http(request))
        if answer.status != 200:
            raise refused_status(request, answer)
        found = decode_json(answer.body, _Answer).data.result
        return _join_series(found, now.wall / SECOND - span, now.wall / SECOND, gap)
    except ChannelError as error:
        raise CannotTell(f"Prometheus: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise CannotTell(f"Prometheus: {url_origin(url)} gave no proper answer") from None


def _join_series(found: list[Raw], began: float, ended: float, gap: float) -> StoredUse:
    """A GPU may have several series, as when another job has it or two Prometheus jobs scrape it."""
    times: dict[str, array[float]] = {}
    peaks, holes = dict[str, float](), dict[str, float]()
    if len(found) > MAX_SERIES or any(len(one) > MAX_SERIES_BYTES for one in found):
        raise CannotTell("Prometheus: it has more samples than a scraper takes")
    for one in found:
        series = decode_json(bytes(one), _Series)
        uuid = series.metric.get("UUID", "")
        moments = times.setdefault(uuid, array("d"))
        for at, text in series.values:
            if 0 <= (percent := _read_percent(text)) <= 100:
                moments.append(at)
                peaks[uuid] = max(peaks.get(uuid, 0.0), percent)
    for uuid, moments in times.items():
        hole = max(after - before for before, after in pairwise([began, *sorted(moments), ended]))
        if hole > gap:
            holes[uuid] = hole
    return StoredUse(peaks={u: peak for u, peak in peaks.items() if u not in holes}, holes=holes)


def _read_percent(text: str) -> float:
    """The number; -1 if it is none. DCGM writes a value that it does not know as a huge one."""
    try:
        return float(text)
    except ValueError:
        return -1.0
