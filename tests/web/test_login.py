"""A login that is kept, and answers to many alerts at once; over a real connection."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from sentinel.web.auth import Gate
from tests.web.browser import Visitor, browser, own_network
from tests.web.scenery import alert
from tests.web.stage import TOKEN, Stage, stage
from tests.web.test_site import ask

ACK = "/alerts/00000001/ack"
ORIGIN = "http://login1:9650"
OURS = {"Host": "login1:9650", "Origin": ORIGIN}
GATE = Gate(TOKEN, "https://sentinel.example.org", hosts=("login1",))


@pytest.fixture
def shown() -> Iterator[Stage]:
    with stage([alert(n, f"gpu{n:05}") for n in range(1, 6)], gate=GATE) as made:
        yield made


def log_in(s: Stage, headers: dict[str, str] = OURS, **form: str) -> tuple[int, SimpleCookie, Any]:
    data = {"token": TOKEN, "who": "Ann", "to": "/alerts?severity=critical", **form}
    status, _, told = ask(s, "POST", "/login", headers=headers, data=data)
    return status, SimpleCookie(told.get("Set-Cookie", "")), told


def cookie(s: Stage) -> dict[str, str]:
    return {"Cookie": f"sentinel_session={log_in(s)[1]['sentinel_session'].value}"}


def test_the_token_is_given_once(shown: Stage) -> None:
    """Then the browser answers without it, under the name that was given, and may log out; the token
    is in no address, no cookie and no page."""
    status, set_, told = log_in(shown)
    assert (status, told["Location"]) == (303, "/alerts?severity=critical")
    mine = set_["sentinel_session"]
    assert (mine["httponly"], mine["samesite"], mine["path"]) == (True, "Lax", "/")
    assert (mine["secure"], mine["max-age"]) == ("", "43200")
    assert TOKEN not in str(told)
    had = {"Cookie": f"sentinel_session={mine.value}"}
    page = ask(shown, "GET", "/alerts/00000001", headers=had)[1]
    assert "Ann" in page
    assert 'type="password"' not in page
    assert ask(shown, "POST", ACK, headers={**OURS, **had}, data={"note": "mine"})[0] == 303
    assert [(a.who, a.note) for a in shown.orders()[0]] == [("Ann (the status page)", "mine")]
    status, _, told = ask(shown, "POST", "/logout", headers={**OURS, **had})
    assert 'sentinel_session=""' in told["Set-Cookie"]
    second = "/alerts/00000002/ack"
    assert ask(shown, "POST", second, headers={**OURS, **had}, data={})[0] == 403
    assert 'type="password"' in ask(shown, "GET", "/alerts/00000001", headers=had)[1]


@pytest.mark.parametrize(
    "headers", [{"X-Forwarded-Proto": "https"}, {"Origin": "https://sentinel.example.org"}]
)
def test_where_the_browser_came_by_tls_the_cookie_never_goes_without(
    shown: Stage, headers: dict[str, str]
) -> None:
    """As a proxy says, or the browser's own page."""
    assert log_in(shown, {**OURS, **headers})[1]["sentinel_session"]["secure"] is True


@pytest.mark.parametrize("token", ["", "wrong-token-of-nobody", TOKEN + "x"])
def test_no_session_without_the_token(shown: Stage, token: str) -> None:
    """Also not for who has one, or no cookie would ever end."""
    for had in ({}, cookie(shown)):
        status, set_, _ = log_in(shown, {**OURS, **had}, token=token)
        assert (status, [*set_]) == (403, [])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "http://login1:8888"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": ORIGIN},
    ],
)
def test_a_session_counts_only_for_our_own_pages(shown: Stage, headers: dict[str, str]) -> None:
    """A neighbour on another port is the same site to a browser, so its requests bring the cookie."""
    had = {"Host": "login1:9650", **cookie(shown), **headers}
    assert ask(shown, "POST", ACK, headers=had, data={})[0] == 403
    assert ask(shown, "POST", "/alerts", headers=had, data={"alert": "00000001"})[0] == 403
    assert shown.orders() == ([], [])


def test_a_session_ends_and_a_new_token_ends_all() -> None:
    """Nor is one believed that was made or changed by somebody else."""
    value = GATE.make_session_cookie("Ann", 1000.0)
    had = {"Cookie": f"other=1; sentinel_session=x; sentinel_session={value}"}
    session = GATE.find_session(had, 1000.0 + 43_199)
    assert session is not None
    assert session.name == "Ann"
    assert GATE.find_session(had, 1000.0 + 43_200) is None
    assert Gate(TOKEN + "2").find_session(had, 1000.0) is None
    assert Gate("").find_session(had, 1000.0) is None
    for n in range(0, len(value), 7):
        bent = value[:n] + ("A" if value[n] != "A" else "B") + value[n + 1 :]
        assert GATE.find_session({"Cookie": f"sentinel_session={bent}"}, 1000.0) is None


