"""What goes over the line, over a real connection."""

import asyncio
import gzip
from collections.abc import Iterator

import aiohttp
import pytest

from tests.web.scenery import night
from tests.web.stage import Stage, stage


@pytest.fixture(scope="module")
def shown() -> Iterator[Stage]:
    with stage(night(), 500) as made:
        yield made


def get(s: Stage, path: str, accept: str, method: str = "GET") -> tuple[bytes, str, int]:
    async def once() -> tuple[bytes, str, int]:
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(method, s.url + path, headers={"Accept-Encoding": accept}) as answer,
        ):
            told = answer.headers
            return (
                await answer.read(),
                told.get("Content-Encoding", ""),
                int(told["Content-Length"]),
            )

    return asyncio.run(once())


@pytest.mark.parametrize("path", ["/alerts", "/api/v1/alerts", "/metrics", "/nodes/room.json"])
def test_text_is_a_fifth_as_long_and_the_same(shown: Stage, path: str) -> None:
    """For whoever takes it, and only for them."""
    plain, how, _ = get(shown, path, "identity")
    assert how == ""
    for no in ("", "br", "gzip;q=0", "gzip; q=0.0, br"):
        assert get(shown, path, no)[1] == "", no
    packed, how, length = get(shown, path, "br, GZIP;q=0.8")
    assert (how, length) == ("gzip", len(packed))
    assert len(packed) < len(plain) / 3
    assert len(gzip.decompress(packed)) == pytest.approx(len(plain), rel=0.02)
    assert get(shown, path, "gzip", "HEAD")[0] == b""


@pytest.mark.parametrize("path", ["/healthz", "/static/x/icon.svg", "/nothing"])
def test_what_fits_into_a_packet_is_sent_as_it_is(shown: Stage, path: str) -> None:
    """To pack it would gain nothing."""
    assert get(shown, path, "gzip")[1] == ""
