"""The pages: what each address shows. Reading changes nothing; answers need the token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from aiohttp import web
from markupsafe import Markup
from msgspec.structs import replace

from sentinel.alerting import orders
from sentinel.alerting.orders import Said, Wrong
from sentinel.alerting.slurm_maintenance import PREFIX
from sentinel.core.model import Status
from sentinel.status import detail
from sentinel.status.folding import Fold, folded, single
from sentinel.status.node_states import OUT
from sentinel.status.privacy import HIDDEN, hidden
from sentinel.status.types import AlertFact, Facts
from sentinel.web import grid, metrics, render, request_body
from sentinel.web.auth import Gate, Refused, refused
from sentinel.web.events import Events
from sentinel.web.login import Login
from sentinel.web.page_cache import Shown, answer, elsewhere, number_of
from sentinel.web.snapshot_cache import Live
from sentinel.web.subjects import Subjects
from sentinel.web.tables import SIZE, chosen

Deed = Callable[[str, Said, Mapping[str, str]], Awaitable[object]]
"""Of an alert, who asks, and the fields of the form."""

FIRST = 25
"""Rows of alerts on the overview."""

FILTERS = ("check", "kind", "subject", "severity", "status", "state", "incident")
"""What an address may ask for: /alerts?check=gpus&severity=critical."""

CHOSEN = 256 * 1024
"""Bytes of an answer to many alerts: a row may stand for thousands of them."""

LENGTHS = (
    ("1h", "1 hour"),
    ("4h", "4 hours"),
    ("12h", "12 hours"),
    ("1d", "1 day"),
    ("7d", "7 days"),
)


class Views:
    """Every address for people, and `/metrics`."""

    def __init__(self, live: Live, gate: Gate, events: Events, shown: Shown) -> None:
        self._live, self._gate, self._shown = live, gate, shown
        self._scraped: tuple[Facts, bytes] | None = None
        lists = [web.get(path, self._list(name)) for path, name in _LISTS.items()]
        self.routes: Sequence[web.AbstractRouteDef] = (
            web.get("/", self.overview),
            web.get("/alerts", self.alerts),
            web.post("/alerts", self.answer_some),
            web.get("/alerts/{id}", self.alert),
            web.post("/alerts/{id}/ack", self.ack),
            web.post("/alerts/{id}/silence", self.silence),
            *Login(live, gate, self._shown).routes,
            *Subjects(live, self._shown).routes,
            *lists,
            web.get("/metrics", self.metrics),
            web.get("/events", events.serve, allow_head=False),
            web.get("/static/{digest}/{name}", self.static),
        )

    async def overview(self, request: web.Request) -> web.Response:
        """All at a glance."""
        return await self._shown.page(request, "overview.html", "/", _overview)

    async def alerts(self, request: web.Request, said: str = "", status: int = 200) -> web.Response:
        """A part of all alerts, those of one incident in one row, or each of those that the address asks for;
        and what happened lately. `said`: what became of an answer to some."""
        wanted = _wanted(request)
        facts = await self._shown.facts(request)

        def rows(f: Facts) -> Sequence[Fold]:
            return single(chosen(f.alerts, wanted)) if wanted else folded(f.alerts)

        total = len(rows(facts))
        start = number_of(request.query.get("from", ""))
        first = min(start, max(0, total - 1)) // SIZE * SIZE  # some may have ended
        past = await self._live.source.read(lambda store: detail.happened(store, limit=50))
        past = self._shown.viewer(request).eyes.happened(await self._live.facts(), past)

        def more(f: Facts) -> dict[str, Any]:
            found = rows(f)
            query = urlencode(wanted, doseq=True)
            part = {"rows": found[first : first + SIZE], "first": first, "size": SIZE}
            told = {"query": query, "past": past, "lengths": LENGTHS, "said": said}
            return {**part, **told, "total": len(found)}

        if wanted or said:
            return self._shown.fresh(request, facts, "alerts.html", "/alerts", more(facts), status)
        return await self._shown.page(request, "alerts.html", "/alerts", more, first)

    async def alert(self, request: web.Request, said: str = "", status: int = 200) -> web.Response:
        """One alert with its time line, and the forms to answer it."""
        name, facts = request.match_info["id"], await self._shown.facts(request)
        line, told = await self._shown.past(request, name)
        found = next((a for a in facts.alerts if a.id == name), None)
        if found is None and not line:
            raise web.HTTPNotFound
        title = found or line[0]
        check, subject = title.check, title.subject
        earlier = await self._live.source.read(
            lambda store: detail.episodes(store, check, subject, name)
        )
        if not self._shown.viewer(request).eyes.owns(await self._live.facts(), name):
            earlier = [replace(e, summary=HIDDEN) for e in earlier]
        more = {
            "a": found,
            "id": name,
            "name": f"{_of(title)}",
            "others": sum(a.incident == found.incident for a in facts.alerts) - 1 if found else 0,
            "planned": found is not None and found.incident.startswith(PREFIX),
            "line": line,
            "told": told,
            "earlier": earlier,
            "links": _whereabouts(facts, found) if found else (),
            "said": said,
            "lengths": LENGTHS,
        }
        return self._shown.fresh(request, facts, "alert.html", "/alerts", more, status)

    async def ack(self, request: web.Request) -> web.Response:
        """Somebody has it."""
        return await self._answered(
            request, lambda alert, said, _: self._live.acknowledge(alert, said)
        )

    async def silence(self, request: web.Request) -> web.Response:
        """Nobody is told for a while."""
        return await self._answered(
            request,
            lambda alert, said, form: self._live.silence(alert, form.get("for", ""), said),
        )

    async def answer_some(self, request: web.Request) -> web.Response:
        """The same answer to each of the alerts that were chosen; every one is written down by itself."""
        fields = await request_body.fields(request, CHOSEN)
        form = {name: value for name, value in fields.items() if isinstance(value, str)}
        names = [*dict.fromkeys(n for v in fields.getall("alert", ()) for n in str(v).split())]
        now, length = self._live.clock.now(), form.get("for", "")
        try:
            said = await self._said(request, form, names)
            if not names:
                raise Refused("no alert was chosen", 400)
            if form.get("deed") == "silence":
                orders.end(length, now)
                wrong = await self._live.each(
                    names, lambda alerts, n: orders.silence_alert(alerts, n, length, said, now)
                )
            else:
                wrong = await self._live.each(
                    names, lambda alerts, n: orders.acknowledge(alerts, n, said, now)
                )
        except (Refused, Wrong) as error:
            return await self.alerts(request, f"Not done: {error}.", _status(error))
        if wrong:
            done = f"Done for {len(names) - len(wrong)} of {len(names)}; for the others not: "
            return await self.alerts(request, f"{done}{wrong[0]}.", 409)
        return elsewhere(f"/alerts?{urlencode(_wanted(request), doseq=True)}".rstrip("?"))

    async def metrics(self, request: web.Request) -> web.Response:
        """For Prometheus."""
        facts = await self._live.facts()
        if not self._shown.viewer(request).eyes.all and (
            hidden("jobs", facts) or hidden("nodes", facts)
        ):
            text = "Slurm hides jobs or nodes (PrivateData): metrics need the token (Basic).\n"
            return answer(text, 403, "text/plain")
        if self._scraped is None or self._scraped[0] is not facts:
            self._scraped = facts, metrics.metrics(facts)
        headers = {**render.HEADERS, "Content-Type": metrics.CONTENT_TYPE}
        return web.Response(body=self._scraped[1], headers=headers)

    async def static(self, request: web.Request) -> web.Response:
        """Our own few files; a name that is none of them is no path."""
        name = request.match_info["name"]
        try:
            body = render.content(name)
        except KeyError:
            raise web.HTTPNotFound from None
        kind = render.TYPES[name[name.rindex(".") :]]
        headers = {**render.HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=headers)

    def _list(self, name: str) -> Callable[[web.Request], Any]:
        async def show(request: web.Request) -> web.Response:
            return await self._shown.page(
                request, "list.html", request.path, lambda _: {"name": name}
            )

        return show

    async def _answered(self, request: web.Request, deed: Deed) -> web.Response:
        """Do it for who may, and show the alert: by GET, so that a reload repeats nothing."""
        form, alert = await request_body.form(request), request.match_info["id"]
        try:
            await deed(alert, await self._said(request, form, [alert]), form)
        except (Refused, Wrong) as error:
            return await self.alert(request, f"Not done: {error}.", _status(error))
        return elsewhere(f"/alerts/{quote(alert, safe='')}")

    async def _said(
        self, request: web.Request, form: Mapping[str, str], alerts: Sequence[str]
    ) -> Said:
        """Who answers, and the note; raises Refused where they may not."""
        now = self._live.seconds()
        eyes = self._gate.admit(request.headers, form.get("token", ""), now)
        await self._shown.own(eyes, alerts)
        who = self._gate.who(request.headers, form.get("who", ""), "the status page", now)
        return Said(who, "page", form.get("note", ""))


def _wanted(request: web.Request) -> dict[str, list[str]]:
    """The filters of the address."""
    return {k: request.query.getall(k) for k in FILTERS if request.query.get(k)}


def _status(wrong: Refused | Wrong) -> int:
    """Of HTTP; 401 would ask the browser for another way."""
    status = (refused(wrong) if isinstance(wrong, Wrong) else wrong).status
    return 403 if status == 401 else status


_LISTS = {
    "/files": "File systems",
    "/jobs": "Jobs",
    "/gpus": "GPUs under suspicion",
    "/audit": "Audit log",
}

PANELS = {"disks": "/files", "jobs": "/jobs", "nodes": "/nodes", "gpus": "/gpus"}
"""The page on which what a kind finds is shown, by the panel that it declares."""


def _overview(f: Facts) -> dict[str, Any]:
    tones = Counter(a.tone for a in f.firing)
    told = [(s.value, tones[s]) for s in sorted(Status, key=lambda s: -s.rank) if tones[s]]
    calm, sure = f.calm
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
        "panels": PANELS,
        "shown": folded(f.alerts)[:FIRST],
        "out": [g for g in f.nodes if g.state in OUT],
        "strip": Markup(grid.strip(f.node_states)) if f.nodes else "",  # noqa: S704 - words of ours
    }


def _whereabouts(f: Facts, alert: AlertFact) -> list[tuple[str, str]]:
    """Where the training, the file system and the node that an alert is about are shown."""
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


def _of(one: Any) -> str:
    return one.check if one.subject in ("", one.check) else f"{one.check} {one.subject}"
