"""The description of the API, made from the very classes that it answers with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from sentinel import __version__
from sentinel.status import types
from sentinel.web import messages

BASE = "/api/v1"
_REF = "#/components/schemas/{name}"


ROWS: Mapping[str, tuple[type[Struct], str]] = {
    "alerts": (types.AlertFact, "Pending and firing alerts, the worst first"),
    "checks": (types.CheckFact, "Checks with their last run"),
    "disks": (types.DiskFact, "File systems"),
    "jobs": (types.JobFact, "Trainings that are watched"),
    "nodes": (types.NodesFact, "Nodes by state and reason"),
    "gpus": (types.GpuFact, "GPUs under suspicion"),
    "actions": (types.ActionFact, "The newest entries of the audit log"),
    "unsent": (types.UnsentFact, "Messages not sent yet"),
    "silences": (types.SilenceFact, "Silences in force"),
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
    "_bytes bytes, in _percent shares of 100. Fields may be added within version 1."
)


def _paths() -> dict[str, Any]:
    paths: dict[str, Any] = {
        BASE: {"get": _get("summary", "The whole in a few numbers", _ref("Summary"))},
    }
    for name, (kind, text) in ROWS.items():
        rows = {"type": "array", "items": _ref(kind.__name__)}
        paths[f"{BASE}/{name}"] = {"get": _get(name, text, rows)}
    one = {**_get("alert", "One alert, and why", _ref("Explained"), 404), "parameters": [_ID]}
    paths[f"{BASE}/alerts/{{id}}"] = {"get": one}
    paths[f"{BASE}/alerts/{{id}}/ack"] = {"post": _post("ack", "Somebody has it", "Answer")}
    paths[f"{BASE}/alerts/{{id}}/silence"] = {"post": _post("silence", "Nobody is told", "Quiet")}
    return paths


_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


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
    400: "The body is not right",
    401: "No token, or the wrong one",
    403: "No token is configured, or the request is of another site",
    404: "No such alert now",
    405: "Not by this method",
    408: "The body did not come in time",
    409: "It does not fire yet",
    413: "The body is too large",
    415: "Not JSON",
    421: "Sent to a name that is none of this server's",
    429: "Too many requests",
    503: "The state cannot be read or written now",
}
