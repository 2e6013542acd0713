"""Several sentinels on one PostgreSQL: the leader killed, stopped and cut off, under load."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import Struct

from sentinel.core.clock import Instant
from sentinel.core.model import Transition
from sentinel.store.opening import open_store
from tests.lab.postgres import Postgres
from tests.lab.service import Service
from tests.lab.waiting import wait_until
from tests.lab.wire import Wire

LEASE = 2.0
SEND = 0.2
PLUGIN = "#!/bin/sh\nexit $(( ($(date +%s) / 2 % 2) * 2 ))\n"
PAGER = """\
#!/bin/sh
echo "$WHO begin $(date +%s.%N) $SENTINEL_KEY" >>{folder}/sends
sleep {send}
echo "$WHO end $(date +%s.%N) $SENTINEL_KEY" >>{folder}/sends
"""
CONFIG = """\
cluster: lab
state: {url}
flapping: {{changes: 0}}
checks:
  one: {{kind: exec, command: [{folder}/plugin], every: 1s}}
  two: {{kind: exec, command: [{folder}/plugin], every: 1s}}
  three: {{kind: exec, command: [{folder}/plugin], every: 1s}}
channels:
  pager: {{kind: exec, command: [{folder}/pager]}}
  book: {{kind: file, path: {folder}/book.jsonl}}
"""


ALONE = """\
cluster: lab
state: {url}
checks:
  one: {{kind: exec, command: [/bin/false], every: 60s}}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
