"""The page behind a link, over a real connection to a real engine."""

import asyncio
import re
import socket
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from sentinel.alerting.signed_links import LinkClaim, LinkSigner
from sentinel.alerting.silences import Ack, Silence
from sentinel.core.errors import StoreError
from sentinel.core.model import ACK_ALL, Notification, Status
from sentinel.engine.engine import Engine
from sentinel.engine.tick import run_pass
from sentinel.homes import describe_setup_place
from sentinel.web.connection_limit import READ_BYTES, LimitedSite
from sentinel.web.rate_limit import MAX_BURST_REQUESTS
from sentinel.web.server import LINK_BURST, CannotListen, WebServer
from tests.channels.samples import HOSTILE
from tests.engine.worlds import Book, Grouped, Says, Scene, play, world

SIGNER = LinkSigner("https://sentinel.example.org", b"k" * 32, 3600.0)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Mail(Grouped):
    """A channel for people whose messages may hold links."""

    links = True


class Visit:
    """A firing alert, a page that is served, and somebody with a browser."""

    def __init__(self, scene: Scene, server: WebServer, mail: Mail, book: Book, disk: Says) -> None:
        self.scene, self.server, self.mail, self.book, self.disk = scene, server, mail, book, disk

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, str, Any]:
        url = f"http://127.0.0.1:{self.server.listen_port}{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, allow_redirects=False, **more) as answer,
        ):
            return answer.status, await answer.text(), answer.headers

    def path(self, word: str, n: Notification | None = None) -> str:
        url = (n or self.mail.got[0]).links[word]
        return url.removeprefix("https://sentinel.example.org")

    async def later(self, status: Status) -> None:
        self.disk.status = status
        await self.scene.engine.run_check("disk")
        await self.scene.engine.deliver_due()


Story = Callable[[Visit], Awaitable[None]]


def visit(story: Story, subject: str = "/scratch") -> Visit:
    disk, mail, book = Says(Status.CRITICAL, subject), Mail(), Book()
    seen: list[Visit] = []

    async def main(scene: Scene) -> None:
        scene.engine.set_link_signer(SIGNER)
        await scene.engine.run_check("disk")
        await scene.engine.deliver_due()
        server = WebServer(scene.engine, scene.clock, SIGNER, config="/x/s.yaml")
        await server.start_server("127.0.0.1", 0)
        try:
            seen.append(Visit(scene, server, mail, book, disk))
            await story(seen[0])
        finally:
            await server.stop_server()

    play(main, world({"disk": disk}, {"mail": mail, "book": book}))
    return seen[0]


def test_only_messages_to_people_hold_links() -> None:
    """They are keys: not in files, not in webhooks, not in the state."""

    async def story(v: Visit) -> None:
        assert set(v.mail.got[0].links) == {"Acknowledge", "Silence"}
        assert v.book.got[0].links == {}
        for row, _, _ in v.scene.store.read_deliveries(v.mail.got[0].alert):
            assert row.notification.links == {}

    visit(story)


def test_one_link_acknowledges_all_alerts_of_a_message_that_still_fire() -> None:
    """In two steps, like a link for one."""
    checks = {name: Says(Status.CRITICAL, name) for name in ("a", "b", "c")}
    mail, taken = Mail(), list[str]()

    async def main(scene: Scene) -> None:
        scene.engine.set_link_signer(SIGNER)
        await run_pass(scene.engine, scene.clock.now())
        server = WebServer(scene.engine, scene.clock, SIGNER)
        await server.start_server("127.0.0.1", 0)
        try:
            v = Visit(scene, server, mail, Book(), checks["a"])
            checks["c"].status = Status.OK
            await scene.engine.run_check("c")
            where = v.path(ACK_ALL)
            assert "Acknowledge these 2 alerts?" in (await v.ask("GET", where))[1]
            assert scene.store.read_orders().acks == {}
            assert (await v.ask("POST", where, data={"who": "Ann"}))[0] == 200
            taken.extend(scene.store.read_orders().acks)
        finally:
            await server.stop_server()

    play(main, world(checks, {"mail": mail}))
    firing = [n.alert for n in mail.got if n.subject in ("a", "b")]
    assert sorted(taken) == sorted(firing)
    assert len(firing) == 2


def test_an_end_holds_no_links() -> None:
    """There is nothing left to acknowledge."""

    async def story(v: Visit) -> None:
        await v.later(Status.OK)
        assert [n.links for n in v.mail.got if n.reason == "resolved"] == [{}]

    visit(story)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("word", ["Acknowledge", "Silence"])
