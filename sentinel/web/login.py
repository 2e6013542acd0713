"""A login that is kept: the token once, then a session in the browser until it ends or is ended."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from aiohttp import web

from sentinel.web import request_body
from sentinel.web.auth import COOKIE, Gate, Refused, secure
from sentinel.web.page_cache import Shown, elsewhere
from sentinel.web.snapshot_cache import Live


class Login:
    """`/login` and `/logout`."""

    def __init__(self, live: Live, gate: Gate, shown: Shown) -> None:
        self._live, self._gate, self._shown = live, gate, shown
        self.routes: Sequence[web.AbstractRouteDef] = (
            web.get("/login", self.ask),
            web.post("/login", self.begin),
            web.post("/logout", self.end),
        )

    async def ask(self, request: web.Request, said: str = "", status: int = 200) -> web.Response:
        """The form; after it comes the page from which one came."""
        came = request.query.get("to") or _page_of(request.headers.get("Referer", ""))
        more = {"said": said, "to": _local(came)}
        facts = await self._shown.facts(request)
        return self._shown.fresh(request, facts, "login.html", "/login", more, status)

    async def begin(self, request: web.Request) -> web.Response:
        """A session for who has the token."""
        form, now = await request_body.form(request), self._live.seconds()
        try:
            self._gate.admit(request.headers, form.get("token", "") or "-", now)
        except Refused as error:
            return await self.ask(request, f"Not done: {error}.", 403)
        answer = elsewhere(_local(form.get("to", "")))
        name = self._gate.user(request.headers) or form.get("who", "")
        answer.set_cookie(
            COOKIE,
            self._gate.begun(name, now),
            max_age=int(self._gate.lasts),
            path="/",
            httponly=True,
            samesite="Lax",
            secure=secure(request.headers),
        )
        return answer

    async def end(self, request: web.Request) -> web.Response:
        """No session any more, in this browser or wherever the cookie was copied to."""
        answer = elsewhere("/")
        if not self._gate.foreign(request.headers):
            self._gate.end(request.headers, self._live.seconds())
            answer.del_cookie(COOKIE, path="/", httponly=True, samesite="Lax")
        return answer


def _page_of(referer: str) -> str:
    try:
        parts = urlsplit(referer)
    except ValueError:
        return ""
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _local(where: str) -> str:
    """A page of ours and none of another site's: no `//host`, no `/\\host`, and nothing that HTTP would
    take for a line of its own."""
    ours = where.startswith("/") and where[1:2] not in ("/", "\\") and where.isprintable()
    return where if ours and where.isascii() and not where.startswith("/login") else "/"
