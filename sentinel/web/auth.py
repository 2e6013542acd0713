"""Who may look, and who may acknowledge and silence. Pure.

The token comes with the request itself (a field of the form, or `Authorization: Bearer` of a
program): no cookie is set, so another site has nothing to make use of. Where a proxy adds the
token for whoever is logged in there, a request that a browser says is another site's is refused:
https://cheatsheetseries.owasp.org/cheatsheets/Cross-Site_Request_Forgery_Prevention_Cheat_Sheet.html
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from msgspec import Struct

from sentinel.alerting.orders import NotThere, NotYet, Wrong
from sentinel.core.text import visible

NAME = 60


class Refused(Exception):
    """In words for the person; `status` of HTTP."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def refused(error: Wrong) -> Refused:
    """An order that makes no sense, with the status of HTTP."""
    return Refused(str(error), {NotThere: 404, NotYet: 409}.get(type(error), 400))


class Gate(Struct, frozen=True):
    """`token` empty: nobody may. `url` and `hosts`: how people reach the page; `user_header`: see
    settings."""

    token: str = ""
    url: str = ""
    user_header: str = ""
    hosts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Gate(…)"

    def admit(self, headers: Mapping[str, str], given: str) -> None:
        """Raises Refused unless the request has the token and is from no other site."""
        if not self.token:
            raise Refused("this page only shows: no token is configured", 403)
        if self.foreign(headers):
            raise Refused("the request comes from another site", 403)
        said = given or _bearer(headers.get("Authorization", ""))
        if not hmac.compare_digest(_digest(said), _digest(self.token)):
            raise Refused("the token is not the right one", 401)

    def foreign(self, headers: Mapping[str, str]) -> bool:
        """Whether a browser says that another site made this request."""
        site = headers.get("Sec-Fetch-Site", "")
        if site:
            return site not in ("same-origin", "none")
        origin = headers.get("Origin", "")
        if not origin:
            return False  # no browser: they all send it with a POST
        known = {headers.get("Host", "").lower(), urlsplit(self.url).netloc.lower()} - {""}
        return _netloc(origin) not in known

    def misdirected(self, headers: Mapping[str, str]) -> bool:
        """Whether it was sent to a name that is none of ours. To a browser a stranger's name that
        suddenly means this host (DNS rebinding) is the stranger's own site; an address is none."""
        host = headers.get("Host", "")
        name = _hostname(f"//{host}")
        ours = (self.url, *(h if "//" in h else f"//{h}" for h in self.hosts), "//localhost")
        known = {_hostname(one) for one in ours} - {""}
        return bool(host) and name not in known and not _is_address(name)

    def user(self, headers: Mapping[str, str]) -> str:
        """Whom a proxy says is logged in."""
        found = headers.get(self.user_header, "") if self.user_header else ""
        return visible(found.strip()[:NAME])

    def who(self, headers: Mapping[str, str], name: str, through: str) -> str:
        """The name to write down."""
        said = self.user(headers) or visible(name.strip()[:NAME])
        return f"{said} ({through})" if said else through


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _hostname(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _bearer(text: str) -> str:
    kind, _, token = text.partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _digest(text: str) -> bytes:
    """Of one length, so that comparing tells nothing of the length of the secret."""
    return hmac.digest(b"sentinel", text.encode("utf-8", "surrogatepass"), "sha256")
