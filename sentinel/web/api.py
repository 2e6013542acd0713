"""The JSON API, version 1: the same facts, for chat bots and scripts.

Described by /api/v1/openapi.json. Times are seconds since 1970 UTC. Fields may be added within a
version; none is renamed or taken away.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from aiohttp import web

from sentinel.alerting import orders
from sentinel.core.errors import StoreError
from sentinel.status import detail
from sentinel.status.types import Facts
from sentinel.web import openapi, request_body
from sentinel.web.auth import Gate, Refused, refused
from sentinel.web.messages import Answer, Done, Explained, Fault, Quiet, Summary
from sentinel.web.openapi import BASE, ROWS
from sentinel.web.render import HEADERS
from sentinel.web.snapshot_cache import Live

_KNOWN = re.compile(
    rf"{BASE}(/openapi\.json|/({'|'.join(ROWS)})|/alerts/[^/]+(?P<post>/(ack|silence))?)?"
)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Api:
    """Every address below BASE."""

    def __init__(self, live: Live, gate: Gate) -> None:
        self._live, self._gate = live, gate
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
        facts = await self._live.facts()
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
        )

    async def _openapi(self, request: web.Request) -> Any:
        return openapi.document()

    def _list(self, name: str) -> Handler:
        async def listed(request: web.Request) -> Any:
            facts: Facts = await self._live.facts()
            return getattr(facts, name)

        return listed

    async def _alert(self, request: web.Request) -> Any:
        name, facts = request.match_info["id"], await self._live.facts()
        line, told = await self._live.source.read(
            lambda store: (detail.happened(store, name), detail.delivered(store, name))
        )
        found = next((a for a in facts.alerts if a.id == name), None)
        if found is None and not line:
            raise Refused("no such alert", 404)
        return Explained(id=name, alert=found, happened=tuple(line), told=tuple(told))

    async def _ack(self, request: web.Request) -> Any:
        self._gate.admit(request.headers, "")
        said = await request_body.json(request, Answer)
        who = self._gate.who(request.headers, said.who, "the API")
        name = request.match_info["id"]
        await self._live.acknowledge(name, orders.Said(who, "api", said.note))
        text = "Acknowledged: no repeats and no escalation until it ends."
        return Done(alert=name, done=text, who=who)

    async def _silence(self, request: web.Request) -> Any:
        self._gate.admit(request.headers, "")
        said = await request_body.json(request, Quiet)
        who = self._gate.who(request.headers, said.who, "the API")
        name = request.match_info["id"]
        order = await self._live.silence(name, said.for_, orders.Said(who, "api", said.reason))
        text = f"Silenced; end it with: sentinel alerts unsilence {order.id}"
        return Done(alert=name, done=text, who=who, silence=order.id)


def _told(handler: Handler | Callable[[web.Request], Awaitable[Any]]) -> Handler:
    """As JSON, faults too."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return _json(await handler(request))
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
