"""Who is let in: the gate itself, without a browser."""

import base64
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest

from sentinel.alerting.orders import AlertPending, NoSuchAlert, WrongOrder
from sentinel.status.privacy import Viewer
from sentinel.web.auth import (
    ANONYMOUS_VISITOR,
    MAX_NAME_CHARS,
    SESSION_COOKIE,
    SESSION_DURATION_S,
    Gate,
    RequestRefused,
    is_https,
    make_order_refusal,
)

TOKEN, NOW = "correct horse battery staple", 1_000_000.0
OURS = {"Origin": "https://watch.example", "Host": "watch.example"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def gate(**more: object) -> Gate:
    return Gate(**{"token": TOKEN, "url": "https://watch.example", "over": {}, **more})  # type: ignore[arg-type]


def holding(cookie: str, **more: str) -> dict[str, str]:
    return {"Cookie": f"{SESSION_COOKIE}={cookie}", **OURS, **more}


def is_admitted(to: Gate, headers: dict[str, str], given: str = "", now: float = NOW) -> bool:
    try:
        to.authorize_request(headers, given, now)
    except RequestRefused:
        return False
    return True


def test_a_session_lasts_a_shift() -> None:
    """To the second, and not for another gate's token."""
    assert (SESSION_DURATION_S, MAX_NAME_CHARS) == (12 * 3600, 60)
    here = gate()
    cookie = here.make_session_cookie("  ann  ", NOW)
    for now, lasts in (
        (NOW, True),
        (NOW + SESSION_DURATION_S - 1, True),
        (NOW + SESSION_DURATION_S, False),
    ):
        session = here.find_session(holding(cookie), now)
        assert (session is not None) is lasts
        assert is_admitted(here, holding(cookie), now=now) is lasts
    found = here.find_session(holding(cookie), NOW)
    assert found is not None
    assert (found.name, found.ends, len(found.mark)) == ("ann", NOW + SESSION_DURATION_S, 16)
    assert gate(token="another").find_session(holding(cookie), NOW) is None
    assert gate(token="").find_session(holding(cookie), NOW) is None
    brief = gate(lasts=60.0)
    assert brief.find_session(holding(brief.make_session_cookie("x", NOW)), NOW + 60) is None
    for length in range(1, 9):  # base64 has other ends for each
        short = here.find_session(holding(here.make_session_cookie("a" * length, NOW)), NOW)
        assert short is not None
    long_name = here.find_session(holding(here.make_session_cookie("a" * 100, NOW)), NOW)
    assert long_name is not None
    assert long_name.name == "a" * MAX_NAME_CHARS


def test_a_logout_ends_that_session_and_revives_none() -> None:
    """Who logged out before stays out until the session would have ended by itself; then it is
    forgotten."""
    here = gate()
    first, second, third = (
        here.make_session_cookie(name, NOW + n) for n, name in enumerate(("a", "b", "c"))
    )
    here.end_session(holding(first), NOW + 10)
    assert here.find_session(holding(first), NOW + 11) is None
    assert here.find_session(holding(second), NOW + 11) is not None
    here.end_session(holding(second), NOW + 20)
    for cookie in (first, second):
        assert here.find_session(holding(cookie), NOW + 21) is None
        assert not is_admitted(here, holding(cookie), now=NOW + 21)
    assert is_admitted(here, holding(third), now=NOW + 21)
    here.end_session({}, NOW + 30)  # nobody's
    assert here.find_session(holding(first), NOW + 31) is None
    assert sorted(here.over.values()) == [
        int(NOW + SESSION_DURATION_S),
        int(NOW + 1 + SESSION_DURATION_S),
    ]
    here.end_session(
        {}, NOW + SESSION_DURATION_S
    )  # the moment at which the first has ended by itself
    assert list(here.over.values()) == [int(NOW + 1 + SESSION_DURATION_S)]
    assert here.find_session(holding(second), NOW + SESSION_DURATION_S) is None


@pytest.mark.parametrize("part", [0, 20, 40, -1])
def test_a_forged_cookie_is_none(part: int) -> None:
    """One bit of the signature or of what is signed; no text that a browser may hold is an error."""
    here = gate()
    cookie = here.make_session_cookie("ann", NOW)
    raw = bytearray(urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4)))
    raw[part] ^= 1
    forged = urlsafe_b64encode(bytes(raw)).decode().rstrip("=")
    assert here.find_session(holding(forged), NOW) is None
    for odd in ("", "x", "a" * 999, "a" * 5000, "é", "=", cookie[:10], cookie * 20):
        assert here.find_session(holding(odd), NOW) is None
    for body in (b"[]", b"{}", b'["ann",9999999,"m",1]', b""):
        signed = urlsafe_b64encode(here._sign_session(body) + body).decode()
        found = here.find_session(holding(signed), NOW)
        assert found is None or found.mark == "m"
    assert here.find_session({"Cookie": f"other={cookie}"}, NOW) is None
    many = f"other=1; {SESSION_COOKIE}={forged}; {SESSION_COOKIE}={cookie}; more=2"
    assert here.find_session({"Cookie": many}, NOW) is not None


