"""Who may look, and who may acknowledge and silence. Pure.

The token comes with the request itself (a field of the form, `Authorization: Bearer`, or `Basic` of
a program), or it was given before and the browser has a session for it: a cookie that no script can
read. A link on another site carries the cookie (SameSite=Lax), so a page that is opened from a mail
knows its user. No other request of another site carries it, and one that a browser marks so is refused:
https://cheatsheetseries.owasp.org/cheatsheets/Cross-Site_Request_Forgery_Prevention_Cheat_Sheet.html

A session is signed with a key made of the token: it outlives a restart, and a new token ends all.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from sentinel.alerting.orders import AlertPending, NoSuchAlert, WrongOrder
from sentinel.core.text import visible
from sentinel.status.privacy import Viewer

MAX_NAME_CHARS = 60
SESSION_COOKIE = "sentinel_session"
SESSION_DURATION_S = 12 * 3600.0
"""Seconds of a session: a shift."""


class RequestRefused(Exception):
    """The request is refused. The text is for the person; `status` is the HTTP status."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def make_order_refusal(error: WrongOrder) -> RequestRefused:
    """The refusal of an order that makes no sense, with its HTTP status."""
    return RequestRefused(str(error), {NoSuchAlert: 404, AlertPending: 409}.get(type(error), 400))


class LoginSession(Struct, frozen=True, array_like=True):
    """A login that the browser keeps: the name that the person gave, and its end in seconds UTC.
    `mark` makes each session unique."""

    name: str
    ends: int
    mark: str


class Visitor(Struct, frozen=True):
    """Who looks at a page. `name`: by the session or the proxy. `open`: no token has to be typed,
    since there is a session or the proxy adds the token. `answers`: a token is configured, so
    alerts can be answered at all."""

    name: str = ""
    open: bool = False
    answers: bool = False
    eyes: Viewer = Viewer()
    session: bool = False


ANONYMOUS_VISITOR = Visitor()


