"""The use of GPUs as a real Prometheus has it from DCGM's exporter: a series that is missing, stale or
full of holes is unknown, and never idle."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from sentinel.checks.idle import IdleCheck
from sentinel.checks.idle.stored_use import METRIC, ask_stored_use
from sentinel.clock import SystemClock
from sentinel.core.clock import SECOND
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Status
from sentinel.core.values import Duration
from sentinel.testing import START
from tests.checks.idle.prometheus import prometheus, why_no_prometheus
from tests.checks.idle.world import IdleNode, World
from tests.lab.gpus import gpus_of
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.skipif(bool(why := why_no_prometheus()), reason=why or "")

WINDOW_S, LOOK_S, COUNT = 600.0, 120.0, 4
NOW = START.wall // 10**6
SPAN = range(-300, 1200, 15)
"""Seconds from the first look on."""

BLANK = "9223372036854775794"
"""A value that DCGM does not know, as the README of dcgm-exporter shows it."""


class Told:
    """What Prometheus holds of the GPUs of one node: 0 %, but for what a case says. The node has the
    number of the case."""

    def __init__(self, number: int) -> None:
        self.uuids = [gpu.uuid for gpu in gpus_of(number, COUNT)]
        self.labels = {"Hostname": "node-0"}
        self.odd: dict[int, object] = {}  # Of the first GPU, by second.
        self.seconds: Iterable[int] = SPAN  # Of the first GPU.
        self.more: list[str] = []

    def write(self, uuid: str, seconds: Iterable[int], **labels: str) -> Iterator[str]:
        """The samples of one series."""
        named = {"UUID": uuid, **self.labels, **labels}
        text = ",".join(f'{name}="{value}"' for name, value in named.items())
        odd = self.odd if uuid == self.uuids[0] else {}
        return (f"{METRIC}{{{text}}} {odd.get(at, 0)} {NOW + at}" for at in seconds)

    def lines(self) -> Iterator[str]:
        for place, uuid in enumerate(self.uuids):
            yield from self.write(uuid, SPAN if place else self.seconds)
        yield from self.more


def busy(told: Told) -> None:
    told.odd = dict.fromkeys(SPAN, 55)


def burst(told: Told) -> None:
    told.odd = {315: 97}


def missing(told: Told) -> None:
    told.seconds = ()


def stale(told: Told) -> None:
    told.seconds = [at for at in SPAN if at < 400]


def blank(told: Told) -> None:
    told.odd = dict.fromkeys(SPAN, BLANK)


def not_a_number(told: Told) -> None:
    told.odd = dict.fromkeys(SPAN, "NaN")


def with_domain(told: Told) -> None:
    told.labels = {"Hostname": "NODE-0.example.org"}


def next_job(told: Told) -> None:
    """The label of the job changes, so the series is another one."""
    told.seconds = [at for at in SPAN if at < 0]
    told.more = [*told.write(told.uuids[0], [at for at in SPAN if at >= 0], hpc_job="4711")]


def twin(told: Told) -> None:
    """A node of this name in another cluster is at work."""
    told.more = [line.replace("} 0 ", "} 99 ") for line in told.write("GPU-of-a-twin", SPAN)]


def only_twin(told: Told) -> None:
    """The exporter of this node is down; a node of this name in another cluster does nothing."""
    missing(told)
    told.more = [*told.write("GPU-of-a-twin-2", SPAN)]


IDLE, UNKNOWN, OK = Status.WARNING, Status.UNKNOWN, Status.OK
CASES = {
    "nothing is used": (lambda _: None, IDLE, f"{COUNT} of {COUNT} GPUs unused for 10m"),
    "one is busy": (busy, IDLE, "3 of 4 GPUs unused for 10m"),
    "a burst between two looks": (burst, IDLE, "3 of 4 GPUs unused"),
    "no series": (missing, UNKNOWN, f"Prometheus has no {METRIC} of GPU-"),
    "stale": (stale, UNKNOWN, "Prometheus has no"),
    "blank": (blank, UNKNOWN, "Prometheus has no"),
    "not a number": (not_a_number, UNKNOWN, "Prometheus has no"),
    "names with a domain": (with_domain, IDLE, "4 of 4"),
    "the label of the job changes": (next_job, IDLE, "4 of 4"),
    "a node of this name elsewhere": (twin, IDLE, "4 of 4"),
    "only a node of this name elsewhere": (only_twin, UNKNOWN, "Prometheus has no"),
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    lines = list[str]()
    for number, (change, _, _) in enumerate(CASES.values()):
        told = Told(number)
        change(told)
        lines += told.lines()
    hole = Told(99)
    hole.seconds = [at for at in SPAN if not 420 < at < 450]
    lines += hole.lines()
    with prometheus(tmp_path_factory.mktemp("idle") / "p", lines) as found:
        yield found


def make_world(address: str, number: int) -> World:
    """A job on a node whose own samples are not asked for."""
    world = World(prometheus=address, window=Duration(WINDOW_S))
    node = IdleNode(number, COUNT)
    node.steps = world.nodes["node-0"].steps
    node.unread = {"gpu_use": None}  # type: ignore[dict-item]
    world.nodes, world.held = {"node-0": node}, {"4711": COUNT}
    return world


@pytest.mark.parametrize("name", CASES)
def test_only_what_was_seen_all_the_time_is_idle(address: str, name: str) -> None:
    number, (_, status, words) = [*CASES].index(name), CASES[name]
    (found,) = make_world(address, number).watch(WINDOW_S + LOOK_S, LOOK_S)[-1].findings
    assert (found.status, words in found.summary) == (status, True), found.summary


def test_a_hole_begins_the_window_anew(address: str) -> None:
    """30 seconds without a sample, where 20 are the most."""
    world = make_world(address, 99)
    reports = world.watch(2 * WINDOW_S, LOOK_S)
    told = [report.findings[0].status for report in reports]
    assert (told.count(UNKNOWN), told.count(IDLE)) == (1, 0)
    assert f"of {Told(99).uuids[0]} for 30s" in reports[told.index(UNKNOWN)].findings[0].summary


def test_a_divided_gpu_is_unknown_whatever_is_stored(address: str) -> None:
    world = make_world(address, 0)
    node = world.nodes["node-0"]
    node.page = node.probe().gpus.replace("<current_mig>Disabled", "<current_mig>Enabled")  # type: ignore[union-attr]
    (found,) = world.watch(LOOK_S, LOOK_S)[-1].findings
    assert (found.status, "(MIG)" in found.summary) == (UNKNOWN, True)


class _Exporter(BaseHTTPRequestHandler):
    """DCGM's exporter with one GPU at work."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(f'{METRIC}{{gpu="0",UUID="GPU-live",Hostname="n"}} 42\n'.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("samples", "series", "peaks"),
    [(60, 3, {"GPU-0": 7.0}), (20_000, 1, None), (0, 200_001, None)],
)
def test_more_samples_than_a_scraper_takes_are_unknown(
    samples: int, series: int, peaks: Mapping[str, float] | None
) -> None:
    """They are not decoded: no other thread runs while 64 MiB become objects."""
    now = SystemClock().now()
    values = [[now.wall / SECOND - 60 + n * 60 / samples, "7"] for n in range(samples)]
    one = json.dumps({"metric": {"UUID": "GPU-0"}, "values": values})

    class Peer(_Exporter):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            text = f'{{"data": {{"result": [{",".join([one] * series)}]}}}}'
            self.wfile.write(text.encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Peer)
    Thread(target=server.serve_forever, daemon=True).start()
    told: Mapping[str, float] | None = None
    with suppress(CannotTell):
        url = f"http://127.0.0.1:{server.server_port}"
        told = ask_stored_use(url, 50.0, 10.0, now, 30.0).peaks
    server.shutdown()
    server.server_close()
    assert told == peaks


@pytest.fixture
def exporter() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Exporter)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.long
def test_what_is_scraped_is_seen_until_the_exporter_is_gone(
    tmp_path: Path, exporter: ThreadingHTTPServer
) -> None:
    gap = 5.0
    with prometheus(tmp_path / "p", scraped=f"127.0.0.1:{exporter.server_port}") as url:

        def seen() -> Mapping[str, float]:
            return ask_stored_use(url, 0.0, gap, SystemClock().now(), 30.0).peaks

        wait_until(lambda: seen() == {"GPU-live": 42.0}, "samples of all the time", 60)
        exporter.shutdown()
        exporter.server_close()
        wait_until(lambda: not seen(), "stale", 60)


def test_no_answer_and_one_that_is_none_are_unknown(
    address: str, exporter: ThreadingHTTPServer
) -> None:
    wrong = {
        f"{address}/x": "answered 404",
        f"http://127.0.0.1:{exporter.server_port}": "gave no proper answer",
        "http://127.0.0.1:9": "cannot connect",
    }
    for url, words in wrong.items():
        with pytest.raises(CannotTell, match=words):
            make_world(url, 0).look()


def test_an_address_is_one() -> None:
    with pytest.raises(Invalid):
        IdleCheck(prometheus="prometheus:9090")
