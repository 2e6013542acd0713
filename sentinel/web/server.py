"""The HTTP server: `/healthz`, and `/a/TOKEN/`, the page behind the links in messages.

A GET changes nothing, whoever makes it; a POST does what the link allows. The token is the only
key, so there is no cookie that another site could make use of.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

from aiohttp import web

from sentinel.alerting import orders
from sentinel.alerting.signed_links import LINK_PATH, BadLink, LinkClaim, LinkSigner
from sentinel.alerting.silences import Ack, Orders, Silence
from sentinel.core.digests import blake2b
from sentinel.core.errors import SentinelError, StoreError
from sentinel.core.guidance import name_config
from sentinel.core.model import Alert
from sentinel.core.ports import Clock
from sentinel.core.text import visible
from sentinel.homes import describe_setup_place
from sentinel.web import link_pages
from sentinel.web.clients import client_of
from sentinel.web.compression import compress_response
from sentinel.web.connection_limit import READ_BYTES, LimitedSite
from sentinel.web.rate_limit import RequestRateLimiter
from sentinel.web.request_body import read_form
from sentinel.web.site import Site

_MAX_BODY_BYTES = 4096
LINK_BURST, LINK_REFILL_PER_S = 30, 0.5
"""Requests that one valid link may make at once, and each second after that."""
LINGERING_S = 1.0
"""How long the rest of a body is read that nobody wants, so that its sender sees the answer."""

_LOG = logging.getLogger("sentinel")
_UNKNOWN_HOST_TEXT = (
    "You asked for {}, which is no name of this server that it knows. If it is right, add it to the "
    "file, web: {{hosts: […]}}, and restart sentinel."
)
_ERROR_TEXTS = {
    404: "There is nothing here.",
    405: "Not in this way.",
    408: "It did not come in time.",
    413: "That is too much.",
}
RequestHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class OrderPort(Protocol):
    """The engine, to which people's orders are given. Every method may raise StoreError."""

    async def alerts(self) -> list[Alert]:
        """Pending and firing alerts."""

    async def orders(self) -> Orders:
        """The orders that people gave before."""

    async def order(self, order: Ack | Silence) -> None:
        """Store a person's order."""


class CannotListen(SentinelError):
    """The address is taken, or is not an address of this host."""