@pytest.mark.parametrize(
    "to",
    ["//evil.example", "/\\evil.example", "https://evil.example", "", "/\r\nX: y", "/login", "/ü"],
)
def test_a_login_leads_to_no_other_site(shown: Stage, to: str) -> None:
    """Nor around in a circle."""
    assert log_in(shown, to=to)[2]["Location"] == "/"


@pytest.mark.parametrize(
    ("query", "referer", "to"),
    [
        ("?to=/nodes?q=1", "", "/nodes?q=1"),
        ("?to=/nodes", "http://login1:9650/gpus", "/nodes"),
        ("", "http://login1:9650/alerts?check=job", "/alerts?check=job"),
        ("", "http://login1:9650/gpus", "/gpus"),
        ("", "http://login1:9650/login", "/"),
        ("", "http://[bent", "/"),
        ("?to=//evil.example", "", "/"),
        ("", "", "/"),
    ],
)
def test_after_the_login_comes_the_page_from_which_one_came(
    shown: Stage, query: str, referer: str, to: str
) -> None:
    """As the address says, or the browser."""
    headers = {"Host": "login1:9650", **({"Referer": referer} if referer else {})}
    status, page, _ = ask(shown, "GET", f"/login{query}", headers=headers)
    assert status == 200
    assert re.findall('name="to" value="([^"]*)"', page) == [to]


def test_a_refused_login_says_why_and_keeps_the_form(shown: Stage) -> None:
    """With the page to which one wanted."""
    data = {"token": "wrong", "who": "Ann", "to": "/gpus"}
    status, page, told = ask(shown, "POST", "/login?to=/gpus", headers=OURS, data=data)
    assert (status, "Set-Cookie" in told) == (403, False)
    assert "Not done: the token is not the right one." in page
    assert 'name="to" value="/gpus"' in page


def test_the_session_bears_the_proxys_name() -> None:
    """Whatever is typed; without a proxy's name the typed one counts."""
    gate = Gate(TOKEN, "https://sentinel.example.org", "X-User", hosts=("login1",))
    with stage([alert(1, "gpu00001")], gate=gate) as s:
        for headers, name in (({"X-User": "Bob"}, "Bob"), ({}, "Ann")):
            value = log_in(s, {**OURS, **headers})[1]["sentinel_session"].value
            session = gate.find_session({"Cookie": f"sentinel_session={value}"}, 0.0)
            assert session is not None
            assert session.name == name


def test_a_logout_is_no_other_sites_to_make(shown: Stage) -> None:
    """It would log people out while they answer; ours takes the cookie away, as it was set."""
    had = cookie(shown)
    evil = {"Host": "login1:9650", "Origin": "https://evil.example", **had}
    status, _, told = ask(shown, "POST", "/logout", headers=evil)
    assert (status, told["Location"], "Set-Cookie" in told) == (303, "/", False)
    status, _, told = ask(shown, "POST", "/logout", headers={**OURS, **had})
    assert (status, told["Location"]) == (303, "/")
    gone = SimpleCookie(told["Set-Cookie"])["sentinel_session"]
    assert (gone.value, gone["path"], gone["httponly"]) == ("", "/", True)
    assert (gone["samesite"], gone["max-age"]) == ("Lax", "0")


