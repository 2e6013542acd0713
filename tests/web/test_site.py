"""The page, its answers and its API over a real connection: what is refused, and what holds."""

import asyncio
import csv
import json
import re
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, cast
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from sentinel.alerting.orders import Author
from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND
from sentinel.core.errors import StoreError
from sentinel.core.model import Status
from sentinel.status import machine_room
from sentinel.status.types import AlertFact, Facts
from sentinel.store.memory import MemoryStore
from sentinel.testing import START
from sentinel.web import connection_limit, events
from sentinel.web.auth import SESSION_COOKIE, Gate, RequestRefused
from sentinel.web.page_cache import PageCache, SharedResults
from sentinel.web.rate_limit import RequestRateLimiter
from sentinel.web.snapshot_cache import LiveFacts
from sentinel.web.tables import _compute_sort_place, slice_page
from tests.channels.samples import HOSTILE
from tests.lab.waiting import wait_until
from tests.web.proof import of
from tests.web.scenery import alert, around, fill, scene, store
from tests.web.stage import TOKEN, Stage, stage

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
ACK = "/alerts/00000001/ack"


@pytest.fixture
def shown() -> Iterator[Stage]:
    with stage([alert(1, "gpu00001")]) as made:
        yield made


def ask(s: Stage, method: str, path: str, **more: Any) -> tuple[int, str, Any]:
    async def once() -> tuple[int, str, Any]:
        async with aiohttp.ClientSession() as session:
            url = s.url + path
            async with session.request(method, url, allow_redirects=False, **more) as answer:
                return answer.status, await answer.text(), answer.headers

    return asyncio.run(once())


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é" * 22])
def test_without_the_token_nothing_is_done(shown: Stage, token: str) -> None:
    """By form, by header, empty, longer, shorter."""
    assert ask(shown, "POST", ACK, data={"token": token})[0] == 403
    bearer = {"Authorization": f"Bearer {quote(token)}", "Content-Type": "application/json"}
    assert ask(shown, "POST", f"/api/v1{ACK}", headers=bearer, data="{}")[0] == 401
    assert shown.orders() == ([], [])


def test_the_token_in_an_address_counts_for_nothing(shown: Stage) -> None:
    """Addresses end up in logs and histories."""
    assert ask(shown, "POST", f"{ACK}?token={TOKEN}", data={})[0] == 403
    assert ask(shown, "GET", f"{ACK}?token={TOKEN}")[0] == 405


def test_where_no_token_is_configured_nobody_may() -> None:
    """An empty token is no token that fits."""
    with stage([alert(1, "gpu00001")], token="") as s:
        assert ask(s, "POST", ACK, data={"token": ""})[0] == 403
        assert "Read-only: set" in ask(s, "GET", "/alerts/00000001")[1]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_site_cannot_make_a_browser_answer(shown: Stage, headers: dict[str, str]) -> None:
    """Even where a proxy adds the token for whoever is logged in."""
    given = {**headers, "Authorization": f"Bearer {TOKEN}", **FORM}
    assert ask(shown, "POST", ACK, headers=given, data=b"who=x")[0] == 403
    assert ask(shown, "POST", f"/api/v1{ACK}", headers={**JSON, **headers}, data="{}")[0] == 403
    assert shown.orders() == ([], [])


def test_behind_a_proxy_the_configured_address_is_our_own() -> None:
    """nginx sends its own Host by default; the browser's Origin is what people typed."""
    gate = Gate(TOKEN, "https://sentinel.example.org", "X-Remote-User")
    headers = {"Host": "127.0.0.1:9650", "Origin": "https://sentinel.example.org"}
    gate.authorize_request(headers, TOKEN, 0.0)
    assert (
        gate.name_requester({"X-Remote-User": "ann\x1b[2J"}, "bob", "page", 0.0)
        == "ann\\x1b[2J (page)"
    )
    assert gate.name_requester({}, "bob", "page", 0.0) == "bob (page)"
    with pytest.raises(RequestRefused):
        gate.authorize_request(
            {**headers, "Origin": "https://sentinel.example.org.evil"}, TOKEN, 0.0
        )
    assert TOKEN not in repr(gate)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("127.0.0.1.evil.example:9650", 421),
        ("login1.evil.example", 421),
        ("[::1", 421),
        ("localhost:9650", 303),
        ("LOGIN1.:9650", 303),
        ("login2:8080", 303),
        ("[::1]:9650", 303),
        ("10.0.0.7", 303),
        ("sentinel.example.org", 303),
    ],
)
def test_a_name_that_is_none_of_ours_gives_no_orders(host: str, status: int) -> None:
    """A stranger's name that is made to mean this host is, to a browser, the stranger's site."""
    gate = Gate(TOKEN, "https://sentinel.example.org", hosts=("login1", "Login2:9650"))
    headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    with stage([alert(1, "gpu00001")], gate=gate) as s:
        data = {"token": TOKEN}
        assert ask(s, "POST", ACK, headers=headers, data=data)[0] == status
        assert len(s.orders()[0]) == (status == 303)