class WebServer:
    """Serves until it is stopped. Without a signer it serves no links, only `/healthz`. `config`: the
    file that commands of sentinel name by -c."""

    def __init__(
        self,
        desk: OrderPort,
        clock: Clock,
        signer: LinkSigner | None,
        site: Site | None = None,
        config: str = "",
    ) -> None:
        self._desk, self._clock, self._signer, self._config = desk, clock, signer, config
        self._rate, self._site = RequestRateLimiter(), site
        self._link_rate = RequestRateLimiter(LINK_BURST, LINK_REFILL_PER_S)
        self._door: LimitedSite | None = None
        app = web.Application(
            client_max_size=_MAX_BODY_BYTES, middlewares=[self._limit_connections]
        )
        app.router.add_get("/healthz", self._answer_health)
        if signer is not None:
            path = LINK_PATH + "{token:[A-Za-z0-9_-]+}{slash:/?}"
            app.router.add_get(path, self._show_question)
            app.router.add_post(path, self._execute_claim)
        if site is not None:
            app.add_routes(site.routes)
        # A compressed body may be a thousand times as long, and aiohttp unpacks one that nobody reads.
        self._runner = web.AppRunner(
            app, access_log=None, keepalive_timeout=15.0, auto_decompress=False,
            read_bufsize=READ_BYTES, lingering_time=LINGERING_S,
        )  # fmt: skip

    async def start_server(self, host: str, port: int) -> None:
        """Begin to serve. Raises CannotListen."""
        await self._runner.setup()
        try:
            self._door = LimitedSite(self._runner, host, port)
            await self._door.start()
        except OSError as error:
            await self._runner.cleanup()
            why = error.strerror or str(error)
            raise CannotListen(f"web: cannot listen on {host}:{port}: {visible(why)}") from error
        if self._site is not None:
            self._site.start_watching()

    @property
    def listen_port(self) -> int:
        """The port on which it listens."""
        return int(self._runner.addresses[0][1])

    async def stop_server(self) -> None:
        """Stop serving; requests in progress have a moment to end."""
        if self._site is not None:
            self._site.stop_watching()
        await self._runner.cleanup()

    @web.middleware
    async def _limit_connections(
        self, request: web.Request, handler: RequestHandler
    ) -> web.StreamResponse:
        """Keep the connection while its request is answered. On a connection of the reserve, only
        `/healthz` is answered."""
        assert self._door is not None  # it has admitted the request
        with self._door.mark_serving(request.transport) as reserve:
            if reserve and request.path != "/healthz":
                text = "Too many connections are open. Try again in a moment."
                return _make_html_response(
                    link_pages.render_message_page("Busy", text), 503, {"Connection": "close"}
                )
            return await self._limit_requests(request, handler)

    async def _limit_requests(
        self, request: web.Request, handler: RequestHandler
    ) -> web.StreamResponse:
        """Limit requests, add headers to every answer, and hide the details of internal errors."""
        if wait := self._take_token(request):
            again = {"Retry-After": str(int(wait) + 1)}
            return _make_html_response(
                link_pages.render_message_page("Too many requests", "Try again in a moment."),
                429,
                again,
            )
        if self._site is not None and not self._site.is_known_host(request):
            return _make_html_response(
                link_pages.render_message_page(
                    "Not known here", _UNKNOWN_HOST_TEXT.format(request.host)
                ),
                421,
            )
        try:
            return compress_response(request, await handler(request))
        except BadLink as error:
            return _make_html_response(
                link_pages.render_message_page("No such link", str(error)), 404
            )
        except web.HTTPException as error:
            allow = {k: v for k, v in error.headers.items() if k == "Allow"}
            text = _ERROR_TEXTS.get(error.status, "That cannot be answered.")
            return _make_html_response(
                link_pages.render_message_page(error.reason, text), error.status, allow
            )
        except StoreError as error:
            _LOG.warning("web: %s", visible(str(error)))
            text = "The state cannot be read or written now. Try again; the log says why."
            return _make_html_response(link_pages.render_message_page("Not done", text), 503)
        except Exception:
            _LOG.exception("web: internal error")
            return _make_html_response(
                link_pages.render_message_page("Not done", "An internal error; see the log."), 500
            )

    def _take_token(self, request: web.Request) -> float:
        """Seconds that the client has to wait; 0 if the request may go on.

        A valid link has a limit of its own: others, who may share the address of the person who has
        it, do not keep an alert from being acknowledged. `/healthz` has none: a refusal costs more than its
        answer, and a probe shares its address with all users of its host."""
        now = self._clock.now()
        if request.path == "/healthz":
            return 0.0
        if token := request.match_info.get("token"):
            with suppress(BadLink):
                self._verify_claim(request)
                return self._link_rate.take_token(token, now)
        rate = (self._site and self._site.choose_rate_limiter(request)) or self._rate
        # People with the token or a session have limits of their own: on this host any user may connect
        # from the address of the proxy.
        visitor = self._site.name_visitor(request) if self._site else ""
        return rate.take_token(client_of(request.remote or "") + visitor, now)

    async def _answer_health(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n", headers=link_pages.LINK_PAGE_HEADERS)

    async def _show_question(self, request: web.Request) -> web.Response:
        claim = self._verify_claim(request)
        alerts = await self._find_firing_alerts(claim)
        if not alerts:
            return _answer_alert_ended()
        acks = (await self._desk.orders()).acks
        known = {acks[a.id].author_text if a.id in acks else "" for a in alerts}
        by = known.pop() if len(known) == 1 else ""
        return _make_html_response(link_pages.render_question(claim, alerts, by))

    async def _execute_claim(self, request: web.Request) -> web.Response:
        claim = self._verify_claim(request)
        said = await read_form(request)
        alerts = await self._find_firing_alerts(claim)
        if not alerts:
            return _answer_alert_ended()
        who = orders.Author(
            _name_link_user(said.get("who", ""), claim), "link", said.get("note", "")
        )
        if claim.deed == "ack":
            return await self._acknowledge_by_link(alerts, who)
        return await self._silence_by_link(alerts[0], who, claim, said.get("for", ""))

    async def _acknowledge_by_link(
        self, alerts: Sequence[Alert], who: orders.Author
    ) -> web.Response:
        now = self._clock.now()
        for alert in alerts:
            await self._desk.order(orders.acknowledge_alert([alert], alert.id, who, now))
        text = "No repeats and no escalation until it ends."
        return _make_html_response(link_pages.render_order_result("Acknowledged", text, alerts))

    async def _silence_by_link(
        self, alert: Alert, who: orders.Author, claim: LinkClaim, word: str
    ) -> web.Response:
        if word not in link_pages.LINK_SILENCE_LENGTHS:
            return _make_html_response(
                link_pages.render_message_page("Not done", "Choose how long, and try again."), 400
            )
        now = self._clock.now()
        silence = orders.silence_alert(
            [alert], alert.id, word, who, now, _make_link_silence_id(claim)
        )
        await self._desk.order(silence)
        end = name_config(f"sentinel alerts unsilence {silence.id}", self._config)
        length, place = link_pages.LINK_SILENCE_LENGTHS[word], describe_setup_place()
        text = f"For {length}. End it sooner ({place}) with: {end}"
        return _make_html_response(link_pages.render_order_result("Silenced", text, [alert]))

    def _verify_claim(self, request: web.Request) -> LinkClaim:
        if self._signer is None:
            raise BadLink("this link is not valid")
        return self._signer.verify_token(request.match_info["token"], self._clock.now())

    async def _find_firing_alerts(self, claim: LinkClaim) -> list[Alert]:
        """Those alerts of the link that still fire."""
        names = claim.alert.split(",")
        return [a for a in await self._desk.alerts() if a.id in names and a.firing]


def _make_html_response(
    text: str, status: int = 200, more: dict[str, str] | None = None
) -> web.Response:
    headers = {**link_pages.LINK_PAGE_HEADERS, **(more or {})}
    return web.Response(text=text, status=status, content_type="text/html", headers=headers)


def _answer_alert_ended() -> web.Response:
    return _make_html_response(
        link_pages.render_message_page(
            "It is over", "This alert does not fire any more: nothing to do."
        )
    )


def _name_link_user(name: str, claim: LinkClaim) -> str:
    """The name of the person who used a link, with the channel to which the link was sent."""
    sent = f"a link sent to {claim.channel}"
    name = visible(name.strip()[:60])
    return f"{name} ({sent})" if name else sent


def _make_link_silence_id(claim: LinkClaim) -> str:
    """The id of the silence by a link. It is the same each time, so pressing twice makes only one
    silence."""
    parts = f"{claim.alert}\0{claim.channel}\0{claim.ends}"
    return "link-" + blake2b(parts.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
