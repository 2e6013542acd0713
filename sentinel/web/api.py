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
from sentinel.core.guidance import name_config
from sentinel.core.text import shortened, visible
from sentinel.status import types
from sentinel.status.privacy import Viewer
from sentinel.status.types import Facts
from sentinel.web import messages, request_body
from sentinel.web.auth import Gate, RequestRefused, make_order_refusal
from sentinel.web.messages import AckBody, ApiError, Explained, OrderResult, SilenceBody, Summary
from sentinel.web.page_cache import PageCache, parse_query_number
from sentinel.web.render import PAGE_HEADERS
from sentinel.web.snapshot_cache import LiveFacts
from sentinel.web.tables import MOST, SIZE, filter_rows, render_csv, slice_page

API_PATH = "/api/v1"
_SCHEMA_REF = "#/components/schemas/{name}"


LIST_ENDPOINTS: Mapping[str, tuple[type[Struct], str]] = {
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
def build_openapi_document() -> dict[str, Any]:
    """The OpenAPI 3.1 description of the API, as JSON-ready objects."""
    said = [messages.Summary, messages.Explained, messages.OrderResult, messages.ApiError]
    kinds = [
        *said,
        messages.AckBody,
        messages.SilenceBody,
        *(kind for kind, _ in LIST_ENDPOINTS.values()),
    ]
    _, components = msgspec.json.schema_components(kinds, ref_template=_SCHEMA_REF)
    secured = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "sentinel", "version": __version__, "description": _API_DESCRIPTION},
        "servers": [{"url": "/"}],
        "paths": _build_paths(),
        "components": {"schemas": components, "securitySchemes": {"token": secured}},
    }


_API_DESCRIPTION = (
    "What sentinel sees. Times are seconds since 1970 UTC; names ending in _s are seconds, in "
    "_bytes bytes, in _percent shares of 100. Fields may be added within version 1. A list takes "
    "its fields as filters (?check=gpus&severity=critical) and format=csv. Alerts come in pages: "
    'the Link header with rel="next" (RFC 8288) leads to the next one.'
)


def _build_paths() -> dict[str, Any]:
    paths: dict[str, Any] = {
        API_PATH: {
            "get": _describe_get(
                "summary", "The whole in a few numbers", _make_schema_ref("Summary")
            )
        },
    }
    for name, (kind, text) in LIST_ENDPOINTS.items():
        rows = {"type": "array", "items": _make_schema_ref(kind.__name__)}
        paths[f"{API_PATH}/{name}"] = {
            "get": _describe_get(name, text, rows, 400, *_EXTRA_STATUS_CODES.get(name, ()))
        }
    paths[f"{API_PATH}/alerts"]["get"]["parameters"] = [_LIMIT_PARAMETER, _AFTER_PARAMETER]
    paths[f"{API_PATH}/alerts"]["get"]["responses"]["200"]["headers"] = {"Link": _LINK_HEADER}
    one = {
        **_describe_get("alert", "One alert, and why", _make_schema_ref("Explained"), 404),
        "parameters": [_ID_PARAMETER],
    }
    paths[f"{API_PATH}/alerts/{{id}}"] = {"get": one}
    paths[f"{API_PATH}/alerts/{{id}}/ack"] = {
        "post": _describe_post("ack", "Somebody has it", "Answer")
    }
    paths[f"{API_PATH}/alerts/{{id}}/silence"] = {
        "post": _describe_post("silence", "Nobody is told", "Quiet")
    }
    return paths


_ID_PARAMETER = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1},
}
_EXTRA_STATUS_CODES = {"alerts": (404,)}
_LIMIT_PARAMETER = {
    "name": "limit",
    "in": "query",
    "description": "Alerts on a page",
    "schema": {"type": "integer", "minimum": 1, "maximum": MOST, "default": SIZE},
}
_AFTER_PARAMETER = {
    "name": "after",
    "in": "query",
    "description": "Where the page begins, as the Link header of the one before says",
    "schema": {"type": "string", "minLength": 1},
}
_LINK_HEADER = {
    "description": 'The next page, with rel="next"; missing on the last',
    "schema": {"type": "string"},
}


def _make_schema_ref(name: str) -> dict[str, str]:
    return {"$ref": _SCHEMA_REF.format(name=name)}