class Gate(Struct, frozen=True):
    """`token` empty: nobody may. `url` and `hosts`: how people reach the page; `user_header`
    and `administrators`: see settings; `lasts`: seconds of a session; `over`: those that were ended, with their ends."""

    token: str = ""
    url: str = ""
    user_header: str = ""
    hosts: tuple[str, ...] = ()
    administrators: frozenset[str] = frozenset()
    lasts: float = SESSION_DURATION_S
    over: dict[str, int] = {}

    def __repr__(self) -> str:
        return "Gate(…)"

    def authorize_request(self, headers: Mapping[str, str], given: str, now: float) -> Viewer:
        """The viewer whose alerts the request may answer.

        Raises RequestRefused unless the request has the token, or has a session and the browser
        says that our own page made the request. `now`: seconds UTC."""
        if not self.token:
            raise RequestRefused("this page is read-only: set web.token to answer here", 403)
        if self.is_cross_site(headers):
            raise RequestRefused("the request comes from another site", 403)
        own = "Origin" in headers or headers.get("Sec-Fetch-Site") == "same-origin"
        if not given and own and self.find_session(headers, now):
            return Viewer()
        authorization = headers.get("Authorization", "")
        if not self._is_right_token(
            given or _parse_bearer_token(authorization) or _parse_basic_password(authorization)
        ):
            raise RequestRefused("the token is not the right one", 401)
        return Viewer() if given else self.identify_visitor(headers, now).eyes

    def make_session_cookie(self, name: str, now: float) -> str:
        """The value of the cookie for a new session of a person who was admitted."""
        session = LoginSession(
            visible(name.strip()[:MAX_NAME_CHARS]), int(now + self.lasts), secrets.token_hex(8)
        )
        body = encode(session)
        return urlsafe_b64encode(self._sign_session(body) + body).decode().rstrip("=")

    def find_session(self, headers: Mapping[str, str], now: float) -> LoginSession | None:
        """The session of the browser; None if there is none or it is over."""
        for raw in _read_session_cookies(headers.get("Cookie", "")) if self.token else ():
            mac, body = raw[:32], raw[32:]
            if hmac.compare_digest(mac, self._sign_session(body)):
                try:
                    session = decode(body, type=LoginSession)
                except DecodeError:
                    continue
                if now < session.ends and session.mark not in self.over:
                    return session
        return None

    def end_session(self, headers: Mapping[str, str], now: float) -> None:
        """End the browser's session, so that its cookie is no longer accepted anywhere."""
        for mark in [mark for mark, ends in self.over.items() if ends <= now]:
            del self.over[mark]
        if (session := self.find_session(headers, now)) is not None:
            self.over[session.mark] = session.ends

    def identify_visitor(self, headers: Mapping[str, str], now: float) -> Visitor:
        """The person who opens a page, for pages that depend on it."""
        session, user = self.find_session(headers, now), self.get_proxy_user(headers)
        authorization = headers.get("Authorization", "")
        proxied = bool(self.token) and self._is_right_token(_parse_bearer_token(authorization))
        holds = bool(self.token) and self._is_right_token(_parse_basic_password(authorization))
        if session or holds or not self.user_header:
            eyes = Viewer()
        else:
            # A name is trusted if the proxy's token comes with it. The proxy adds the token to
            # every request. So a request without a name is from somebody who did not log in.
            known = proxied and user in self.administrators
            eyes = Viewer(user if proxied else "", known)
        return Visitor(
            name=user or (session.name if session else ""),
            open=session is not None or proxied or holds,
            answers=bool(self.token),
            eyes=eyes,
            session=session is not None,
        )

    def _is_right_token(self, token: str) -> bool:
        return hmac.compare_digest(_digest_secret(token), _digest_secret(self.token))

    def _sign_session(self, body: bytes) -> bytes:
        return hmac.digest(_digest_secret(self.token), b"sentinel session 1\0" + body, "sha256")

    def is_cross_site(self, headers: Mapping[str, str]) -> bool:
        """Whether a browser says that another site made this request."""
        site = headers.get("Sec-Fetch-Site", "")
        if site:
            return site not in ("same-origin", "none")
        origin = headers.get("Origin", "")
        if not origin:
            return False  # this is no browser: browsers send it with each POST
        known = {headers.get("Host", "").lower(), urlsplit(self.url).netloc.lower()} - {""}
        return _parse_netloc(origin) not in known

    def is_unknown_host(self, headers: Mapping[str, str]) -> bool:
        """Whether the request was sent to a host name that is not ours.

        A browser takes a foreign name that suddenly points to this host (DNS rebinding) for the
        foreigner's own site, so such requests are refused. An IP address is never unknown."""
        host = headers.get("Host", "")
        name = _parse_hostname(f"//{host}")
        ours = (self.url, *(h if "//" in h else f"//{h}" for h in self.hosts), "//localhost")
        known = {_parse_hostname(one) for one in ours} - {""}
        return bool(host) and name not in known and not _is_ip_address(name)

    def get_proxy_user(self, headers: Mapping[str, str]) -> str:
        """The user who is logged in by the proxy's header. Empty if the header came twice, since
        one of them is not the proxy's."""
        name = self.user_header.lower()
        found = [value for key, value in headers.items() if name and key.lower() == name]
        return visible(found[0].strip()[:MAX_NAME_CHARS]) if len(found) == 1 else ""

    def name_requester(
        self, headers: Mapping[str, str], name: str, through: str, now: float
    ) -> str:
        """The name of the person to record, with the way by which the request came."""
        said = self.identify_visitor(headers, now).name or visible(name.strip()[:MAX_NAME_CHARS])
        return f"{said} ({through})" if said else through


def _parse_netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _parse_hostname(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_ip_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_https(headers: Mapping[str, str]) -> bool:
    """Whether the browser used TLS, which a proxy in front may end. Then a cookie may be restricted
    to TLS."""
    said = headers.get("X-Forwarded-Proto", "") or headers.get("Origin", "").partition("://")[0]
    return said.lower() == "https"


def _read_session_cookies(text: str) -> Iterator[bytes]:
    """Decoded cookies of our name. There may be several: a server on another port of this host may
    have set one too."""
    for part in text.split(";"):
        name, _, value = part.strip().partition("=")
        if name == SESSION_COOKIE:
            with suppress(ValueError):
                yield urlsafe_b64decode(value + "=" * (-len(value) % 4))


def _parse_bearer_token(text: str) -> str:
    kind, _, token = text.partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _parse_basic_password(text: str) -> str:
    """The password of Basic authentication, for any user: a program gives the token there (RFC
    7617). Empty if there is none."""
    kind, _, encoded = text.partition(" ")
    try:
        return b64decode(encoded).decode().partition(":")[2] if kind.lower() == "basic" else ""
    except ValueError:
        return ""


def _digest_secret(text: str) -> bytes:
    """A digest of fixed length, so that a comparison tells nothing about the length of the
    secret."""
    return hmac.digest(b"sentinel", text.encode("utf-8", "surrogatepass"), "sha256")
