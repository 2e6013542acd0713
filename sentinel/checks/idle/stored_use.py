"""How busy GPUs were, as a Prometheus has it from DCGM's exporter. It is asked once in a pass."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import pairwise
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

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


class _Series(Struct, frozen=True):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Found(Struct, frozen=True):
    result: list[_Series]


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
    except ChannelError as error:
        raise CannotTell(f"Prometheus: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise CannotTell(f"Prometheus: {url_origin(url)} gave no proper answer") from None
    return _join_series(found, now.wall / SECOND - span, now.wall / SECOND, gap)


def _join_series(found: list[_Series], began: float, ended: float, gap: float) -> StoredUse:
    """A GPU may have several series, as when another job has it or two Prometheus jobs scrape it."""
    samples: dict[str, list[tuple[float, float]]] = {}
    for series in found:
        read = ((at, _read_percent(text)) for at, text in series.values)
        kept = [(at, percent) for at, percent in read if 0 <= percent <= 100]
        samples.setdefault(series.metric.get("UUID", ""), []).extend(kept)
    peaks, holes = dict[str, float](), dict[str, float]()
    for uuid, values in samples.items():
        edges = [began, *sorted(at for at, _ in values), ended]
        hole = max(after - before for before, after in pairwise(edges))
        if hole > gap:
            holes[uuid] = hole
        else:
            peaks[uuid] = max(percent for _, percent in values)
    return StoredUse(peaks=peaks, holes=holes)


def _read_percent(text: str) -> float:
    """The number; -1 if it is none. DCGM writes a value that it does not know as a huge one."""
    try:
        return float(text)
    except ValueError:
        return -1.0