STRANGER = {"Host": "evil.example:9650"}


@pytest.mark.parametrize(
    "path",
    ["/", "/alerts/00000001", "/nodes/grid.svg", "/events", "/api/v1", "/api/v1/alerts", "/x"],
)
def test_a_name_that_is_none_of_ours_reads_nothing(shown: Stage, path: str) -> None:
    """By DNS rebinding a page of a stranger's could read all that its visitor may see."""
    status, page, _ = ask(shown, "GET", path, headers=STRANGER)
    assert status == 421
    assert "gpu00001" not in page
    assert "You asked for evil.example:9650" in page


@pytest.mark.parametrize("path", ["/healthz", "/metrics"])
def test_monitoring_names_the_host_as_it_likes(shown: Stage, path: str) -> None:
    """Prometheus and load balancers have their own names for it."""
    assert ask(shown, "GET", path, headers=STRANGER)[0] == 200


def test_the_header_of_a_user_is_believed_only_where_it_is_configured() -> None:
    """Else whoever asks could sign with another's name."""
    assert Gate(TOKEN).get_proxy_user({"X-Remote-User": "root", "": "root"}) == ""


def test_an_answer_is_kept_and_a_reload_repeats_nothing(shown: Stage) -> None:
    """POST, then a redirect to the page."""
    status, _, headers = ask(shown, "POST", ACK, data={"token": TOKEN, "who": "Ann"})
    assert (status, headers["Location"]) == (303, "/alerts/00000001")
    assert [a.who for a in shown.orders()[0]] == ["Ann (the status page)"]


def test_the_api_acknowledges_and_silences(shown: Stage) -> None:
    """It answers with what was done; a silence with the id that ends it."""
    status, text, _ = ask(shown, "POST", f"/api/v1{ACK}", headers=JSON, data='{"who": "bot"}')
    assert (status, json.loads(text)["who"]) == (200, "bot (the API)")
    path = "/api/v1/alerts/00000001/silence"
    status, text, _ = ask(shown, "POST", path, headers=JSON, data='{"for": "2h", "reason": "RMA"}')
    [silence] = shown.orders()[1]
    assert (status, json.loads(text)["silence"]) == (200, silence.id)
    assert silence.ends - silence.starts == 2 * 3600 * 10**6
    [listed] = json.loads(ask(shown, "GET", "/api/v1/silences")[1])
    assert listed["id"] == silence.id


@pytest.mark.parametrize("api", [True, False])
def test_the_page_and_the_api_leave_the_same_trace(
    shown: Stage, caplog: pytest.LogCaptureFixture, api: bool
) -> None:
    """One record each, with who, how and what they wrote; the note is shown by both."""
    caplog.set_level("INFO", "sentinel")
    how, told = ("api", "Ann (the API)") if api else ("page", "Ann (the status page)")
    note = "x" * 390 + "disk \x1b[31mswap" + "y" * 400
    for deed, word in (("ack", "note"), ("silence", "reason" if api else "note")):
        said = {"who": "Ann", word: note, **({"for": "2h"} if deed == "silence" else {})}
        path = f"/alerts/00000001/{deed}"
        if api:
            body = json.dumps(said)
            assert ask(shown, "POST", f"/api/v1{path}", headers=JSON, data=body)[0] == 200
        else:
            assert ask(shown, "POST", path, data={"token": TOKEN, **said})[0] == 303
    found = [r.fields for r in caplog.records if hasattr(r, "fields") and "how" in r.fields]
    assert [(f["event"], f["who"], f["how"]) for f in found] == [
        ("ack", told, how), ("silence", told, how),
    ]  # fmt: skip
    assert all(f["note"].startswith("x" * 390 + "disk ") for f in found)
    assert all(len(f["note"]) < 410 and f["note"].isprintable() for f in found)
    alert = json.loads(ask(shown, "GET", "/api/v1/alerts/00000001")[1])["alert"]
    assert alert["ack_note"] == alert["silence_reason"] == found[0]["note"]
    page = ask(shown, "GET", "/alerts/00000001")[1]
    assert page.count("x" * 390) == 2