def test_opening_a_link_changes_nothing(word: str, method: str) -> None:
    """Mail scanners and chats open every link there is."""

    async def story(v: Visit) -> None:
        status, page, _ = await v.ask(method, v.path(word))
        assert status == 200
        assert method == "HEAD" or '<form method="post">' in page
        orders = v.scene.store.read_orders()
        assert (orders.silences, orders.acks) == ((), {})

    visit(story)


def test_a_link_leaves_the_trace_that_every_way_leaves(caplog: pytest.LogCaptureFixture) -> None:
    """Who, how and what they wrote; the page of the link and the others see the note."""
    caplog.set_level("INFO", "sentinel")

    async def story(v: Visit) -> None:
        said = {"who": "Ann", "note": "disk swap"}
        assert (await v.ask("POST", v.path("Acknowledge"), data=said))[0] == 200
        said |= {"for": "4h"}
        assert (await v.ask("POST", v.path("Silence"), data=said))[0] == 200
        assert (
            "Ann (a link sent to mail): disk swap"
            in ((await v.ask("GET", v.path("Acknowledge")))[1])
        )
        await v.scene.engine.deliver_due()
        assert v.book.got[-1].note == "acknowledged by Ann (a link sent to mail): disk swap"

    visit(story)
    found = [r.fields for r in caplog.records if hasattr(r, "fields") and "how" in r.fields]
    assert [(f["event"], f["who"], f["how"], f["note"]) for f in found] == [
        ("ack", "Ann (a link sent to mail)", "link", "disk swap"),
        ("silence", "Ann (a link sent to mail)", "link", "disk swap"),
    ]


def test_pressing_the_button_acknowledges() -> None:
    """The others hear who has it; pressing twice is no harm."""

    async def story(v: Visit) -> None:
        for _ in range(2):
            status, page, _ = await v.ask("POST", v.path("Acknowledge"), data={"who": "Ann <b>"})
            assert status == 200
            assert "Acknowledged" in page
        await v.scene.engine.deliver_due()
        [ack] = v.scene.store.read_orders().acks.values()
        assert ack.who == "Ann <b> (a link sent to mail)"
        assert v.book.reasons == ["firing", "ack"]
        _, page, _ = await v.ask("GET", v.path("Acknowledge"))
        assert "Already acknowledged by Ann &lt;b&gt; (a link sent to mail)." in page

    visit(story)


def test_a_silence_is_for_the_time_chosen_and_one_a_link() -> None:
    """The second press changes the first; it is about this alert and no other."""

    async def story(v: Visit) -> None:
        for length in ("1h", "4h"):
            status, page, _ = await v.ask("POST", v.path("Silence"), data={"for": length})
            assert status == 200
        [silence] = v.scene.store.read_orders().silences
        assert silence.ends - silence.starts == 4 * 3600 * 10**6
        assert silence.who == "a link sent to mail"
        assert f"sentinel alerts unsilence {silence.id} -c /x/s.yaml" in page
        assert describe_setup_place() in page
        assert (silence.match.check, silence.match.subject) == ("disk", "/scratch")

    visit(story)


@pytest.mark.parametrize("length", ["", "100000h", "1", "-1h", "<script>"])
def test_a_silence_of_another_length_is_refused(length: str) -> None:
    """The page offers three; a link must not silence for a year."""

    async def story(v: Visit) -> None:
        status, _, _ = await v.ask("POST", v.path("Silence"), data={"for": length})
        assert status == 400
        assert v.scene.store.read_orders().silences == ()

    visit(story)


def test_a_link_does_only_its_own_deed() -> None:
    """An acknowledgement's form cannot be bent into a silence."""

    async def story(v: Visit) -> None:
        await v.ask("POST", v.path("Acknowledge"), data={"for": "12h", "deed": "silence"})
        assert v.scene.store.read_orders().silences == ()

    visit(story)


def test_a_wrong_or_expired_link_does_nothing() -> None:
    """It says so, with the same status whatever is wrong."""

    async def story(v: Visit) -> None:
        good = v.path("Acknowledge")
        forged = LinkSigner(SIGNER.url, b"q" * 32, 60.0).make_token(
            LinkClaim("ack", "x", "mail", 1 << 40)
        )
        for path in (good[:-4] + "AAA/", f"/a/{forged}", "/a/AAAA/", "/a/"):
            for method in ("GET", "POST"):
                assert (await v.ask(method, path))[0] == 404
        v.scene.clock.advance(3600)
        status, page, _ = await v.ask("POST", good)
        assert status == 404
        assert "expired" in page
        assert v.scene.store.read_orders().acks == {}

    visit(story)


