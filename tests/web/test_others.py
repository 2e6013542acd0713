"""Other sentinels on the overview: real servers, one of them dead, one none, one that shows only a part."""

import asyncio
import json
import urllib.request
from collections.abc import Mapping

import pytest

from sentinel.config.settings import OtherClusterSettings
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.settings import Secret
from sentinel.status.types import ClusterFact
from sentinel.testing import ManualClock
from sentinel.web.auth import Gate
from sentinel.web.other_clusters import STALE_AFTER_S, OtherClusters
from tests.channels.web import Web, answers
from tests.web.scenery import alert
from tests.web.stage import TOKEN, stage


def asked(others: OtherClusters) -> Mapping[str, ClusterFact]:
    """After the first round."""

    async def once() -> None:
        watching = asyncio.ensure_future(others.poll_forever())
        while any(row.trouble == "not asked yet" for row in others.list_cluster_facts()):
            await asyncio.sleep(0.01)
        watching.cancel()

    asyncio.run(asyncio.wait_for(once(), 30))
    return {row.name: row for row in others.list_cluster_facts()}


def test_each_is_a_row_and_silence_is_not_ok() -> None:
    closed = Gate(TOKEN, user_header="X-User")
    with (
        stage([alert(1, "gpu00001"), alert(2, "gpu00002")]) as east,
        stage(gate=closed) as west,
        Web(answers(200, "<html>nginx</html>")) as odd,
        Web(answers(503, "busy", **{"Retry-After": "1 Jan 99999999999999999999 00:00 +0"})) as ill,
    ):
        named = {
            "dead": OtherClusterSettings(url="http://127.0.0.1:9"),
            "east": OtherClusterSettings(url=f"{east.url}/"),
            "ill": OtherClusterSettings(url=ill.url),
            "odd": OtherClusterSettings(url=odd.url),
            "west": OtherClusterSettings(url=west.url),
            "west2": OtherClusterSettings(url=west.url, token=Secret(TOKEN)),
        }
        clock = ManualClock()
        others = OtherClusters(named, clock)
        assert {row.status for row in others.list_cluster_facts()} == {Status.UNKNOWN}
        rows = asked(others)
        assert (rows["east"].status, rows["east"].firing, rows["east"].trouble) == (
            Status.CRITICAL,
            2,
            "",
        )
        assert rows["west"].status is Status.UNKNOWN
        assert "without its token" in rows["west"].trouble
        assert rows["west2"].trouble == ""
        assert "not that of a sentinel" in rows["odd"].trouble
        assert "503" in rows["ill"].trouble
        assert {rows[name].status for name in ("dead", "ill", "odd")} == {Status.UNKNOWN}
        assert rows["dead"].seen is None
        assert TOKEN not in repr(rows)
        assert next(row.name for row in others.list_cluster_facts()) == "east"

        clock.advance(STALE_AFTER_S + 1)
        late = {row.name: row for row in others.list_cluster_facts()}
        assert (late["east"].status, late["east"].trouble) == (Status.UNKNOWN, "not asked lately")


def test_an_address_that_is_shown_holds_no_password() -> None:
    with pytest.raises(Invalid, match="no user or password"):
        OtherClusterSettings(url="https://ann:secret@east.example")


def test_the_overview_and_the_api_show_them() -> None:
    east = ClusterFact(
        name="east<b>", url="https://east", status=Status.CRITICAL, firing=3, nodes=12, seen=1.0
    )
    west = ClusterFact(name="west", url="https://west", status=Status.UNKNOWN, trouble="no answer")
    with stage(clusters=(east, west)) as shown:
        with urllib.request.urlopen(f"{shown.url}/api/v1/clusters") as answer:
            assert [row["name"] for row in json.load(answer)] == ["east<b>", "west"]
        with urllib.request.urlopen(shown.url) as answer:
            page = answer.read().decode()
    assert "Other clusters" in page
    assert '<a href="https://east">east&lt;b&gt;</a>' in page
    assert "no answer" in page
    with stage() as alone, urllib.request.urlopen(alone.url) as answer:
        assert "Other clusters" not in answer.read().decode()
