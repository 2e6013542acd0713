"""Every route for everybody: a table that is made from the routes themselves. A new one has to say
what it answers to whom."""

import pytest

from sentinel.web.server import WebServer
from tests.web.proof import of, program
from tests.web.stage import Stage
from tests.web.test_privacy import CONTENT, SECRETS, site
from tests.web.test_site import ask

BOB = "check=progress&subject=b/llm"
ADDRESSES = {
    "/alerts/{id}": "/alerts/0000000b",
    "/alerts/{id}/ack": "/alerts/0000000b/ack",
    "/alerts/{id}/silence": "/alerts/0000000b/silence",
    "/api/v1/alerts/{id}": "/api/v1/alerts/0000000b",
    "/api/v1/alerts/{id}/ack": "/api/v1/alerts/0000000b/ack",
    "/api/v1/alerts/{id}/silence": "/api/v1/alerts/0000000b/silence",
    "/api/v1{rest}": "/api/v1/none",
    "/static/{digest}/{name}": "/static/0/style.css",
    "/nodes/at": "/nodes/at?x=1&y=1",
    "/nodes/one": "/nodes/one?name=gpu00001",
    "/files/one": "/files/one?check=progress&path=b/llm",
    "/files/one.json": "/files/one.json?check=progress&path=b/llm",
    "/jobs/one": f"/jobs/one?{BOB}",
    "/jobs/one.json": f"/jobs/one.json?{BOB}",
}
"""Where a route needs to be told what: bob's training, its alert and its node."""

SAY = {
    "/alerts": {"alert": "0000000b", "deed": "ack"},
    ADDRESSES["/alerts/{id}/silence"]: {"for": "2h", "note": "x"},
}
ENDLESS = ("/events",)
"""It never ends; it tells that something changed, and not what."""

WHO = {
    "no token": {},
    "name without token": of("bob", ""),
    "token without name": of(""),
    "stranger": of("ann"),
    "owner": of("bob"),
    "operator": program(),
    "administrator": of("root"),
}

CONTENTS = (*SECRETS, str(CONTENT["loss"]), str(CONTENT["grad_norm"]))

TABLE = """\
GET / | 200 name | 200 name | 200 name | 200 name | 200 all | 200 all | 200 all
GET /alerts | 200 name | 200 name | 200 name | 200 name | 200 all | 200 all | 200 all
POST /alerts | 403 name | 403 name | 403 name | 403 name | 303 - | 303 - | 303 -
GET /alerts/{id} | 200 name | 200 name | 200 name | 200 name | 200 all | 200 all | 200 all
POST /alerts/{id}/ack | 403 name | 403 name | 403 name | 403 name | 303 - | 303 - | 303 -
POST /alerts/{id}/silence | 403 name | 403 name | 403 name | 403 name | 303 - | 303 - | 303 -
GET /api/v1 | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /api/v1/actions | 200 - | 200 - | 200 - | 200 - | 200 all | 200 all | 200 all
GET /api/v1/alerts | 200 name | 200 name | 200 name | 200 name | 200 all | 200 all | 200 all
GET /api/v1/alerts/{id} | 200 name | 200 name | 200 name | 200 name | 200 all | 200 all | 200 all
POST /api/v1/alerts/{id}/ack | 401 - | 401 - | 403 - | 403 - | 200 - | 200 - | 200 -
POST /api/v1/alerts/{id}/silence | 401 - | 401 - | 403 - | 403 - | 200 - | 200 - | 200 -
GET /api/v1/checks | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /api/v1/clusters | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /api/v1/disks | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /api/v1/gpus | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /api/v1/incidents | 200 name | 200 name | 200 name | 200 name | 200 all | 200 all | 200 all
GET /api/v1/jobs | 200 name | 200 name | 200 name | 200 name | 200 all | 200 all | 200 all
GET /api/v1/nodes | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /api/v1/openapi.json | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /api/v1/silences | 200 - | 200 - | 200 - | 200 - | 200 - | 200 name | 200 name
GET /api/v1/unsent | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /api/v1{rest} | 404 - | 404 - | 404 - | 404 - | 404 - | 404 - | 404 -
GET /audit | 200 - | 200 - | 200 - | 200 - | 200 all | 200 all | 200 all
GET /files | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /files/one | 200 name | 200 name | 200 name | 200 name | 200 name | 200 all | 200 all
GET /files/one.json | 200 - | 200 - | 200 - | 200 - | 200 - | 200 all | 200 all
GET /gpus | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /healthz | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /jobs | 200 name | 200 name | 200 name | 200 name | 200 all | 200 all | 200 all
GET /jobs/one | 200 name | 200 name | 200 name | 200 name | 200 all | 200 all | 200 all
GET /jobs/one.json | 200 - | 200 - | 200 - | 200 - | 200 all | 200 all | 200 all
GET /login | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
POST /login | 403 - | 403 - | 403 - | 403 - | 403 - | 403 - | 403 -
POST /logout | 303 - | 303 - | 303 - | 303 - | 303 - | 303 - | 303 -
GET /metrics | 200 name | 200 name | 200 name | 200 name | 200 name | 200 name | 200 name
GET /nodes | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /nodes/at | 303 - | 303 - | 303 - | 303 - | 303 - | 303 - | 303 -
GET /nodes/grid.svg | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /nodes/one | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /nodes/room.json | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
GET /static/{digest}/{name} | 200 - | 200 - | 200 - | 200 - | 200 - | 200 - | 200 -
"""
"""Route | what each of WHO gets: the HTTP status, and `all` where content of bob's training is in
it, `name` where only that it is there, `-` where neither."""


