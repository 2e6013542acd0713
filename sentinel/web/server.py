"""The HTTP server: `/healthz`, and `/a/TOKEN/`, the page behind the links in messages.

A GET changes nothing, whoever makes it; a POST does what the link allows. The token is the only
key, so there is no cookie that another site could make use of.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from aiohttp import web

from sentinel.alerting import orders
from sentinel.alerting.signed_links import PATH, BadLink, Claim, Signer
from sentinel.alerting.silences import Ack, Orders, Silence
from sentinel.core.digests import blake2b
from sentinel.core.errors import SentinelError, StoreError
from sentinel.core.model import Alert
from sentinel.core.ports import Clock
from sentinel.core.text import visible
from sentinel.web import link_pages
from sentinel.web.compression import compressed
from sentinel.web.connection_limit import Door
from sentinel.web.rate_limit import Rate
from sentinel.web.request_body import form
from sentinel.web.site import Site

_BODY = 4096
_LOG = logging.getLogger("sentinel")
_STRANGE = (
    "You asked for {}, which is no name of this server that it knows. If it is right, add it to the "
    "file, web: {{hosts: […]}}, and restart sentinel."
)
_WORDS = {
    404: "There is nothing here.",
    405: "Not in this way.",
    408: "It did not come in time.",
    413: "That is too much.",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Desk(Protocol):
    """Where orders are taken. Every method may raise StoreError."""

    async def alerts(self) -> list[Alert]:
        """Pending and firing alerts."""

    async def orders(self) -> Orders:
        """What people have said before."""

    async def order(self, order: Ack | Silence) -> None:
        """Write what a person says."""


class CannotListen(SentinelError):
    """The address is taken or is none of this host's."""


class Server:
    """Serves until it is stopped. Without a signer there are no links, only `/healthz`."""

    def __init__(
        self, desk: Desk, clock: Clock, signer: Signer | None, site: Site | None = None
    ) -> None:
        self._desk, self._clock, self._signer = desk, clock, signer
        self._rate, self._health_rate, self._site = Rate(), Rate(), site
        self._door: Door | None = None
        app = web.Application(client_max_size=_BODY, middlewares=[self._guarded])
        app.router.add_get("/healthz", self._health)
        if signer is not None:
            path = PATH + "{token:[A-Za-z0-9_-]+}{slash:/?}"
            app.router.add_get(path, self._ask)
            app.router.add_post(path, self._do)
        if site is not None:
            app.add_routes(site.routes)
        self._runner = web.AppRunner(app, access_log=None, keepalive_timeout=15.0)

    async def start(self, host: str, port: int) -> None:
        """Begin to serve; raises CannotListen."""
        await self._runner.setup()
        try:
            self._door = Door(self._runner, host, port)
            await self._door.start()
        except OSError as error:
            await self._runner.cleanup()
            why = error.strerror or str(error)
            raise CannotListen(f"web: cannot listen on {host}:{port}: {visible(why)}") from error
        if self._site is not None:
            self._site.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """End; requests in progress have a moment."""
        if self._site is not None:
            self._site.stop()
        await self._runner.cleanup()

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A place while it is answered; where there are too many, only `/healthz` has one."""
        assert self._door is not None  # it let the request in
        with self._door.serving(request.transport) as reserve:
            if reserve and request.path != "/healthz":
                text = "Too many connections are open. Try again in a moment."
                return _page(link_pages.message("Busy", text), 503, {"Connection": "close"})
            return await self._limited(request, handler)

    async def _limited(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Headers on every answer, a limit of requests, and no trouble told in detail."""
        healthz = self._health_rate if request.path == "/healthz" else None
        rate = healthz or (self._site and self._site.rate(request)) or self._rate
        wait = rate.wait(request.remote or "", self._clock.now())
        if wait:
            again = {"Retry-After": str(int(wait) + 1)}
            return _page(
                link_pages.message("Too many requests", "Try again in a moment."), 429, again
            )
        if self._site is not None and not self._site.knows(request):
            return _page(link_pages.message("Not known here", _STRANGE.format(request.host)), 421)
        try:
            return compressed(request, await handler(request))
        except BadLink as error:
            return _page(link_pages.message("No such link", str(error)), 404)
        except web.HTTPException as error:
            allow = {k: v for k, v in error.headers.items() if k == "Allow"}
            text = _WORDS.get(error.status, "That cannot be answered.")
            return _page(link_pages.message(error.reason, text), error.status, allow)
        except StoreError as error:
            _LOG.warning("web: %s", visible(str(error)))
            text = "The state cannot be read or written now. Try again; the log says why."
            return _page(link_pages.message("Not done", text), 503)
        except Exception:
            _LOG.exception("web: internal error")
            return _page(link_pages.message("Not done", "An internal error; see the log."), 500)

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n", headers=link_pages.HEADERS)

    async def _ask(self, request: web.Request) -> web.Response:
        claim = self._claim(request)
        alert = await self._alert(claim)
        if alert is None:
            return _over()
        ack = (await self._desk.orders()).acks.get(alert.id)
        return _page(link_pages.question(claim, alert, ack.said if ack else ""))

    async def _do(self, request: web.Request) -> web.Response:
        claim = self._claim(request)
        said = await form(request)
        alert = await self._alert(claim)
        if alert is None:
            return _over()
        who = orders.Said(_who(said.get("who", ""), claim), "link", said.get("note", ""))
        if claim.deed == "ack":
            return await self._ack(alert, who)
        return await self._silence(alert, who, claim, said.get("for", ""))

    async def _ack(self, alert: Alert, who: orders.Said) -> web.Response:
        await self._desk.order(orders.acknowledge([alert], alert.id, who, self._clock.now()))
        text = "No repeats and no escalation until it ends."
        return _page(link_pages.done("Acknowledged", text, alert))

    async def _silence(
        self, alert: Alert, who: orders.Said, claim: Claim, word: str
    ) -> web.Response:
        if word not in link_pages.LENGTHS:
            return _page(link_pages.message("Not done", "Choose how long, and try again."), 400)
        now = self._clock.now()
        silence = orders.silence_alert([alert], alert.id, word, who, now, _name(claim))
        await self._desk.order(silence)
        text = f"For {link_pages.LENGTHS[word]}. End it sooner with: sentinel alerts unsilence {silence.id}"
        return _page(link_pages.done("Silenced", text, alert))

    def _claim(self, request: web.Request) -> Claim:
        if self._signer is None:
            raise BadLink("this link is not valid")
        return self._signer.claim(request.match_info["token"], self._clock.now())

    async def _alert(self, claim: Claim) -> Alert | None:
        """The alert, while it still fires."""
        alerts = await self._desk.alerts()
        return next((a for a in alerts if a.id == claim.alert and a.firing), None)


def _page(text: str, status: int = 200, more: dict[str, str] | None = None) -> web.Response:
    headers = {**link_pages.HEADERS, **(more or {})}
    return web.Response(text=text, status=status, content_type="text/html", headers=headers)


def _over() -> web.Response:
    return _page(
        link_pages.message("It is over", "This alert does not fire any more: nothing to do.")
    )


def _who(name: str, claim: Claim) -> str:
    """Whoever it is, they had the link that was sent there."""
    sent = f"a link sent to {claim.channel}"
    name = visible(name.strip()[:60])
    return f"{name} ({sent})" if name else sent


def _name(claim: Claim) -> str:
    """One silence per link: pressing twice is no second one."""
    parts = f"{claim.alert}\0{claim.channel}\0{claim.ends}"
    return "link-" + blake2b(parts.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
