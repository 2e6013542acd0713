"""The JSON API, version 1: the same facts, for chat bots and scripts.

Described by /api/v1/openapi.json. Times are seconds since 1970 UTC. Fields may be added within a
version; none is renamed or taken away.

The description of the API, made from the very classes that it answers with.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlencode

import msgspec
from aiohttp import web
from msgspec import Struct

from sentinel import __version__
from sentinel.alerting import orders
from sentinel.core.errors import StoreError
from sentinel.core.text import shortened, visible
from sentinel.status import types
from sentinel.status.privacy import Eyes
from sentinel.status.types import Facts
from sentinel.web import messages, request_body
from sentinel.web.auth import Gate, Refused, refused
from sentinel.web.messages import Answer, Done, Explained, Fault, Quiet, Summary
from sentinel.web.page_cache import Shown, number_of
from sentinel.web.render import HEADERS
from sentinel.web.snapshot_cache import Live
from sentinel.web.tables import MOST, SIZE, as_csv, chosen, page

BASE = "/api/v1"
_REF = "#/components/schemas/{name}"


ROWS: Mapping[str, tuple[type[Struct], str]] = {
    "alerts": (types.AlertFact, "Pending and firing alerts, the worst first"),
    "incidents": (types.IncidentFact, "Incidents: alerts of one cause, the worst first"),
    "checks": (types.CheckFact, "Checks with their last run"),
    "disks": (types.DiskFact, "File systems"),
    "jobs": (types.JobFact, "Trainings that are watched"),
    "nodes": (types.NodesFact, "Nodes by state and reason"),
    "gpus": (types.GpuFact, "GPUs under suspicion"),
    "actions": (types.ActionFact, "The newest entries of the audit log"),
    "unsent": (types.UnsentFact, "Messages not sent yet"),
    "silences": (types.SilenceFact, "Silences in force"),
    "clusters": (types.ClusterFact, "Clusters of other sentinels, as their API says"),
}


@cache
def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    said = [messages.Summary, messages.Explained, messages.Done, messages.Fault]
    kinds = [*said, messages.Answer, messages.Quiet, *(kind for kind, _ in ROWS.values())]
    _, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    secured = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "sentinel", "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "paths": _paths(),
        "components": {"schemas": components, "securitySchemes": {"token": secured}},
    }


_ABOUT = (
    "What sentinel sees. Times are seconds since 1970 UTC; names ending in _s are seconds, in "
    "_bytes bytes, in _percent shares of 100. Fields may be added within version 1. A list takes "
    "its fields as filters (?check=gpus&severity=critical) and format=csv. Alerts come in pages: "
    'the Link header with rel="next" (RFC 8288) leads to the next one.'
)


def _paths() -> dict[str, Any]:
    paths: dict[str, Any] = {
        BASE: {"get": _get("summary", "The whole in a few numbers", _ref("Summary"))},
    }
    for name, (kind, text) in ROWS.items():
        rows = {"type": "array", "items": _ref(kind.__name__)}
        paths[f"{BASE}/{name}"] = {"get": _get(name, text, rows, 400, *_PAGED.get(name, ()))}
    paths[f"{BASE}/alerts"]["get"]["parameters"] = [_LIMIT, _AFTER]
    paths[f"{BASE}/alerts"]["get"]["responses"]["200"]["headers"] = {"Link": _LINK}
    one = {**_get("alert", "One alert, and why", _ref("Explained"), 404), "parameters": [_ID]}
    paths[f"{BASE}/alerts/{{id}}"] = {"get": one}
    paths[f"{BASE}/alerts/{{id}}/ack"] = {"post": _post("ack", "Somebody has it", "Answer")}
    paths[f"{BASE}/alerts/{{id}}/silence"] = {"post": _post("silence", "Nobody is told", "Quiet")}
    return paths


_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
_PAGED = {"alerts": (404,)}
_LIMIT = {
    "name": "limit",
    "in": "query",
    "description": "Alerts on a page",
    "schema": {"type": "integer", "minimum": 1, "maximum": MOST, "default": SIZE},
}
_AFTER = {
    "name": "after",
    "in": "query",
    "description": "Where the page begins, as the Link header of the one before says",
    "schema": {"type": "string", "minLength": 1},
}
_LINK = {
    "description": 'The next page, with rel="next"; missing on the last',
    "schema": {"type": "string"},
}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": _REF.format(name=name)}


def _get(name: str, text: str, schema: Mapping[str, Any], *faults: int) -> dict[str, Any]:
    answers = {"200": {"description": "It", "content": {"application/json": {"schema": schema}}}}
    return {
        "operationId": name,
        "summary": text,
        "responses": answers | {str(code): _fault(code) for code in (*faults, 421, 429, 503)},
    }


def _post(name: str, text: str, body: str) -> dict[str, Any]:
    said = _get(name, text, _ref("Done"), 400, 401, 403, 404, 405, 408, 409, 413, 415)
    content = {"application/json": {"schema": _ref(body)}}
    return {
        **said,
        "parameters": [_ID],
        "requestBody": {"required": True, "content": content},
        "security": [{"token": []}],
    }


def _fault(code: int) -> dict[str, Any]:
    described = {"description": _WORDS[code]}
    if code in (421, 429):  # by the server in front of all, as a page
        return described
    return {**described, "content": {"application/json": {"schema": _ref("Fault")}}}


_WORDS = {
    400: "The body, or the name of a filter, is not right",
    401: "No token, or the wrong one",
    403: "No token is configured, or the request is of another site",
    404: "No such alert now, or no such page",
    405: "Not by this method",
    408: "The body did not come in time",
    409: "It does not fire yet",
    413: "The body is too large",
    415: "Not JSON",
    421: "Sent to a name that is none of this server's",
    429: "Too many requests",
    503: "The state cannot be read or written now",
}


_KNOWN = re.compile(
    rf"{BASE}(/openapi\.json|/({'|'.join(ROWS)})|/alerts/[^/]+(?P<post>/(ack|silence))?)?"
)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Api:
    """Every address below BASE."""

    def __init__(self, live: Live, gate: Gate, shown: Shown) -> None:
        self._live, self._gate, self._shown = live, gate, shown
        self.routes: Sequence[web.AbstractRouteDef] = (
            web.get(BASE, _told(self._all)),
            web.get(f"{BASE}/openapi.json", _told(self._openapi)),
            *(web.get(f"{BASE}/{name}", _told(self._list(name))) for name in ROWS),
            web.get(f"{BASE}/alerts/{{id}}", _told(self._alert)),
            web.post(f"{BASE}/alerts/{{id}}/ack", _told(self._ack)),
            web.post(f"{BASE}/alerts/{{id}}/silence", _told(self._silence)),
            web.route("*", f"{BASE}{{rest:(/.*)?}}", _told(_nothing)),
        )

    async def _all(self, request: web.Request) -> Any:
        facts = await self._shown.facts(request)
        return Summary(
            at=facts.at,
            cluster=facts.cluster,
            status=facts.status,
            leader=facts.leader,
            notices=facts.notices,
            firing=len(facts.firing),
            pending=len(facts.alerts) - len(facts.firing),
            node_states=dict(facts.node_states),
            queue=dict(facts.queue),
            nodes_seen=facts.nodes_seen,
            nodes_trouble=facts.nodes_trouble,
            blind=sum(c.blind for c in facts.checks),
            whole=self._shown.viewer(request).eyes.all,
        )

    async def _openapi(self, request: web.Request) -> Any:
        return document()

    def _list(self, name: str) -> Handler:
        async def listed(request: web.Request) -> Any:
            facts: Facts = await self._shown.facts(request)
            kind, query = ROWS[name][0], request.query
            further = ("format", *(_PAGING if name == "alerts" else ()))
            wanted = {key: query.getall(key) for key in query if key not in further}
            wrong = [key for key in wanted if key not in kind.__struct_fields__]
            if wrong:
                raise Refused(f"no such field: {shortened(visible(wrong[0]), 60)}", 400)
            rows: Sequence[Any] = chosen(getattr(facts, name), wanted)
            table = query.get("format") == "csv"
            more: dict[str, str] = {}
            if name == "alerts" and (not table or any(key in query for key in _PAGING)):
                rows, more = _page(rows, request)
            if not table:
                return _json(rows, more=more)
            headers = {**HEADERS, **more}
            return web.Response(text=as_csv(kind, rows), content_type="text/csv", headers=headers)

        return listed

    async def _alert(self, request: web.Request) -> Any:
        name, facts = request.match_info["id"], await self._shown.facts(request)
        line, told = await self._shown.past(request, name)
        found = next((a for a in facts.alerts if a.id == name), None)
        if found is None and not line:
            raise Refused("no such alert", 404)
        return Explained(id=name, alert=found, happened=tuple(line), told=tuple(told))

    async def _ack(self, request: web.Request) -> Any:
        name, eyes = self._asked(request)
        said = await request_body.json(request, Answer)
        who = self._gate.who(request.headers, said.who, "the API", self._live.seconds())
        await self._shown.own(eyes, [name])
        await self._live.acknowledge(name, orders.Said(who, "api", said.note))
        text = "Acknowledged: no repeats and no escalation until it ends."
        return Done(alert=name, done=text, who=who)

    async def _silence(self, request: web.Request) -> Any:
        name, eyes = self._asked(request)
        said = await request_body.json(request, Quiet)
        who = self._gate.who(request.headers, said.who, "the API", self._live.seconds())
        await self._shown.own(eyes, [name])
        order = await self._live.silence(name, said.for_, orders.Said(who, "api", said.reason))
        text = f"Silenced; end it with: sentinel alerts unsilence {order.id}"
        return Done(alert=name, done=text, who=who, silence=order.id)

    def _asked(self, request: web.Request) -> tuple[str, Eyes]:
        """The alert, and whose alerts may be answered; raises Refused."""
        eyes = self._gate.admit(request.headers, "", self._live.seconds())
        return request.match_info["id"], eyes


_PAGING = ("limit", "after")


def _page(
    alerts: Sequence[types.AlertFact], request: web.Request
) -> tuple[Sequence[types.AlertFact], dict[str, str]]:
    """The page that is asked for, and the header that leads to the next (RFC 8288)."""
    query = request.query
    size = number_of(query.get("limit", str(SIZE)))
    if not 1 <= size <= MOST:
        raise Refused(f"limit: a number from 1 to {MOST}", 400)
    try:
        some, after = page(alerts, size, query.get("after"))
    except ValueError as error:
        raise Refused(f"after: {error}; begin without it", 404) from error
    if not after:
        return some, {}
    same = [(key, value) for key, value in query.items() if key != "after"]
    return some, {"Link": f'<{request.path}?{urlencode([*same, ("after", after)])}>; rel="next"'}


def _told(handler: Handler | Callable[[web.Request], Awaitable[Any]]) -> Handler:
    """As JSON, faults too."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            told = await handler(request)
            return told if isinstance(told, web.Response) else _json(told)
        except (Refused, orders.Wrong) as wrong:
            error = refused(wrong) if isinstance(wrong, orders.Wrong) else wrong
            return _json(Fault(error=str(error)), error.status, _further(error.status, request))
        except web.HTTPException as error:
            return _json(Fault(error=error.reason.lower()), error.status)
        except StoreError:
            return _json(Fault(error="the state cannot be read or written now"), 503)

    return answer


async def _nothing(request: web.Request) -> Any:
    if _KNOWN.fullmatch(request.path):
        raise Refused("not by this method", 405)
    raise Refused("there is nothing here", 404)


def _further(status: int, request: web.Request) -> dict[str, str]:
    """Headers that HTTP asks for with a status (RFC 9110, sections 11.6.1 and 10.2.1)."""
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    known = _KNOWN.fullmatch(request.path)
    if status == 405 and known:
        return {"Allow": "POST" if known["post"] else "GET, HEAD"}
    return {}


def _json(value: Any, status: int = 200, more: Mapping[str, str] | None = None) -> web.Response:
    headers = {**HEADERS, **(more or {})}
    told = msgspec.json.encode(value)
    return web.Response(body=told, status=status, content_type="application/json", headers=headers)
