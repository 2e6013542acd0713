"""A status page that is really served, by a real engine over a made-up state, in a thread."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from sentinel.alerting.silences import Ack, Silence
from sentinel.alerting.state import Store
from sentinel.core.model import Alert, Status
from sentinel.engine.engine import Engine
from sentinel.status.types import ClusterFact, RequestStats
from sentinel.testing import START, ManualClock
from sentinel.web.auth import Gate
from sentinel.web.rate_limit import RequestRateLimiter
from sentinel.web.server import WebServer
from sentinel.web.site import Site
from sentinel.web.snapshot_cache import LiveFacts
from tests.engine.worlds import Book, Says, world
from tests.lab.loops import LoopThread
from tests.web.scenery import KINDS, around, ledger, record, stacks, store

TOKEN = "the-token-of-the-tests"


class Stage:
    """What the test sees of it; `do` runs something in the server's own loop."""

    def __init__(self, thread: LoopThread, engine: Engine, server: WebServer) -> None:
        self.do, self.engine, self.server = thread.run, engine, server
        self._loop = thread.loop
        self.url = f"http://127.0.0.1:{server.listen_port}"
        self.fire, self.clock = Says(Status.OK, "/late"), ManualClock(START)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """The service stands still, as on SIGSTOP: connections are taken and nobody answers."""
        go = threading.Event()
        self._loop.call_soon_threadsafe(go.wait, 60)
        try:
            yield
        finally:
            go.set()

    def orders(self) -> tuple[list[Ack], list[Silence]]:
        told = self.do(self.engine.orders())
        return list(told.acks.values()), list(told.silences)


async def build(
    state: Store,
    gate: Gate,
    limits: tuple[RequestRateLimiter, RequestRateLimiter] | None = None,
    evidence: str = "",
    clusters: tuple[ClusterFact, ...] = (),
) -> tuple[Engine, WebServer, Says, ManualClock]:
    """An engine that leads on this state, with a server in front."""
    late, clock = Says(Status.OK, "/late"), ManualClock(START)
    checks: dict[str, object] = {**{name: Says() for name in KINDS}, "late": late}
    made = world(checks, {"book": Book()})
    made = replace(made, plan=replace(made.plan, cluster="h100-prod"))
    state.release_lead()
    engine = Engine(made, state, clock)
    await engine.start_leading("lab pid 1")
    many = (record(), stacks(), *(record(n, "gpu00011") for n in range(1, 61)))
    seen = around(
        {**KINDS, "late": "fs"}, *many, gpus=ledger(), evidence=evidence, clusters=clusters
    )
    told = {"squeue": RequestStats(requests=3, failures=1, seconds=0.5)}
    live = LiveFacts(engine, clock, lambda: seen, lambda: told)
    site = Site(live, gate, *(limits or ()))
    server = WebServer(engine, clock, None, site)
    await server.start_server("127.0.0.1", 0)
    return engine, server, late, clock


@contextmanager
def stage(
    alerts: Sequence[Alert] = (),
    count: int = 40,
    token: str = TOKEN,
    limits: tuple[RequestRateLimiter, RequestRateLimiter] | None = None,
    state: Store | None = None,
    evidence: str = "",
    gate: Gate | None = None,
    clusters: tuple[ClusterFact, ...] = (),
) -> Iterator[Stage]:
    """Served until the block ends."""
    with LoopThread() as thread:
        made = state or store(alerts, count)
        engine, server, late, clock = thread.run(
            build(made, gate or Gate(token), limits, evidence, clusters)
        )
        shown = Stage(thread, engine, server)
        shown.fire, shown.clock = late, clock
        try:
            yield shown
        finally:
            thread.run(server.stop_server())
            thread.run(engine.close())