def test_an_alert_that_is_over_needs_nothing() -> None:
    """Its link says so; the next episode has links of its own."""

    async def story(v: Visit) -> None:
        await v.later(Status.OK)
        for method in ("GET", "POST"):
            status, page, _ = await v.ask(method, v.path("Acknowledge"))
            assert status == 200
            assert "nothing to do" in page
        v.scene.clock.advance(1)
        await v.later(Status.CRITICAL)
        await v.ask("POST", v.path("Acknowledge"))
        assert v.scene.store.read_orders().acks == {}

    visit(story)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_names_are_inert(text: str) -> None:
    """What others have named is text, and the policy forbids the rest."""

    async def story(v: Visit) -> None:
        status, page, headers = await v.ask("GET", v.path("Acknowledge"))
        assert status == 200
        assert "<script" not in page
        assert not re.search(r"<(img|b)[ >]", page)
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "script" not in policy

    visit(story, subject=text)


def test_every_answer_keeps_the_address_to_itself() -> None:
    """No cache, no referrer, no frame, whatever the status."""

    async def story(v: Visit) -> None:
        for path in ("/healthz", v.path("Silence"), "/a/x", "/nothing", "/a/../healthz"):
            _, _, headers = await v.ask("GET", path)
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["Cache-Control"] == "no-store"
            assert headers["X-Frame-Options"] == "DENY"
            assert headers["X-Content-Type-Options"] == "nosniff"

    visit(story)


