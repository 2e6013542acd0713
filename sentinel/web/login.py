"""Login: a person gives the token once, and the browser then has a session until it ends or is
ended."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from aiohttp import web

from sentinel.web import request_body
from sentinel.web.auth import SESSION_COOKIE, Gate, RequestRefused, is_https
from sentinel.web.page_cache import PageCache, redirect_to
from sentinel.web.snapshot_cache import LiveFacts


class LoginPages:
    """Handlers for `/login` and `/logout`."""

    def __init__(self, live: LiveFacts, gate: Gate, shown: PageCache) -> None:
        self._live, self._gate, self._shown = live, gate, shown
        self.routes: Sequence[web.AbstractRouteDef] = (
            web.get("/login", self.show_login),
            web.post("/login", self.log_in),
            web.post("/logout", self.log_out),
        )

    async def show_login(
        self, request: web.Request, said: str = "", status: int = 200
    ) -> web.Response:
        """Show the form. After the login, the browser goes back to the page where the person came
        from."""
        came = request.query.get("to") or _extract_page_path(request.headers.get("Referer", ""))
        more = {"said": said, "to": _keep_local_path(came)}
        facts = await self._shown.get_visible_facts(request)
        return self._shown.render_fresh_page(request, facts, "login.html", "/login", more, status)

    async def log_in(self, request: web.Request) -> web.Response:
        """Begin a session for a person who has the token."""
        form, now = await request_body.read_form(request), self._live.get_now_s()
        try:
            self._gate.authorize_request(request.headers, form.get("token", "") or "-", now)
        except RequestRefused as error:
            return await self.show_login(request, f"Not done: {error}.", 403)
        answer = redirect_to(_keep_local_path(form.get("to", "")))
        name = self._gate.get_proxy_user(request.headers) or form.get("who", "")
        answer.set_cookie(
            SESSION_COOKIE,
            self._gate.make_session_cookie(name, now),
            max_age=int(self._gate.lasts),
            path="/",
            httponly=True,
            samesite="Lax",
            secure=is_https(request.headers),
        )
        return answer

    async def log_out(self, request: web.Request) -> web.Response:
        """End the session, in this browser and wherever its cookie was copied to."""
        answer = redirect_to("/")
        if not self._gate.is_cross_site(request.headers):
            self._gate.end_session(request.headers, self._live.get_now_s())
            answer.del_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="Lax")
        return answer


def _extract_page_path(referer: str) -> str:
    try:
        parts = urlsplit(referer)
    except ValueError:
        return ""
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _keep_local_path(where: str) -> str:
    """The path if it is a page of ours, else `/`. `//host`, `/\\host` and paths that would break an
    HTTP line are refused: they could lead to another site."""
    ours = where.startswith("/") and where[1:2] not in ("/", "\\") and where.isprintable()
    return where if ours and where.isascii() and not where.startswith("/login") else "/"