def _describe_get(name: str, text: str, schema: Mapping[str, Any], *faults: int) -> dict[str, Any]:
    answers = {"200": {"description": "It", "content": {"application/json": {"schema": schema}}}}
    return {
        "operationId": name,
        "summary": text,
        "responses": answers
        | {str(code): _describe_error_response(code) for code in (*faults, 421, 429, 503)},
    }


def _describe_post(name: str, text: str, body: str) -> dict[str, Any]:
    said = _describe_get(
        name, text, _make_schema_ref("Done"), 400, 401, 403, 404, 405, 408, 409, 413, 415
    )
    content = {"application/json": {"schema": _make_schema_ref(body)}}
    return {
        **said,
        "parameters": [_ID_PARAMETER],
        "requestBody": {"required": True, "content": content},
        "security": [{"token": []}],
    }


def _describe_error_response(code: int) -> dict[str, Any]:
    described = {"description": _STATUS_TEXTS[code]}
    if code in (421, 429):  # the server answers these with pages before the API is reached
        return described
    return {**described, "content": {"application/json": {"schema": _make_schema_ref("Fault")}}}


_STATUS_TEXTS = {
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


_KNOWN_PATHS = re.compile(
    rf"{API_PATH}(/openapi\.json|/({'|'.join(LIST_ENDPOINTS)})|/alerts/[^/]+(?P<post>/(ack|silence))?)?"
)
RequestHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ApiRoutes:
    """Handlers for every address below BASE."""

    def __init__(self, live: LiveFacts, gate: Gate, shown: PageCache) -> None:
        self._live, self._gate, self._shown = live, gate, shown
        self.routes: Sequence[web.AbstractRouteDef] = (
            web.get(API_PATH, _answer_as_json(self._get_summary)),
            web.get(f"{API_PATH}/openapi.json", _answer_as_json(self._get_openapi)),
            *(
                web.get(f"{API_PATH}/{name}", _answer_as_json(self._make_list_handler(name)))
                for name in LIST_ENDPOINTS
            ),
            web.get(f"{API_PATH}/alerts/{{id}}", _answer_as_json(self._get_alert)),
            web.post(f"{API_PATH}/alerts/{{id}}/ack", _answer_as_json(self._post_ack)),
            web.post(f"{API_PATH}/alerts/{{id}}/silence", _answer_as_json(self._post_silence)),
            web.route("*", f"{API_PATH}{{rest:(/.*)?}}", _answer_as_json(_refuse_unknown_path)),
        )

    async def _get_summary(self, request: web.Request) -> Any:
        facts = await self._shown.get_visible_facts(request)
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
            whole=self._shown.get_visitor(request).eyes.all,
        )

    async def _get_openapi(self, request: web.Request) -> Any:
        return build_openapi_document()

    def _make_list_handler(self, name: str) -> RequestHandler:
        async def answer_list(request: web.Request) -> Any:
            facts: Facts = await self._shown.get_visible_facts(request)
            kind, query = LIST_ENDPOINTS[name][0], request.query
            further = ("format", *(_PAGING_PARAMETERS if name == "alerts" else ()))
            wanted = {key: query.getall(key) for key in query if key not in further}
            wrong = [key for key in wanted if key not in kind.__struct_fields__]
            if wrong:
                raise RequestRefused(f"no such field: {shortened(visible(wrong[0]), 60)}", 400)
            rows: Sequence[Any] = filter_rows(getattr(facts, name), wanted)
            table = query.get("format") == "csv"
            more: dict[str, str] = {}
            if name == "alerts" and (not table or any(key in query for key in _PAGING_PARAMETERS)):
                rows, more = _select_page(rows, request)
            if not table:
                return _make_json_response(rows, more=more)
            headers = {**PAGE_HEADERS, **more}
            return web.Response(
                text=render_csv(kind, rows), content_type="text/csv", headers=headers
            )

        return answer_list

    async def _get_alert(self, request: web.Request) -> Any:
        name, facts = request.match_info["id"], await self._shown.get_visible_facts(request)
        line, told = await self._shown.read_alert_past(request, name)
        found = next((a for a in facts.alerts if a.id == name), None)
        if found is None and not line:
            raise RequestRefused("no such alert", 404)
        return Explained(id=name, alert=found, happened=tuple(line), told=tuple(told))

    async def _post_ack(self, request: web.Request) -> Any:
        name, eyes = self._authorize_order(request)
        said = await request_body.read_json_body(request, AckBody)
        who = self._gate.name_requester(
            request.headers, said.who, "the API", self._live.get_now_s()
        )
        await self._shown.require_own_alerts(eyes, [name])
        await self._live.acknowledge_alert(name, orders.Author(who, "api", said.note))
        text = "Acknowledged: no repeats and no escalation until it ends."
        return OrderResult(alert=name, done=text, who=who)

    async def _post_silence(self, request: web.Request) -> Any:
        name, eyes = self._authorize_order(request)
        said = await request_body.read_json_body(request, SilenceBody)
        who = self._gate.name_requester(
            request.headers, said.who, "the API", self._live.get_now_s()
        )
        await self._shown.require_own_alerts(eyes, [name])
        order = await self._live.silence_one_alert(
            name, said.for_, orders.Author(who, "api", said.reason)
        )
        end = name_config(f"sentinel alerts unsilence {order.id}", self._live.around().config)
        text = f"Silenced; end it with: {end}"
        return OrderResult(alert=name, done=text, who=who, silence=order.id)

    def _authorize_order(self, request: web.Request) -> tuple[str, Viewer]:
        """The id of the alert, and the viewer whose alerts may be answered. Raises
        RequestRefused."""
        eyes = self._gate.authorize_request(request.headers, "", self._live.get_now_s())
        return request.match_info["id"], eyes