def test_the_style_is_the_one_that_the_policy_allows() -> None:
    """By its hash: a browser would show the page bare."""

    async def story(v: Visit) -> None:
        import base64
        import hashlib

        _, page, headers = await v.ask("GET", v.path("Acknowledge"))
        (style,) = re.findall("<style>(.*?)</style>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in headers["Content-Security-Policy"]

    visit(story)


def test_too_many_requests_are_told_to_wait() -> None:
    """After a burst that no mail scanner exceeds. `/healthz` answers all the same: a probe may have the
    address of whoever asks too much, of that page or of any."""

    async def story(v: Visit) -> None:
        url = f"http://127.0.0.1:{v.server.listen_port}"
        async with aiohttp.ClientSession() as session:

            async def ask(path: str) -> tuple[int, str]:
                async with session.get(url + path) as answer:
                    return answer.status, answer.headers.get("Retry-After", "")

            for _ in range(MAX_BURST_REQUESTS):
                assert await ask("/nothing") == (404, "")
                assert await ask("/healthz") == (200, "")
            assert await ask("/nothing") == (429, "1")
            assert await ask("/healthz") == (200, "")
        v.scene.clock.advance(1)
        assert (await v.ask("GET", "/nothing"))[0] == 404

    visit(story)


def test_requests_of_others_do_not_keep_a_link_from_working() -> None:
    """All of 127/8 is one client; what has no valid link is told to wait, whatever is in its path."""

    async def story(v: Visit) -> None:
        ack, silence = v.path("Acknowledge"), v.path("Silence")
        bent = ack[:-3] + ("AA/" if ack[-3:] != "AA/" else "BB/")
        late = SIGNER.make_token(LinkClaim("ack", v.mail.got[0].alert, "mail", 1))
        wrong = [bent, f"/a/{late}/", f"/a/{'a' * 5000}/", "/a/"]
        said = [(await v.ask("POST", wrong[n % 4]))[0] for n in range(MAX_BURST_REQUESTS)]
        assert set(said) == {404}
        assert [(await v.ask("POST", one))[0] for one in wrong] == [429] * 4
        assert (await v.ask("GET", silence))[0] == 200
        status, text, _ = await v.ask("POST", ack, data="who=ann", headers=FORM)
        assert (status, "Acknowledged" in text) == (200, True)

    visit(story)


def test_one_link_used_without_end_is_told_to_wait_alone() -> None:
    async def story(v: Visit) -> None:
        ack, silence = v.path("Acknowledge"), v.path("Silence")
        assert {(await v.ask("GET", ack))[0] for _ in range(LINK_BURST)} == {200}
        assert (await v.ask("POST", ack, data="who=ann", headers=FORM))[0] == 429
        assert (await v.ask("GET", silence))[0] == 200
        v.scene.clock.advance(2)
        assert (await v.ask("POST", ack, data="who=ann", headers=FORM))[0] == 200

    visit(story)


def test_a_huge_body_is_refused() -> None:
    """Four kilobytes are plenty for a name."""

    async def story(v: Visit) -> None:
        status, _, _ = await v.ask("POST", v.path("Acknowledge"), data=b"x" * 10_000, headers=FORM)
        assert status == 413
        assert v.scene.store.read_orders().acks == {}

    visit(story)


def test_a_compressed_body_is_not_unpacked() -> None:
    """Half a megabyte that unpacks to half a gigabyte stopped all checks for seconds, whoever sent it where:
    aiohttp unpacks a body also where nobody reads it."""

    async def story(v: Visit) -> None:
        told = []
        for coding, data in (("identity", b"who=Ann"), ("deflate", zlib.compress(b"who=Bob"))):
            headers, ack = {**FORM, "Content-Encoding": coding}, v.path("Acknowledge")
            assert (await v.ask("POST", ack, data=data, headers=headers))[0] == 200
            told += [ack.who for ack in v.scene.store.read_orders().acks.values()]
        assert told == ["Ann (a link sent to mail)", "a link sent to mail"]

    visit(story)


def test_one_connection_is_read_in_small_pieces() -> None:
    """Of 256 KiB at a time, in chunks of a byte, a hundred connections held up all checks for 20 s."""
    pieces = list[int]()

    async def measure(request: web.Request) -> web.Response:
        async for piece in request.content.iter_any():
            pieces.append(len(piece))
        return web.Response()

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/", measure)
        runner = web.AppRunner(app)
        await runner.setup()
        await LimitedSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        async with aiohttp.ClientSession() as session:
            await session.post(url, data=b"x" * 2**20)
        await runner.cleanup()

    asyncio.run(main())
    assert sum(pieces) == 2**20
    assert max(pieces) <= 8 * READ_BYTES


def test_a_body_in_a_charset_that_does_not_exist_is_no_trouble() -> None:
    """Nor one of several parts with a file in it."""

    async def story(v: Visit) -> None:
        odd = {"Content-Type": "application/x-www-form-urlencoded; charset=nope"}
        assert (await v.ask("POST", v.path("Acknowledge"), data=b"a=b", headers=odd))[0] == 200
        parts = aiohttp.FormData()
        parts.add_field("who", b"x", filename="who.txt")
        assert (await v.ask("POST", v.path("Acknowledge"), data=parts))[0] == 200

    visit(story)


@pytest.mark.parametrize("body", [b"\xff\xfe=%zz&&&", b"who=" + b"%00" * 50, b"", b"who=%F0%9F"])
def test_a_strange_body_is_no_trouble(body: bytes) -> None:
    """The token is the key; the name is only for the others."""

    async def story(v: Visit) -> None:
        assert (await v.ask("POST", v.path("Acknowledge"), data=body, headers=FORM))[0] == 200
        [ack] = v.scene.store.read_orders().acks.values()
        assert ack.who.isprintable()

    visit(story)


class Broken:
    """A desk whose state cannot be written."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.alerts, self.orders = engine.alerts, engine.orders

    async def order(self, order: Ack | Silence) -> None:
        raise StoreError("/var/lib/sentinel: disk full")


def test_a_state_that_cannot_be_written_is_told_without_details() -> None:
    """Nobody may believe that they have acknowledged."""

    async def story(v: Visit) -> None:
        server = WebServer(Broken(v.scene.engine), v.scene.clock, SIGNER)
        await server.start_server("127.0.0.1", 0)
        v.server, before = server, v.server
        status, page, _ = await v.ask("POST", v.path("Acknowledge"))
        v.server = before
        await server.stop_server()
        assert status == 503
        assert "disk full" not in page
        assert "Not done" in page

    visit(story)


def test_without_a_secret_there_are_no_links() -> None:
    """Only the sign of life."""

    async def story(v: Visit) -> None:
        server = WebServer(v.scene.engine, v.scene.clock, None)
        await server.start_server("127.0.0.1", 0)
        v.server, before = server, v.server
        assert (await v.ask("GET", "/healthz"))[:2] == (200, "ok\n")
        assert (await v.ask("POST", v.path("Acknowledge")))[0] == 404
        v.server = before
        await server.stop_server()

    visit(story)


def test_a_port_that_is_taken_is_named() -> None:
    """In one line."""

    async def story(v: Visit) -> None:
        other = WebServer(v.scene.engine, v.scene.clock, SIGNER)
        with pytest.raises(
            CannotListen, match=rf"cannot listen on 127.0.0.1:{v.server.listen_port}: "
        ):
            await other.start_server("127.0.0.1", v.server.listen_port)
        await asyncio.sleep(0)

    visit(story)


@pytest.mark.parametrize("turns", range(6))
def test_a_connection_that_comes_while_it_stops_ends_with_it(turns: int) -> None:
    """However far it has come: waiting to be accepted, accepted a moment ago, waiting to ask."""

    async def story(v: Visit) -> None:
        other = WebServer(v.scene.engine, v.scene.clock, SIGNER)
        await other.start_server("127.0.0.1", 0)
        with socket.create_connection(("127.0.0.1", other.listen_port)) as guest:
            for _ in range(turns):
                await asyncio.sleep(0)
            await other.stop_server()
            await asyncio.sleep(0.05)
            guest.settimeout(1)
            with suppress(ConnectionResetError):
                assert guest.recv(1) == b""

    visit(story)