@pytest.mark.parametrize("length", ["", "59s", "91d", "1", "-1h", "<b>", "1000000000h"])
def test_a_silence_is_from_a_minute_to_ninety_days(shown: Stage, length: str) -> None:
    """No link of a page can make sentinel blind for a year."""
    body = json.dumps({"for": length})
    assert ask(shown, "POST", "/api/v1/alerts/00000001/silence", headers=JSON, data=body)[0] == 400
    form = {"token": TOKEN, "for": length}
    assert ask(shown, "POST", "/alerts/00000001/silence", data=form)[0] == 400
    assert shown.orders() == ([], [])


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (JSON, b"{", 400),
        (JSON, b'{"who": 1}', 400),
        (JSON, b'{"wo": "x"}', 400),
        (JSON, b'"\xff"', 400),
        (JSON, b"[" * 3000, 400),
        ({**JSON, "Content-Type": "text/plain"}, b"{}", 415),
        (JSON, b"x" * 100_000, 413),
    ],
)
def test_a_body_that_is_not_right_is_told_so(
    shown: Stage, headers: dict[str, str], body: bytes, status: int
) -> None:
    """In JSON, with the status of HTTP."""
    got, text, _ = ask(shown, "POST", f"/api/v1{ACK}", headers=headers, data=body)
    assert got == status
    assert json.loads(text)["error"]
    assert shown.orders() == ([], [])


@pytest.mark.parametrize("name", ["00000009", "..%2f..%2fetc%2fpasswd", "%00", "%ff", "x" * 5000])
def test_an_alert_that_is_not_there_is_404_for_all(shown: Stage, name: str) -> None:
    """To show, to explain, to answer."""
    assert ask(shown, "GET", f"/alerts/{name}")[0] in (400, 404)
    assert ask(shown, "GET", f"/api/v1/alerts/{name}")[0] in (400, 404)
    status = ask(shown, "POST", f"/alerts/{name}/ack", data={"token": TOKEN})[0]
    assert status in (400, 404)


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/api/v1/alerts/a/b", 404, None),
        ("GET", "/api/v1/alertsx", 404, None),
        ("GET", "/api/v1/alerts/00000001/ack", 405, "POST"),
        ("POST", "/api/v1/alerts", 405, "GET, HEAD"),
        ("DELETE", "/api/v1/alerts/00000001", 405, "GET, HEAD"),
    ],
)
def test_what_the_api_does_not_have_is_told_from_what_it_does_not_do(
    shown: Stage, method: str, path: str, status: int, allow: str | None
) -> None:
    """404 and 405, the latter with what may be done (RFC 9110, section 15.5.6)."""
    got, text, headers = ask(shown, method, path)
    assert (got, headers.get("Allow")) == (status, allow)
    assert json.loads(text)["error"]


def test_a_page_of_alerts_that_is_no_more_is_the_last_one(shown: Stage) -> None:
    """While somebody reads page three most of them end: what still fires is not `No alert`."""
    status, page, _ = ask(shown, "GET", "/alerts?from=400")
    assert (status, "gpu00001" in page, "No alert" in page) == (200, True, False)


def test_an_open_page_has_a_new_picture_of_the_nodes_when_they_have_changed() -> None:
    """A part of its own, with another address for other states and the same for the same."""
    part = re.compile(r'<span id="grid" data-live><input type="image" src="([^"]+)"')
    found = []
    for count in (40, 40, 41):
        with stage(count=count) as s:
            found += part.findall(ask(s, "GET", "/nodes")[1])
            assert ask(s, "GET", found[-1])[2]["Content-Type"].startswith("image/svg+xml")
    assert found[0] == found[1] != found[2]


def test_only_what_an_address_means_makes_another_page() -> None:
    """Who asks for /files?x=1, /files?x=2, … must not keep the loop busy with templates."""

    class Still(LiveFacts):
        seen = scene()

        def __init__(self) -> None: ...

        def around(self) -> Any:
            return around()

        async def get_facts(self) -> Any:
            return self.seen

        def get_now_s(self) -> float:
            return 0.0

    made = []

    async def more(_: Any) -> dict[str, str]:
        made.append("page")
        await asyncio.sleep(0)
        return {"name": "File systems"}

    async def story() -> None:
        shown = PageCache(Still(), Gate())
        for n in range(5):
            request = make_mocked_request("GET", f"/files?x={n}")
            for part in (0, 200):
                await shown.get_cached_page(request, "list.html", "/files", more, part)

    asyncio.run(story())
    assert len(made) == 2


def test_who_reloads_while_a_page_is_made_gets_the_same_one() -> None:
    """Fifty who reloaded the page of 10,000 nodes had each made one of their own: 8 s."""
    made, facts = list[str](), cast("Facts", object())

    async def make() -> str:
        made.append("page")
        await asyncio.sleep(0)
        return "page"

    async def story() -> None:
        shared = SharedResults()
        every = [shared.get_result("/nodes", facts, make) for _ in range(50)]
        assert await asyncio.gather(*every) == ["page"] * 50
        assert made == ["page"]
        await shared.get_result("/nodes", cast("Facts", object()), make)
        assert len(made) == 2

    asyncio.run(story())


