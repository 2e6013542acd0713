"""Handlers of the pages. Reading changes nothing; answers to alerts need the token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from aiohttp import web
from markupsafe import Markup
from msgspec.structs import replace

from sentinel.alerting import orders
from sentinel.alerting.orders import Author, WrongOrder
from sentinel.alerting.owners import OWNER_LABEL
from sentinel.alerting.slurm_maintenance import MAINTENANCE_PREFIX
from sentinel.core.command_places import PlacedCommands, group_by_place
from sentinel.core.model import Status
from sentinel.homes import describe_setup_place
from sentinel.status import detail
from sentinel.status.folding import fold_alerts, fold_singly
from sentinel.status.node_states import OUT_OF_SERVICE_STATES
from sentinel.status.privacy import HIDDEN_TEXT, is_hidden
from sentinel.status.silences import explain_unheard
from sentinel.status.types import AlertFact, Facts
from sentinel.web import grid, metrics, render, request_body, run_strips
from sentinel.web.auth import Gate, RequestRefused, make_order_refusal
from sentinel.web.events import EventStreams
from sentinel.web.login import LoginPages
from sentinel.web.page_cache import PageCache, make_page_response, parse_query_number, redirect_to
from sentinel.web.snapshot_cache import LiveFacts
from sentinel.web.subjects import SubjectPages
from sentinel.web.tables import SIZE, filter_rows

AlertAction = Callable[[str, Author, Mapping[str, str]], Awaitable[object]]
"""Does something with an alert, given its id, the person who asks, and the fields of the form."""

MAX_OVERVIEW_ROWS = 25
"""Rows of alerts on the overview."""

MAX_OVERVIEW_RUNS = 12
"""Trainings whose last day and week are drawn there."""

FILTER_FIELDS = ("check", "kind", "subject", "severity", "status", "state", "incident")
"""The fields by which an address may select alerts: /alerts?check=gpus&severity=critical."""

MAX_SELECTION_BYTES = 256 * 1024
"""Bytes of a form that answers many alerts: one row may stand for thousands of them."""

SILENCE_LENGTHS = (
    ("1h", "1 hour"),
    ("4h", "4 hours"),
    ("12h", "12 hours"),
    ("1d", "1 day"),
    ("7d", "7 days"),
)


class PageViews:
    """Handlers of all addresses for people, and of `/metrics`."""

    def __init__(self, live: LiveFacts, gate: Gate, events: EventStreams, shown: PageCache) -> None:
        self._live, self._gate, self._shown = live, gate, shown
        self._scraped: tuple[Facts, bytes] | None = None
        lists = [web.get(path, self._make_list_page(name)) for path, name in _LIST_TITLES.items()]
        self.routes: Sequence[web.AbstractRouteDef] = (
            web.get("/", self.show_overview),
            web.get("/alerts", self.show_alerts),
            web.post("/alerts", self.answer_selected),
            web.get("/alerts/{id}", self.show_alert),
            web.post("/alerts/{id}/ack", self.acknowledge_from_page),
            web.post("/alerts/{id}/silence", self.silence_from_page),
            *LoginPages(live, gate, self._shown).routes,
            *SubjectPages(live, self._shown).routes,
            *lists,
            web.get("/metrics", self.serve_metrics),
            web.get("/events", events.serve_stream, allow_head=False),
            web.get("/static/{digest}/{name}", self.serve_static),
        )

    async def show_overview(self, request: web.Request) -> web.Response:
        """Show the overview."""
        return await self._shown.get_cached_page(
            request, "overview.html", "/", _build_overview_context
        )

    async def show_alerts(
        self, request: web.Request, said: str = "", status: int = 200
    ) -> web.Response:
        """Show a page of alerts, and what happened lately. Alerts of one incident share a row,
        unless the address selects alerts by fields.

        `said`: the result of an answer to some of them."""
        wanted = _parse_filters(request)
        facts = await self._shown.get_visible_facts(request)

        start = min(parse_query_number(request.query.get("from", "")), len(facts.alerts))

        async def build_alerts_context(f: Facts) -> dict[str, Any]:
            found = fold_singly(filter_rows(f.alerts, wanted)) if wanted else fold_alerts(f.alerts)
            # some may have ended in the meantime
            first = min(start, max(0, len(found) - 1)) // SIZE * SIZE
            past = await self._live.source.read(
                lambda store: detail.read_alert_changes(store, limit=50)
            )
            past = self._shown.get_visitor(request).eyes.filter_changes(
                await self._live.get_facts(), past
            )
            query = urlencode(wanted, doseq=True)
            part = {"rows": found[first : first + SIZE], "first": first, "size": SIZE}
            told = {"query": query, "past": past, "lengths": SILENCE_LENGTHS, "said": said}
            return {**part, **told, "total": len(found)}

        if wanted or said:
            return self._shown.render_fresh_page(
                request, facts, "alerts.html", "/alerts", await build_alerts_context(facts), status
            )
        return await self._shown.get_cached_page(
            request, "alerts.html", "/alerts", build_alerts_context, start // SIZE
        )

    async def show_alert(
        self, request: web.Request, said: str = "", status: int = 200
    ) -> web.Response:
        """Show one alert with its history, and the forms to answer it."""
        name, facts = request.match_info["id"], await self._shown.get_visible_facts(request)
        line, told = await self._shown.read_alert_past(request, name)
        found = next((a for a in facts.alerts if a.id == name), None)
        if found is None and not line:
            raise web.HTTPNotFound
        title = found or line[0]
        check, subject = title.check, title.subject
        earlier = await self._live.source.read(
            lambda store: detail.read_episodes(store, check, subject, name)
        )
        if not self._shown.get_visitor(request).eyes.is_owner_of(
            await self._live.get_facts(), name
        ):
            earlier = [replace(e, summary=HIDDEN_TEXT) for e in earlier]
        more = {
            "a": found,
            "id": name,
            "name": f"{_name_subject(title)}",
            "others": sum(a.incident == found.incident for a in facts.alerts) - 1 if found else 0,
            "planned": found is not None and found.incident.startswith(MAINTENANCE_PREFIX),
            "line": line,
            "told": told,
            "unheard": explain_unheard(
                held=found.held if found else "",
                pending=found is not None and found.state == "pending",
                fired=any(t.reason == "firing" for t in line),
                muted=False,
            ),
            "earlier": earlier,
            "links": _list_subject_links(facts, found) if found else (),
            "commands": _place_commands(found, found.commands) if found else (),
            "acts": _place_commands(found, found.acts) if found else (),
            "place": describe_setup_place(),
            "said": said,
            "lengths": SILENCE_LENGTHS,
        }
        return self._shown.render_fresh_page(request, facts, "alert.html", "/alerts", more, status)

    async def acknowledge_from_page(self, request: web.Request) -> web.Response:
        """Acknowledge an alert."""
        return await self._apply_answer(
            request, lambda alert, said, _: self._live.acknowledge_alert(alert, said)
        )

    async def silence_from_page(self, request: web.Request) -> web.Response:
        """Silence an alert for a while."""
        return await self._apply_answer(
            request,
            lambda alert, said, form: self._live.silence_one_alert(
                alert, form.get("for", ""), said
            ),
        )

    async def answer_selected(self, request: web.Request) -> web.Response:
        """Give the same answer to each of the selected alerts; each answer is recorded
        separately."""
        fields = await request_body.read_form_fields(request, MAX_SELECTION_BYTES)
        form = {name: value for name, value in fields.items() if isinstance(value, str)}
        names = [*dict.fromkeys(n for v in fields.getall("alert", ()) for n in str(v).split())]
        now, length = self._live.clock.now(), form.get("for", "")
        try:
            said = await self._authorize_answer(request, form, names)
            if not names:
                raise RequestRefused("no alert was chosen", 400)
            if form.get("deed") == "silence":
                orders.silence_end(length, now)
                wrong = await self._live.order_for_each(
                    names, lambda alerts, n: orders.silence_alert(alerts, n, length, said, now)
                )
            else:
                wrong = await self._live.order_for_each(
                    names, lambda alerts, n: orders.acknowledge_alert(alerts, n, said, now)
                )
        except (RequestRefused, WrongOrder) as error:
            return await self.show_alerts(
                request, f"Not done: {error}.", _choose_error_status(error)
            )
        if wrong:
            done = f"Done for {len(names) - len(wrong)} of {len(names)}; for the others not: "
            return await self.show_alerts(request, f"{done}{wrong[0]}.", 409)
        return redirect_to(f"/alerts?{urlencode(_parse_filters(request), doseq=True)}".rstrip("?"))

    async def serve_metrics(self, request: web.Request) -> web.Response:
        """Send metrics to Prometheus."""
        facts = await self._live.get_facts()
        if not self._shown.get_visitor(request).eyes.all and (
            is_hidden("jobs", facts) or is_hidden("nodes", facts)
        ):
            text = "Slurm hides jobs or nodes (PrivateData): metrics need the token (Basic).\n"
            return make_page_response(text, 403, "text/plain")
        if self._scraped is None or self._scraped[0] is not facts:
            self._scraped = facts, metrics.render_metrics(facts)
        headers = {**render.PAGE_HEADERS, "Content-Type": metrics.CONTENT_TYPE}
        return web.Response(body=self._scraped[1], headers=headers)

    async def serve_static(self, request: web.Request) -> web.Response:
        """Send one of our own few files; any other name is not found."""
        name = request.match_info["name"]
        try:
            body = render.read_asset(name)
        except KeyError:
            raise web.HTTPNotFound from None
        kind = render.ASSET_TYPES[name[name.rindex(".") :]]
        headers = {**render.PAGE_HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=headers)

    def _make_list_page(self, name: str) -> Callable[[web.Request], Any]:
        async def name_list(_: Facts) -> dict[str, Any]:
            return {"name": name}

        async def show_list(request: web.Request) -> web.Response:
            return await self._shown.get_cached_page(request, "list.html", request.path, name_list)

        return show_list

    async def _apply_answer(self, request: web.Request, deed: AlertAction) -> web.Response:
        """Apply an answer if the person may give it, and redirect to the alert, so that a reload
        repeats nothing."""
        form, alert = await request_body.read_form(request), request.match_info["id"]
        try:
            await deed(alert, await self._authorize_answer(request, form, [alert]), form)
        except (RequestRefused, WrongOrder) as error:
            return await self.show_alert(
                request, f"Not done: {error}.", _choose_error_status(error)
            )
        return redirect_to(f"/alerts/{quote(alert, safe='')}")

    async def _authorize_answer(
        self, request: web.Request, form: Mapping[str, str], alerts: Sequence[str]
    ) -> Author:
        """The author of an answer, with the note. Raises RequestRefused if they may not answer."""
        now = self._live.get_now_s()
        eyes = self._gate.authorize_request(request.headers, form.get("token", ""), now)
        await self._shown.require_own_alerts(eyes, alerts)
        who = self._gate.name_requester(
            request.headers, form.get("who", ""), "the status page", now
        )
        return Author(who, "page", form.get("note", ""))


def _parse_filters(request: web.Request) -> dict[str, list[str]]:
    """The filters of the address."""
    return {k: request.query.getall(k) for k in FILTER_FIELDS if request.query.get(k)}


def _choose_error_status(wrong: RequestRefused | WrongOrder) -> int:
    """The HTTP status of an error. 401 becomes 403: with 401 the browser would ask for a login of
    its own."""
    status = (make_order_refusal(wrong) if isinstance(wrong, WrongOrder) else wrong).status
    return 403 if status == 401 else status


_LIST_TITLES = {
    "/files": "File systems",
    "/jobs": "Jobs",
    "/gpus": "GPUs under suspicion",
    "/audit": "Audit log",
}

PANEL_PATHS = {"disks": "/files", "jobs": "/jobs", "nodes": "/nodes", "gpus": "/gpus"}
"""The page that shows the findings of a kind, by the panel that the kind declares."""


async def _build_overview_context(f: Facts) -> dict[str, Any]:
    tones = Counter(a.tone for a in f.firing)
    told = [(s.value, tones[s]) for s in sorted(Status, key=lambda s: -s.rank) if tones[s]]
    calm, sure = f.calm_summary
    words = ", ".join(f"{n} {tone}" for tone, n in told) or calm
    return {
        "calm": calm,
        "sure": sure,
        "headline": words,
        "tones": told,
        "pending": len(f.alerts) - len(f.firing),
        "quiet": sum(a.quiet for a in f.firing),
        "blind": sum(c.blind for c in f.checks),
        "checks": sorted(f.checks, key=lambda c: not c.blind),
        "panels": PANEL_PATHS,
        "shown": fold_alerts(f.alerts)[:MAX_OVERVIEW_ROWS],
        "out": [g for g in f.nodes if g.state in OUT_OF_SERVICE_STATES],
        **run_strips.build_strip_context(f.runs[:MAX_OVERVIEW_RUNS], f.at),
        "strip": Markup(grid.draw_state_bar(f.node_states)) if f.nodes else "",  # noqa: S704 - words of ours
    }


def _place_commands(alert: AlertFact, commands: tuple[str, ...]) -> tuple[PlacedCommands, ...]:
    owner = alert.labels.get(OWNER_LABEL, "")
    return group_by_place(commands, alert.host, owner, describe_setup_place())


def _list_subject_links(f: Facts, alert: AlertFact) -> list[tuple[str, str]]:
    """Links to the training, the file system and the node that an alert is about, each with its
    text."""
    check, found = quote(alert.check, safe=""), list[tuple[str, str]]()
    for row in f.jobs:
        mine = alert.subject == row.subject or alert.subject.startswith(f"{row.subject} ")
        if row.check == alert.check and mine:
            address = f"/jobs/one?check={check}&subject={quote(row.subject, safe='')}"
            found.append((address, f"How {row.subject} went"))
    if any((d.check, d.path) == (alert.check, alert.subject) for d in f.disks):
        address = f"/files/one?check={check}&path={quote(alert.subject, safe='')}"
        found.append((address, f"How {alert.subject} went"))
    if node := alert.labels.get("node"):
        found.append((f"/nodes/one?name={quote(node, safe='')}", f"Node {node}"))
    return found


def _name_subject(one: Any) -> str:
    return one.check if one.subject in ("", one.check) else f"{one.check} {one.subject}"