def test_the_same_answer_to_many_is_as_many_records(
    shown: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """By the one way in which orders are made; what cannot be done is said, and the rest is done."""
    caplog.set_level("INFO", "sentinel")
    told: Any = [("alert", "00000001 00000002"), ("alert", "00000003"), ("alert", "00000002")]
    said = [*told, ("token", TOKEN), ("who", "Ann"), ("note", "power"), ("deed", "ack")]
    status, _, headers = ask(shown, "POST", "/alerts?check=drained", data=said)
    assert (status, headers["Location"]) == (303, "/alerts?check=drained")
    acks = {a.alert: (a.who, a.how, a.note) for a in shown.orders()[0]}
    ann = ("Ann (the status page)", "page", "power")
    assert acks == {f"0000000{n}": ann for n in (1, 2, 3)}
    found = [r.fields for r in caplog.records if hasattr(r, "fields") and "how" in r.fields]
    assert [(f["event"], f["how"]) for f in found] == [("ack", "page")] * 3
    said = [*told, ("alert", "ffffffff"), ("token", TOKEN), ("deed", "silence"), ("for", "4h")]
    status, page, _ = ask(shown, "POST", "/alerts", data=said)
    assert status == 409
    assert "Done for 3 of 4; for the others not: no such alert is there now" in page
    assert sorted(s.match.subject for s in shown.orders()[1]) == [f"gpu0000{n}" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("form", "status", "why"),
    [
        ({"deed": "ack", "token": TOKEN}, 400, "no alert was chosen"),
        ({"alert": "00000001", "deed": "ack"}, 403, "the token is not the right one"),
        ({"alert": "00000001", "deed": "silence", "for": "x", "token": TOKEN}, 400, "Not done"),
        ({"alert": "00000001", "deed": "silence", "for": "91d", "token": TOKEN}, 409, "90d"),
        ({"alert": "x" * 300_000, "deed": "ack", "token": TOKEN}, 413, "too much"),
    ],
)
def test_an_answer_that_is_not_right_does_nothing(
    shown: Stage, form: dict[str, str], status: int, why: str
) -> None:
    """And says why, on the page."""
    got, page, _ = ask(shown, "POST", "/alerts", data=form)
    assert (got, why in page) == (status, True)
    assert shown.orders() == ([], [])


def test_three_hundred_alerts_are_answered_at_once() -> None:
    """More than a form of one alert may have; a row stands for many."""
    with stage([alert(n, f"gpu{n:05}") for n in range(300)]) as s:
        names = " ".join(f"{n:08x}" for n in range(300))
        data = {"alert": names, "deed": "ack", "token": TOKEN}
        assert ask(s, "POST", "/alerts", data=data)[0] == 303
        assert len(s.orders()[0]) == 300


@contextmanager
def other_site(page: str) -> Iterator[str]:
    """To a browser `localhost` is another site than `127.0.0.1`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


def test_a_link_in_a_mail_brings_the_login_and_another_sites_form_does_nothing() -> None:
    """The first answer knows who looks, without scripts; a form of that site acknowledges nothing and
    ends no session."""
    with own_network(), browser() as chromium, stage([alert(1, "gpu00001")]) as s:
        forms = "".join(
            f'<form id="{n}" method="post" action="{s.url}{path}"><input name="deed" value="ack">'
            '<input name="alert" value="00000001"><button>go</button></form>'
            for n, path in (("one", ACK), ("many", "/alerts"), ("end", "/logout"))
        )
        link = f'<a href="{s.url}/alerts/00000001">the mail</a>'
        with other_site(link + forms) as mail:
            page = Visitor(chromium, java_script_enabled=False).page
            page.goto(f"{s.url}/login")
            page.fill("#who", "Ann")
            page.fill("#token", TOKEN)
            page.locator("main button").click()
            for form in ("one", "many", "end"):
                page.goto(mail)
                with page.expect_navigation() as answer:
                    page.click(f"#{form} button")
                if form != "end":
                    assert answer.value.status == 403
                    assert page.get_by_text("the request comes from another site").is_visible()
            page.goto(mail)
            page.get_by_text("the mail").click()
            page.wait_for_url("**/alerts/00000001")
            page.get_by_text("· Ann").wait_for()
            assert page.locator("#token").count() == 0
            assert s.orders() == ([], [])


@pytest.mark.parametrize("scripts", [True, False])
def test_people_log_in_tick_and_answer(scripts: bool) -> None:
    """With a keyboard and a note; with and without JavaScript; a renewed page keeps what is ticked."""
    many = [alert(n, f"gpu{n:05}") for n in range(1, 4)]
    with own_network(), browser() as chromium, stage(many) as s:
        v = Visitor(chromium, java_script_enabled=scripts)
        v.page.goto(f"{s.url}/alerts?check=drained")
        v.page.get_by_role("link", name="Log in").click()
        v.page.fill("#who", "Ann")
        v.page.fill("#token", TOKEN)
        v.page.get_by_role("button", name="Log in").click()
        v.page.wait_for_url("**/alerts?check=drained")
        v.page.get_by_label("drained gpu00001").check()
        v.page.get_by_label("drained gpu00003").check()
        if scripts:
            s.do(s.engine.run_check("late"))
            v.page.wait_for_timeout(1500)
            assert v.axe() == []
        v.page.get_by_text("Answer those that are ticked").click()
        v.page.fill("#note", "power")
        v.page.get_by_role("button", name="Acknowledge").click()
        v.page.get_by_text("Ann (the status page) has it").first.wait_for()
        assert sorted(a.alert for a in s.orders()[0]) == ["00000001", "00000003"]
        v.page.get_by_role("button", name="Log out").click()
        v.page.get_by_role("link", name="Log in").wait_for()
        assert v.faults == []