def test_a_page_that_could_not_be_made_is_made_again() -> None:
    """For those who ask after it failed; who gives up takes it from nobody."""
    facts, made = cast("Facts", object()), list[str]()

    async def make() -> str:
        made.append("page")
        await asyncio.sleep(0)
        if len(made) == 1:
            raise StoreError("the disk is full")
        return "page"

    async def story() -> None:
        shared = SharedResults()
        both = [shared.get_result("/", facts, make) for _ in range(2)]
        failed = await asyncio.gather(*both, return_exceptions=True)
        assert [type(one) for one in failed] == [StoreError, StoreError]
        hasty = asyncio.ensure_future(shared.get_result("/", facts, make))
        patient = asyncio.ensure_future(shared.get_result("/", facts, make))
        await asyncio.sleep(0)
        hasty.cancel()
        assert await patient == "page"
        assert len(made) == 2

    asyncio.run(story())


def test_the_page_of_nodes_is_made_once_for_all(
    shown: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its racks, and with the data that the browser draws."""
    made = list[str]()

    def count(name: str) -> None:
        real = getattr(machine_room, name)

        def counted(*how: Any) -> Any:
            made.append(name)
            return real(*how)

        monkeypatch.setattr(machine_room, name, counted)

    names = ["build_room", "build_rack_rows", "measure_racks"]
    for name in names:
        count(name)
    get_facts, known = LiveFacts.get_facts, list[Facts]()

    async def give_same_facts(live: LiveFacts) -> Facts:
        known[:] = known or [await get_facts(live)]
        return known[0]

    monkeypatch.setattr(LiveFacts, "get_facts", give_same_facts)
    for _ in range(3):
        for path in ("/nodes", "/nodes/room.json", "/alerts"):
            assert ask(shown, "GET", path)[0] == 200
    assert sorted(made) == sorted(names)


def test_a_question_for_the_heads_of_events_does_not_last(shown: Stage) -> None:
    """It would take a place among the open pages until its client goes away."""
    assert ask(shown, "HEAD", "/events")[0] == 405


class Counted(MemoryStore):
    """A state that knows how often its history was read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def read_samples(self, *which: Any) -> Any:
        self.read.append(which[2])
        return super().read_samples(*which)


def test_a_history_is_not_read_again_for_every_look() -> None:
    """Two weeks of every few seconds are a hundred thousand rows, read by the thread that also
    writes what fires; an open page asks every five seconds."""
    state = Counted()
    fill(state, [], 40)
    state.take_lead("lab pid 1", START)
    with stage(state=state) as s:
        pages = [ask(s, "GET", "/files/one?check=scratch&path=/scratch")[1] for _ in range(3)]
        assert pages[0] == pages[2]
        assert "polyline" in pages[2]
        assert state.read.count("free_bytes") == 1
        ask(s, "GET", "/files/one?check=scratch&path=/other")
        assert state.read.count("free_bytes") == 2


def test_no_command_is_offered_for_what_is_no_node(shown: Stage) -> None:
    """A link is anybody's; what stands there to be copied into a shell is ours."""
    _, page, _ = ask(shown, "GET", "/nodes/one?name=" + quote("x; rm -rf \u202e~"))
    assert "no node of this name" in page
    assert "<pre>" not in page
    assert "\u202e" not in page
    assert "sentinel nodes probe gpu00003" in ask(shown, "GET", "/nodes/one?name=gpu00003")[1]


@pytest.mark.parametrize(
    "path",
    [
        "/static/x/../../../../etc/passwd",
        "/static/x/..%2f..%2frender.py",
        "/static/x/%2e%2e%2frender.py",
        "/static/../server.py",
        "/static/x//etc/passwd",
        "/static/x/style.css%00",
        "//etc/passwd",
    ],
)
def test_no_path_leads_out(shown: Stage, path: str) -> None:
    """Sent as it is written, as no client of good manners would."""
    with socket.create_connection(("127.0.0.1", shown.server.listen_port)) as wire:
        wire.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b""
        while part := wire.recv(65536):
            answer += part
    assert answer.split()[1] in (b"404", b"400")
    assert b"root:" not in answer
    assert b"import" not in answer


@pytest.mark.long
def test_a_slow_client_is_sent_away_and_holds_nobody_up(shown: Stage) -> None:
    """Slowloris: headers that never end. Others are served meanwhile, and it ends."""
    with socket.create_connection(("127.0.0.1", shown.server.listen_port)) as wire:
        wire.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        assert ask(shown, "GET", "/")[0] == 200
        deadline = time.monotonic() + 40
        wire.settimeout(1)
        closed = False
        while not closed and time.monotonic() < deadline:
            try:
                wire.sendall(b"X-A: b\r\n")
                closed = wire.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                closed = True
        assert closed


def _refused(guest: socket.socket) -> bool:
    guest.settimeout(5)
    try:
        guest.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        return guest.recv(1) == b""
    except ConnectionError:
        return True


def _is_closed(guest: socket.socket) -> bool:
    try:
        return guest.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_however_many_come_the_watching_keeps_its_files(
    shown: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound connections are closed at once; when some leave, others may come."""
    monkeypatch.setattr(connection_limit, "MAX_CONNECTIONS", 5)
    address = ("127.0.0.1", shown.server.listen_port)
    with ExitStack() as wires:
        guests = [wires.enter_context(socket.create_connection(address)) for _ in range(8)]
        # All were let in or not before the first asks: who is being answered is not sent away.
        wait_until(lambda: sum(map(_is_closed, guests)) >= 3, "those that are too many are closed")
        assert sum(_refused(guest) for guest in guests) == 3
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            assert ask(shown, "GET", "/healthz")[0] == 200
            return
        except aiohttp.ClientError:
            time.sleep(0.05)
    pytest.fail("nobody was let in any more")


def test_a_burst_waits_in_the_queue_while_the_loop_is_at_work() -> None:
    """The kernel drops what comes beyond it, and a probe among them would come again a second later."""
    with open("/proc/sys/net/core/somaxconn", encoding="ascii") as most:
        count = min(400, int(most.read()))

    async def come_while_nobody_accepts() -> None:
        runner = web.AppRunner(web.Application())
        await runner.setup()
        await connection_limit.LimitedSite(runner, "127.0.0.1", 0).start()
        with ExitStack() as wires:
            for _ in range(count):
                wires.enter_context(socket.create_connection(runner.addresses[0], timeout=5))
        await runner.cleanup()

    asyncio.run(come_while_nobody_accepts())


@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2"])
def test_connections_that_ask_nothing_keep_nobody_out(shown: Stage, source: str) -> None:
    """260 that are open and silent, of whoever asks too or of another address: the page and
    /healthz answer, and no more stay open than one address may have."""
    address = ("127.0.0.1", shown.server.listen_port)
    with ExitStack() as wires:
        guests = [
            wires.enter_context(socket.create_connection(address, source_address=(source, 0)))
            for _ in range(260)
        ]
        for path in ("/", "/healthz"):
            assert ask(shown, "GET", path)[0] == 200
        open_still = select.poll()
        for guest in guests:
            open_still.register(guest, select.POLLIN | select.POLLHUP)
        assert 260 - len(open_still.poll(0)) <= connection_limit.MAX_PEER_CONNECTIONS


def test_pages_that_one_person_keeps_open_leave_room_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Behind one proxy: the oldest page of who has most goes; where nobody has more, none does."""
    monkeypatch.setattr(events, "MAX_OPEN_PAGES", 2)
    with ExitStack() as wires:
        s = wires.enter_context(stage(gate=Gate(TOKEN, user_header="X-Remote-User")))

        def open_page(who: str) -> socket.socket:
            address = ("127.0.0.1", s.server.listen_port)
            wire = wires.enter_context(socket.create_connection(address))
            said = "".join(f"{name}: {value}\r\n" for name, value in of(who).items())
            wire.sendall(f"GET /events HTTP/1.1\r\nHost: localhost\r\n{said}\r\n".encode())
            return wire

        first, second = open_page("mallory"), open_page("mallory")
        assert (b"200 OK" in first.recv(1000), b"200 OK" in second.recv(1000)) == (True, True)
        assert b"200 OK" in open_page("alice").recv(1000)
        first.settimeout(5)
        while not first.recv(1000).endswith(b"0\r\n\r\n"):
            pass
        assert b"503" in open_page("alice").recv(1000)


@pytest.mark.parametrize("limit", ["MAX_CONNECTIONS", "MAX_PEER_CONNECTIONS"])
def test_a_server_at_work_to_its_limit_still_says_that_it_lives(
    shown: Stage, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Each connection, of all clients or of the one that asks, follows an open page: /healthz has a
    place of its own, other pages wait."""
    monkeypatch.setattr(connection_limit, limit, 3)
    address = ("127.0.0.1", shown.server.listen_port)
    with ExitStack() as wires:
        for _ in range(3):
            wire = wires.enter_context(socket.create_connection(address))
            wire.sendall(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{address[1]}\r\n\r\n".encode())
            assert b"200 OK" in wire.recv(1000)
        assert ask(shown, "GET", "/healthz")[0] == 200
        assert ask(shown, "GET", "/")[0] == 503


def _post_without_end(wire: socket.socket) -> None:
    wire.sendall(
        b"POST /alerts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n\r\na"
    )


def test_bodies_that_never_end_keep_nobody_out(shown: Stage) -> None:
    """250 of them, from as many addresses as a user of this host likes: the page, /healthz and a
    body that comes whole are answered."""
    address = ("127.0.0.1", shown.server.listen_port)
    with ExitStack() as wires:
        for n in range(250):
            source = (f"127.0.{2 + n // 200}.{1 + n % 200}", 0)
            wire = wires.enter_context(socket.create_connection(address, source_address=source))
            with suppress(ConnectionError):
                _post_without_end(wire)
        for path in ("/", "/healthz"):
            assert [ask(shown, "GET", path)[0] for _ in range(3)] == [200] * 3
        cookie = Gate(TOKEN).make_session_cookie("ann", START.wall / SECOND)
        known = {"Cookie": f"{SESSION_COOKIE}={cookie}", "Origin": shown.url}
        assert ask(shown, "POST", ACK, headers=known, data={"note": "x"})[0] == 303


def test_whoever_has_a_session_is_not_slowed_by_others_of_the_same_address() -> None:
    """Any user of this host may ask from the address of the proxy until it has to wait."""
    limits = (RequestRateLimiter(5, 0.1), RequestRateLimiter(3, 0.1))
    with stage([alert(1, "gpu00001")], limits=limits) as s:
        cookie = Gate(TOKEN).make_session_cookie("ann", START.wall / SECOND)
        known = {"Cookie": f"{SESSION_COOKIE}={cookie}"}
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        guess = {"Authorization": f"Bearer {TOKEN}x"}
        assert [ask(s, "GET", "/")[0] for _ in range(6)] == [*[200] * 5, 429]
        read = [ask(s, "GET", "/", headers=who)[0] for who in (known, bearer, guess)]
        assert read == [200, 200, 429]
        assert [ask(s, "POST", ACK, data={"token": "x"})[0] for _ in range(4)] == [*[403] * 3, 429]
        own_page = {**known, "Origin": s.url}
        assert ask(s, "POST", ACK, headers=own_page, data={"note": "x"})[0] == 303
        assert ask(s, "POST", ACK, data={"token": TOKEN})[0] == 429


def test_people_behind_a_proxy_are_not_slowed_by_one_of_them() -> None:
    """The proxy says who asks, and its token that this is so. One who asks without end waits alone, and so
    does a guess at the token: who reads and who answers is let through."""
    limits = (RequestRateLimiter(5, 0.1), RequestRateLimiter(3, 0.1))
    gate = Gate(TOKEN, user_header="X-Remote-User", administrators=frozenset({"root"}))
    with stage([alert(1, "gpu00001", labels={"user": "ann"})], limits=limits, gate=gate) as s:
        for who in ("mallory", "ann"):
            assert [ask(s, "GET", "/", headers=of(who))[0] for _ in range(6)] == [*[200] * 5, 429]
        for _ in range(4):
            ask(s, "POST", ACK, headers=of("mallory"), data={})
            ask(s, "POST", ACK, headers=of("root", "guess"), data={})
        refused = [of("mallory"), of("root", "guess"), of("ann", "guess"), {}]
        assert [ask(s, "POST", ACK, headers=who, data={})[0] for who in refused] == [429] * 4
        assert ask(s, "GET", "/", headers=of("root"))[0] == 200
        for who in ("ann", "root"):
            assert ask(s, "POST", ACK, headers=of(who), data={"note": "x"})[0] == 303


def test_pages_without_end_hold_up_nothing_that_the_service_does() -> None:
    """Fifty requests wait for the state, behind one that is slow there: what the engine asks comes next,
    and they come after it, one by one."""
    begun, go, read = threading.Event(), threading.Event(), list[int]()

    def look(number: int, _: Store) -> None:
        begun.set()
        go.wait(30)
        read.append(number)

    async def ask_all(s: Stage) -> int:
        pages = [asyncio.ensure_future(s.engine.read(partial(look, n))) for n in range(50)]
        await asyncio.to_thread(begun.wait, 30)
        asked = asyncio.ensure_future(s.engine.orders())
        asyncio.get_running_loop().call_soon(go.set)  # after the first step of what was asked
        await asked
        before = len(read)
        await asyncio.gather(*pages)
        return before

    with stage() as s:
        assert s.do(ask_all(s)) < 10
    assert read == [*range(50)]


def test_answers_are_limited_apart_from_reading() -> None:
    """Whoever guesses tokens has to wait; who looks does not."""
    limits = (RequestRateLimiter(1000, 100), RequestRateLimiter(3, 0.1))
    with stage([alert(1, "gpu00001")], limits=limits) as s:
        seen = [ask(s, "POST", ACK, data={"token": "guess"})[0] for _ in range(5)]
        assert seen == [403, 403, 403, 429, 429]
        assert ask(s, "GET", "/")[0] == 200


def test_every_answer_forbids_what_is_not_needed(shown: Stage) -> None:
    """Nothing inline but our style, nothing from elsewhere, no frame, no cache but for files with a digest."""
    for path in ("/", "/alerts", "/nodes", "/metrics", "/api/v1", "/alerts/x", "/nothing"):
        _, _, headers = ask(shown, "GET", path)
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none';"), path
        assert "unsafe" not in policy
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Server"] == "sentinel"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_names_leave_pages_api_and_metrics_whole(text: str) -> None:
    """Whatever somebody calls a job."""
    with stage([alert(1, text, summary=text, labels={"user": text})]) as s:
        for path in ("/", "/alerts", "/alerts/00000001", "/metrics"):
            status, page, _ = ask(s, "GET", path)
            assert status == 200, path
            assert "<script>" not in page
        [told] = json.loads(ask(s, "GET", "/api/v1/alerts")[1])
        assert told["summary"].isprintable()
        for kind in ("files", "jobs"):
            where = f"/{kind}/one?check={quote(text.encode('utf-8', 'replace'))}&path=x&subject=y"
            assert ask(s, "GET", where)[0] == 200


def test_an_open_page_hears_of_a_change(shown: Stage) -> None:
    """At once, for what was missed, and within two seconds of the commit, by server-sent events."""

    async def event(content: aiohttp.StreamReader) -> list[str]:
        """Its lines."""
        lines = []
        while line := (await asyncio.wait_for(content.readline(), 2)).strip():
            lines.append(line.decode())
        return lines

    async def listen() -> list[str]:
        async with (
            aiohttp.ClientSession() as session,
            session.get(shown.url + "/events") as answer,
        ):
            assert answer.headers["Content-Type"] == "text/event-stream"
            assert "event: changed" in await event(answer.content)
            shown.fire.status = Status.CRITICAL
            await asyncio.to_thread(shown.do, shown.engine.run_check("late"))
            return await event(answer.content)

    assert asyncio.run(listen())[0] == "event: changed"
    assert "/late" in ask(shown, "GET", "/")[1]


def test_a_page_that_comes_while_the_server_ends_does_not_hold_it_up(shown: Stage) -> None:
    """Browsers come back at once when they were let go; the port is still open then."""

    async def first_half() -> None:
        shown.server._site.stop_watching()  # type: ignore[union-attr]

    shown.do(first_half())
    with socket.create_connection(("127.0.0.1", shown.server.listen_port)) as wire:
        wire.settimeout(10)
        wire.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        while wire.recv(4096):
            pass


def test_a_server_that_ends_does_not_wait_for_open_pages(shown: Stage) -> None:
    """They may stay open all night."""
    with socket.create_connection(("127.0.0.1", shown.server.listen_port)) as wire:
        wire.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert wire.recv(12) == b"HTTP/1.1 200"
        before = time.monotonic()
        shown.do(shown.server.stop_server())
        assert time.monotonic() - before < 20


def test_what_is_shown_is_made_once_for_all_who_ask() -> None:
    """Twenty who reload cost one reading of the state."""

    class Counting:
        commits, readings = 0, 0
        state = store([alert(1, "gpu00001")])

        async def read(self, reading: Any) -> Any:
            self.readings += 1
            return reading(self.state)

        async def order(self, order: Any) -> None: ...

    class Clock:
        def now(self) -> Any:
            return START

    async def many() -> int:
        source, seen = Counting(), around()
        live = LiveFacts(source, Clock(), lambda: seen)
        told = await asyncio.gather(*(live.get_facts() for _ in range(20)))
        assert all(t is told[0] for t in told)
        return source.readings

    assert asyncio.run(many()) == 1


def test_a_state_that_cannot_be_read_is_not_shown_as_it_was() -> None:
    """The page of before would look live: every question is refused until one is answered."""

    class Source:
        commits, broken = 0, False
        state = store([alert(1, "gpu00001")])

        async def read(self, reading: Any) -> Any:
            if self.broken:
                raise StoreError("disk full")
            return reading(self.state)

        async def order(self, order: Any) -> None: ...

    class Clock:
        def now(self) -> Any:
            return START

    async def story() -> None:
        source, seen = Source(), around()
        live = LiveFacts(source, Clock(), lambda: seen)
        assert await live.get_facts()
        await live.acknowledge_alert("00000001", Author("ann", "page"))
        source.broken = True
        for _ in range(3):
            with pytest.raises(StoreError):
                await live.get_facts()
        source.broken = False
        assert await live.get_facts()

    asyncio.run(story())


def test_nothing_of_the_page_is_imported_where_it_is_off() -> None:
    """Neither by the service's modules nor by a tick: not aiohttp's server, not jinja2's
    templates of ours, not prometheus_client."""
    code = (
        "import sys; import sentinel.wiring.app, sentinel.engine.service, sentinel.engine.tick, "
        "sentinel.cli.service, sentinel.wiring.status; "
        "bad = [m for m in sys.modules if m.startswith(('sentinel.web', 'prometheus_client', "
        "'aiohttp.web', 'jinja2'))]; print(bad)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_address_says_which_alerts_are_shown() -> None:
    """A filter of the page and of the API, as JSON and as CSV; a name that is none is refused."""
    rows = [
        alert(1, "gpu00001", incident="00000001"),
        alert(2, "gpu00002", Status.WARNING, incident="00000001", summary="=cmd()"),
        alert(3, "=1+1"),
    ]
    with stage(rows) as s:
        page = ask(s, "GET", "/alerts?check=drained&severity=warning")[1]
        links = re.findall(r'<td class="s"><a href="/alerts/(\w+)"', page)
        assert links == ["00000002"]
        assert "severity=warning&amp;format=csv" in page
        told = json.loads(ask(s, "GET", "/api/v1/alerts?incident=00000001")[1])
        assert {a["id"] for a in told} == {"00000001", "00000002"}
        both = json.loads(ask(s, "GET", "/api/v1/alerts?subject=gpu00001&subject=gpu00002")[1])
        assert len(both) == 2
        assert ask(s, "GET", "/api/v1/alerts?severty=critical")[0] == 400
        text = ask(s, "GET", "/api/v1/alerts?format=csv")[1]
        table = list(csv.DictReader(text.splitlines()))
        assert {(r["id"], r["subject"]) for r in table} >= {("00000003", "'=1+1")}
        assert "1 more alert<" in ask(s, "GET", "/alerts/00000002")[1]


def test_alerts_come_in_pages() -> None:
    """200 and a Link to the rest; all of them once, the worst first, with the filter kept."""
    kinds = {0: (Status.WARNING, "drained"), 1: (Status.CRITICAL, "job")}
    rows = []
    for n in range(1, 452):
        status, kind = kinds.get(n % 7, (Status.CRITICAL, "drained"))
        rows.append(alert(n, f"gpu{n:05}", status, kind=kind))
    with stage(rows) as s:
        path, told, sizes = "/api/v1/alerts?check=drained", [], []
        while path:
            status, text, headers = ask(s, "GET", path)
            assert status == 200, text
            part = json.loads(text)
            told += [(a["severity"], a["id"]) for a in part]
            sizes.append(len(part))
            link = re.fullmatch(r'<(.*)>; rel="next"', headers.get("Link", ""))
            path = link[1] if link else ""
        assert sizes == [200, 200, 51]
        assert len(set(told)) == len(rows)
        assert [severity for severity, _ in told] == sorted(severity for severity, _ in told)
        assert len(json.loads(ask(s, "GET", "/api/v1/alerts?limit=7")[1])) == 7
        table = ask(s, "GET", "/api/v1/alerts?format=csv&check=drained")[1]
        assert len(table.splitlines()) == 1 + len(rows)  # a spreadsheet follows no link
        for wrong in ("limit=0", "limit=1001", "limit=x", "limit="):
            assert ask(s, "GET", f"/api/v1/alerts?{wrong}")[0] == 400, wrong
        for wrong in ("after=", "after=x", "after=bnVsbA", "after=%C3%86"):
            assert ask(s, "GET", f"/api/v1/alerts?{wrong}")[0] == 404, wrong
        assert ask(s, "GET", "/api/v1/checks?limit=7")[0] == 400
        assert "1 to 200 of" in ask(s, "GET", "/alerts?check=drained")[1]


SHAPES = st.tuples(
    st.sampled_from(["job", "drained"]),
    st.sampled_from([Status.CRITICAL, Status.WARNING, Status.UNKNOWN]),
    st.sampled_from(["firing", "pending"]),
    st.sampled_from(["", "ann"]),
    st.integers(0, 3),
)


@given(
    shapes=st.lists(SHAPES, max_size=20), size=st.integers(1, 5), ends=st.sets(st.integers(0, 20))
)
def test_an_alert_that_stands_is_on_one_page(shapes: list[Any], size: int, ends: set[int]) -> None:
    """Some end and others begin between two pages, the last of a page too: what stands all the
    while comes, and where nothing changes, once."""
    rows = [
        AlertFact(
            id=f"{n}", cluster="c", check="x", kind=kind, subject=f"s{n}", status=status,
            severity=Status.WARNING if status is Status.UNKNOWN else status, state=state,
            acknowledged_by=who, since=float(since), for_s=0.0, summary="",
        )
        for n, (kind, status, state, who, since) in enumerate(shapes)
    ]  # fmt: skip
    rows.sort(key=_compute_sort_place)
    told: list[str] = []
    before: list[AlertFact] = rows
    after: str | None = None
    for _ in range(2 * len(rows) + 1):
        some, after = slice_page(before, size, after)
        told += [a.id for a in some]
        before = [a for n, a in enumerate(rows) if n not in ends]
        if not after:
            break
    assert not after
    standing = {a.id for n, a in enumerate(rows) if n not in ends}
    assert set(told) >= standing
    if not ends:
        assert told == [a.id for a in rows]