def test_without_a_token_nobody_answers() -> None:
    """The page only shows; a session or an empty token changes nothing."""
    shut = gate(token="")
    for headers in ({}, BEARER, {"Authorization": "Bearer "}, holding("x")):
        for given in ("", TOKEN):
            with pytest.raises(RequestRefused) as error:
                shut.authorize_request(headers, given, NOW)
            assert error.value.status == 403
    assert shut.identify_visitor({"Authorization": "Bearer "}, NOW).open is False
    assert shut.identify_visitor({}, NOW).answers is False


@pytest.mark.parametrize(
    ("headers", "given", "status"),
    [
        ({}, TOKEN, 0),
        (BEARER, "", 0),
        ({"Authorization": f"bearer  {TOKEN} "}, "", 0),
        ({}, "", 401),
        ({}, "wrong", 401),
        (BEARER, "wrong", 401),
        ({"Authorization": f"Basic {TOKEN}"}, "", 401),
        ({"Authorization": TOKEN}, "", 401),
        ({**OURS}, TOKEN, 0),
        ({"Origin": "https://evil.example", "Host": "watch.example"}, TOKEN, 403),
        ({"Origin": "https://watch.example", "Host": "other"}, TOKEN, 0),  # `url` knows it
        ({"Origin": "http://[", "Host": "x"}, TOKEN, 403),
        ({"Origin": "null", "Host": "x"}, TOKEN, 403),
        ({"Sec-Fetch-Site": "same-origin"}, TOKEN, 0),
        ({"Sec-Fetch-Site": "none"}, TOKEN, 0),
        ({"Sec-Fetch-Site": "same-site"}, TOKEN, 403),
        ({"Sec-Fetch-Site": "cross-site", **OURS}, TOKEN, 403),
    ],
)
def test_who_may_answer(headers: dict[str, str], given: str, status: int) -> None:
    """Whoever brings the token, unless a browser says that another site makes the request."""
    if not status:
        assert gate().authorize_request(headers, given, NOW) == Viewer()
        return
    with pytest.raises(RequestRefused) as error:
        gate().authorize_request(headers, given, NOW)
    assert error.value.status == status


def test_a_session_answers_only_from_the_page_itself() -> None:
    """A browser has to say so: a request without Origin and Sec-Fetch-Site is a program's."""
    here = gate()
    cookie = here.make_session_cookie("ann", NOW)
    alone = {"Cookie": f"{SESSION_COOKIE}={cookie}"}
    assert here.authorize_request({**alone, **OURS}, "", NOW) == Viewer()
    assert is_admitted(here, {**alone, "Sec-Fetch-Site": "same-origin"})
    assert not is_admitted(here, alone)
    assert not is_admitted(here, {**alone, "Sec-Fetch-Site": "none"})
    assert not is_admitted(here, {**alone, "Origin": "https://evil.example"})
    assert not is_admitted(here, {**alone, **OURS}, given="wrong")


def test_a_proxys_name_counts_with_the_token_that_it_adds() -> None:
    """Of whom the header tells alone nobody is believed; a restricted viewer stays restricted when
    he answers with the proxy's token."""
    here = gate(user_header="X-User", administrators=frozenset({"root"}))
    ann, root = {"X-User": " ann "}, {"X-User": "root"}
    assert here.identify_visitor({**ann, **BEARER}, NOW).eyes == Viewer("ann", False)
    assert here.identify_visitor({**root, **BEARER}, NOW).eyes == Viewer("root", True)
    assert here.identify_visitor(root, NOW).eyes == Viewer("", False)
    assert here.identify_visitor({}, NOW).eyes == Viewer("", False)
    assert here.authorize_request({**ann, **BEARER}, "", NOW) == Viewer("ann", False)
    assert here.authorize_request(ann, TOKEN, NOW) == Viewer()
    viewer = here.identify_visitor({**ann, **BEARER}, NOW)
    assert (viewer.name, viewer.open, viewer.answers, viewer.session) == ("ann", True, True, False)
    assert here.identify_visitor(ann, NOW).open is False
    cookie = here.make_session_cookie("bob", NOW)
    kept = here.identify_visitor(holding(cookie), NOW)
    assert (kept.name, kept.open, kept.session, kept.eyes) == ("bob", True, True, Viewer())
    assert here.identify_visitor(holding(cookie, **ann), NOW).name == "ann"
    assert gate().identify_visitor(ann, NOW) == gate().identify_visitor({}, NOW)
    assert gate().identify_visitor({}, NOW).eyes == Viewer()
    assert gate().get_proxy_user({"": "root"}) == ""