_PAGING_PARAMETERS = ("limit", "after")


def _select_page(
    alerts: Sequence[types.AlertFact], request: web.Request
) -> tuple[Sequence[types.AlertFact], dict[str, str]]:
    """The page of alerts that the request asks for, and the header that leads to the next page (RFC
    8288). Raises RequestRefused."""
    query = request.query
    size = parse_query_number(query.get("limit", str(SIZE)))
    if not 1 <= size <= MOST:
        raise RequestRefused(f"limit: a number from 1 to {MOST}", 400)
    try:
        some, after = slice_page(alerts, size, query.get("after"))
    except ValueError as error:
        raise RequestRefused(f"after: {error}; begin without it", 404) from error
    if not after:
        return some, {}
    same = [(key, value) for key, value in query.items() if key != "after"]
    return some, {"Link": f'<{request.path}?{urlencode([*same, ("after", after)])}>; rel="next"'}


def _answer_as_json(
    handler: RequestHandler | Callable[[web.Request], Awaitable[Any]],
) -> RequestHandler:
    """Wrap a handler so that its answers and errors are sent as JSON."""

    async def answer_request(request: web.Request) -> web.StreamResponse:
        try:
            told = await handler(request)
            return told if isinstance(told, web.Response) else _make_json_response(told)
        except (RequestRefused, orders.WrongOrder) as wrong:
            error = make_order_refusal(wrong) if isinstance(wrong, orders.WrongOrder) else wrong
            return _make_json_response(
                ApiError(error=str(error)),
                error.status,
                _build_status_headers(error.status, request),
            )
        except web.HTTPException as error:
            return _make_json_response(ApiError(error=error.reason.lower()), error.status)
        except StoreError:
            return _make_json_response(
                ApiError(error="the state cannot be read or written now"), 503
            )

    return answer_request


async def _refuse_unknown_path(request: web.Request) -> Any:
    if _KNOWN_PATHS.fullmatch(request.path):
        raise RequestRefused("not by this method", 405)
    raise RequestRefused("there is nothing here", 404)


def _build_status_headers(status: int, request: web.Request) -> dict[str, str]:
    """Headers that HTTP asks for with a status (RFC 9110, sections 11.6.1 and 10.2.1)."""
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    known = _KNOWN_PATHS.fullmatch(request.path)
    if status == 405 and known:
        return {"Allow": "POST" if known["post"] else "GET, HEAD"}
    return {}


def _make_json_response(
    value: Any, status: int = 200, more: Mapping[str, str] | None = None
) -> web.Response:
    headers = {**PAGE_HEADERS, **(more or {})}
    told = msgspec.json.encode(value)
    return web.Response(body=told, status=status, content_type="application/json", headers=headers)