"""


class Send(Struct, frozen=True):
    """A line of the pager."""

    who: str
    what: str
    at: float
    key: str


class Cluster:
    """Sentinels by name, each with a wire of its own to the database."""

    def __init__(
        self, folder: Path, start: Callable[..., Service], url: str, wires: dict[str, Wire]
    ) -> None:
        self.folder, self._start, self.url, self.wires = folder, start, url, wires
        self.services: dict[str, Service] = {}
        _script(folder / "plugin", PLUGIN)
        _script(folder / "pager", PAGER.format(folder=folder, send=SEND))
        for name in wires:
            self.start(name)

    def start(self, name: str) -> None:
        url = self.url.partition("?")[0] + f"?host={self.wires[name].folder}&lease={LEASE:.0f}s"
        config = self.folder / f"{name}.yaml"
        config.write_text(CONFIG.format(url=url, folder=self.folder))
        env = {"PATH": "/usr/bin:/bin", "WHO": name}
        self.services[name] = self._start("run", "-c", config, env=env)

    def sends(self) -> list[Send]:
        path = self.folder / "sends"
        lines = path.read_text().splitlines() if path.exists() else []
        words = (line.split() for line in lines)
        return [Send(who, what, float(at), key) for who, what, at, key in words]

    def wait_sender(self, names: set[str], since: float, limit: float = 20.0) -> str:
        """The first of these that begins to send after this moment."""

        def found() -> str:
            senders = [s.who for s in self.sends() if s.at > since and s.what == "begin"]
            return next((who for who in senders if who in names), "")

        return wait_until(found, lambda: f"a send by {names}: {self._said()}", limit)

    def _said(self) -> str:
        return "\n".join(f"{n}: {s.err[-600:]}" for n, s in self.services.items())


@pytest.fixture
def cluster(
    tmp_path: Path, service: Callable[..., Service], postgres: Postgres, postgres_url: str
) -> Iterator[Cluster]:
    """Three sentinels on a database."""
    server = Path(postgres_url.partition("host=")[2])
    with ExitStack() as stack:
        wires = {
            name: stack.enter_context(Wire(tmp_path / f"wire-{name}", server))
            for name in ("ann", "bob", "cyd")
        }
        yield Cluster(tmp_path, service, postgres_url, wires)


@pytest.mark.long
def test_whatever_becomes_of_the_leader_another_goes_on(cluster: Cluster) -> None:
    """Killed, stopped for longer than its lease, cut off: nothing is lost, at most what was in
    flight comes twice, and nobody sends outside of his lease."""
    names, moments = set(cluster.services), []
    leader = cluster.wait_sender(names, 0.0)
    for fault in (_kill, _stop, _cut):
        time.sleep(2.0)
        began = time.time()
        ended = fault(cluster, leader)
        moments.append((leader, began, ended))
        leader = cluster.wait_sender(names - {leader}, began)
        _come_back(cluster, moments[-1][0], fault)
    time.sleep(2.0)
    for one in cluster.services.values():
        one.terminate()
    _assert_nobody_spoke_out_of_turn(cluster, moments)
    _assert_nothing_was_lost(cluster, failovers=len(moments))


def test_a_leader_that_loses_its_state_says_so_while_it_may(
    tmp_path: Path, service: Callable[..., Service], postgres: Postgres, postgres_url: str
) -> None:
    """Its lease ends in seconds, and with that its right to speak."""
    server, book = Path(postgres_url.partition("host=")[2]), tmp_path / "book.jsonl"
    config = tmp_path / "sentinel.yaml"
    with ExitStack() as stack:
        wire = stack.enter_context(Wire(tmp_path / "wire", server))
        url = postgres_url.partition("?")[0] + f"?host={wire.folder}&lease=12s"
        config.write_text(ALONE.format(url=url, folder=tmp_path))
        only = service("run", "-c", config)
        only.wait_for(book.exists, "a first message")
        time.sleep(1.0)  # its first look at itself is over, the next is far
        stack.close()
        only.wait_for(lambda: '"subject":"state"' in book.read_text(), "the word about the state")
    said = json.loads(book.read_text().splitlines()[-1])
    assert (said["check"], said["status"], said["reason"]) == ("sentinel", "critical", "firing")
    only.terminate()


def _kill(cluster: Cluster, leader: str) -> float:
    cluster.services[leader].kill9()
    return time.time()


def _stop(cluster: Cluster, leader: str) -> float:
    cluster.services[leader].signal(signal.SIGSTOP)
    return time.time()


def _cut(cluster: Cluster, leader: str) -> float:
    """It goes on working, and is told so by nobody: its own clock has to."""
    cluster.wires[leader].cut()
    return time.time() + LEASE


def _come_back(cluster: Cluster, name: str, fault: Callable[..., float]) -> None:
    """The old leader finds that it is none: exit 75, and a restart makes it a standby."""
    old = cluster.services[name]
    if fault is _stop:
        old.signal(signal.SIGCONT)
    cluster.wires[name].mend()
    if fault is not _kill:
        assert old.wait(60.0) == 75, old.err
    cluster.start(name)


def _assert_nobody_spoke_out_of_turn(
    cluster: Cluster, moments: list[tuple[str, float, float]]
) -> None:
    sends = cluster.sends()
    for who, began, ended in moments:
        restarted = next((s.at for s in sends if s.at > began and s.who != who), began)
        late = [
            s
            for s in sends
            if s.who == who and s.what == "begin" and ended + 0.5 < s.at < restarted + LEASE
        ]
        assert late == []
    begins = [s for s in sends if s.what == "begin"]
    ends = {(s.who, s.key): s.at for s in sends if s.what == "end"}
    for one, other in pairwise(begins):
        if one.who != other.who and (one.who, one.key) in ends:
            assert ends[one.who, one.key] <= other.at + 0.05


def _assert_nothing_was_lost(cluster: Cluster, failovers: int) -> None:
    """The database knows every transition; each reached both channels."""
    store = open_store(cluster.url, Instant(0)).store
    transitions: list[Transition] = store.read_transitions(100_000)
    waiting = {row.notification.key for row in store.read_outbox()}
    store.close()
    keys = {t.id for t in transitions} - waiting
    assert len(keys) > 20
    begun = [s.key for s in cluster.sends() if s.what == "begin"]
    booked = [
        json.loads(x)["key"] for x in (cluster.folder / "book.jsonl").read_text().splitlines()
    ]
    for told in (begun, booked):
        assert {k for k in keys if not any(t.startswith(k) for t in told)} == set()
        assert len(told) - len(set(told)) <= failovers


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