def test_the_name_that_is_written_down() -> None:
    """The session's or the proxy's before what somebody types, and how it came."""
    here = gate(user_header="X-User")
    assert here.name_requester({"X-User": "ann"}, "eve", "page", NOW) == "ann (page)"
    assert here.name_requester({}, f" {'e' * 99}", "page", NOW) == f"{'e' * MAX_NAME_CHARS} (page)"
    assert here.name_requester({}, " ", "page", NOW) == "page"
    assert here.get_proxy_user({"X-User": f" {'u' * 99}"}) == "u" * MAX_NAME_CHARS
    assert gate().get_proxy_user({"X-User": "ann"}) == ""


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("watch.example", True),
        ("WATCH.example.", True),
        ("watch.example:8080", True),
        ("localhost:8080", True),
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("10.0.0.7", True),
        ("alias", True),
        ("other.example", True),
        ("", True),  # HTTP/1.0: no browser
        ("evil.example", False),
        ("watch.example.evil.example", False),
        ("[", False),
    ],
)
def test_a_strangers_name_for_this_host_is_refused(host: str, is_ours: bool) -> None:
    """DNS rebinding: to the browser the page would be the stranger's own."""
    here = gate(hosts=("alias", "https://other.example/x"))
    assert here.is_unknown_host({"Host": host}) is (not is_ours)
    assert not here.is_unknown_host({})


def test_errors_have_their_status() -> None:
    """404 for what is not there, 409 for what is too early, else 400."""
    errors = (NoSuchAlert("x"), AlertPending("x"), WrongOrder("x"))
    assert [make_order_refusal(error).status for error in errors] == [404, 409, 400]
    assert str(make_order_refusal(NoSuchAlert("no such alert"))) == "no such alert"


def test_whether_the_browser_came_by_tls() -> None:
    """As the proxy in front says, else the page's own address."""
    assert is_https({"X-Forwarded-Proto": "HTTPS", "Origin": "http://x"})
    assert is_https({"Origin": "https://x"})
    assert not is_https({"X-Forwarded-Proto": "http", "Origin": "https://x"})
    assert not is_https({})


def test_nobody_has_nothing() -> None:
    """What a page takes for whoever is not known."""
    assert (
        ANONYMOUS_VISITOR.name,
        ANONYMOUS_VISITOR.open,
        ANONYMOUS_VISITOR.answers,
        ANONYMOUS_VISITOR.session,
    ) == ("", False, False, False)


def test_the_gate_shows_no_secret() -> None:
    """Not in a traceback."""
    assert TOKEN not in repr(gate())


@pytest.mark.parametrize(
    ("given", "status"),
    [("any:{}", 0), (":{}", 0), ("{}", 401), ("any:{}x", 401), ("any:", 401), ("any:{}:x", 401)],
)
def test_a_program_may_give_the_token_as_a_password(given: str, status: int) -> None:
    """Of whatever user (RFC 7617): all behind the first colon counts."""
    words = base64.b64encode(given.format("a-token-of-16-letters").encode()).decode()
    gate = Gate("a-token-of-16-letters")
    for kind in ("Basic", "basic"):
        headers = {"Authorization": f"{kind} {words}"}
        if status:
            with pytest.raises(RequestRefused, match="not the right one"):
                gate.authorize_request(headers, "", 0.0)
        else:
            gate.authorize_request(headers, "", 0.0)
    with pytest.raises(RequestRefused):
        gate.authorize_request({"Authorization": f"Digest {words}"}, "", 0.0)
    with pytest.raises(RequestRefused):
        gate.authorize_request({"Authorization": "Basic \xff"}, "", 0.0)