def addresses(server: WebServer) -> list[tuple[str, str]]:
    """Method and route of all that is served."""
    routes = server._runner.app.router.routes()
    named = {(r.method, r.resource.canonical) for r in routes if r.resource}
    return sorted((path, "GET" if m == "*" else m) for m, path in named if m != "HEAD")


def told(s: Stage, method: str, path: str, headers: dict[str, str]) -> str:
    """The cell of one request."""
    more: dict[str, object] = {"headers": headers}
    if method == "POST" and path.startswith("/api/"):
        body = '{"for": "2h", "reason": "x"}' if path.endswith("silence") else "{}"
        more = {"headers": {**headers, "Content-Type": "application/json"}, "data": body}
    elif method == "POST":
        more["data"] = SAY.get(path, {})
    status, text, _ = ask(s, method, path, **more)
    text = text.replace("b/llm", "", 1) if "subject=" in path or "path=" in path else text
    content = any(secret in text for secret in CONTENTS)
    return f"{status} {'all' if content else 'name' if 'b/llm' in text else '-'}"


@pytest.fixture(scope="module")
def rows() -> list[str]:
    """A service of its own for each, for an answer changes what the next one is told."""
    found: dict[tuple[str, str], list[str]] = {}
    for headers in WHO.values():
        with site(()) as s:
            for path, method in addresses(s.server):
                if path not in ENDLESS:
                    cell = told(s, method, ADDRESSES.get(path, path), headers)
                    found.setdefault((path, method), []).append(cell)
    return [f"{method} {path} | {' | '.join(cells)}" for (path, method), cells in found.items()]


def test_every_route_answers_everybody_as_the_table_says(rows: list[str]) -> None:
    assert "\n".join(rows) == TABLE.rstrip("\n")


def test_nobody_else_gets_content_or_may_answer(rows: list[str]) -> None:
    """Whatever the table says: who has no name, no token or another name gets none of it."""
    for row in rows:
        route, *cells = row.split(" | ")
        for who, cell in zip(WHO, cells, strict=True):
            if who not in ("owner", "operator", "administrator"):
                assert "all" not in cell, (route, who)
                answers = route.endswith(("/ack", "/silence")) or route == "POST /alerts"
                assert not (answers and cell[0] in "23"), (route, who)
