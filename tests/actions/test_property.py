"""No sequence of requests, clocks, crashes and two sentinels exceeds a cap or acts twice."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sentinel.core.ports import AuditLog
from sentinel.store.audit_log import SqlAuditLog
from sentinel.store.sqlite import SqliteBackend
from tests.actions.model import EPOCH, Fault, Host
from tests.actions.world import (
    DRAINED,
    LIMITS,
    World,
    busiest_hour,
    busiest_node,
    node,
    tried,
    truth,
)
from tests.store.book_memory import BookState, MemoryBooks

PROD = ["n1", "n2", "n3", "n4", "n5"]
DEBUG = ["d1", "d2"]
NAMES = PROD + DEBUG

names = st.one_of(st.sampled_from(NAMES), st.sampled_from(["n1", "n5"]))
actors = st.integers(0, 1)
actions = st.sampled_from(["drain", "undrain"])
requests = st.tuples(
    st.just("ask"),
    actors,
    actions,
    names,
    st.sampled_from(["", "", "", "before", "after"]),
    st.sampled_from([Fault.NONE, Fault.NONE, *Fault]),
)
often = st.sampled_from(["n1", "n2", "n5"])
waits = st.sampled_from([1.0, 30.0, 130.0, 290.0, 601.0, 3100.0, 3100.0, 90_000.0])
interleaved = st.tuples(
    st.just("both"),
    st.sampled_from(["list", "read"]),
    st.tuples(actions, names),
    st.tuples(actions, names),
    st.one_of(st.just(0.0), waits),
)
overwritten = st.tuples(st.just("overwritten"), st.tuples(actions, often))
STEPS = st.one_of(
    requests,
    requests,
    requests,
    interleaved,
    overwritten,
    st.tuples(st.just("wait"), waits),
    st.tuples(st.just("wake")),
    st.tuples(st.just("resolve"), actors),
    st.tuples(st.just("observe"), actors),
    st.tuples(st.just("drained_by_slurm"), often),
    st.tuples(st.just("timed_out"), often, st.sampled_from([130.0, 290.0, 310.0])),
    st.tuples(st.just("slurmctld"), st.booleans()),
)
JUMPS = st.tuples(
    st.just("jump"), actors, st.sampled_from([-1e9, -4000.0, -30.0, 30.0, 4000.0, 700_000.0, 1e9])
)
BOOTS = st.tuples(st.just("boot"), actors)


class History:
    """A world and what may happen in it, by name."""

    def __init__(self, world: World) -> None:
        self.world = world

    def ask(self, actor: int, action: str, name: str, crash: str, fault: Fault) -> None:
        self.world.slurm.fault = fault
        self.world.ask(actor, action, name, crash)
        self.world.slurm.fault = Fault.NONE

    def both(
        self, where: str, first: tuple[str, str], second: tuple[str, str], held_up: float
    ) -> None:
        """While one is held up after listing or before changing, the other does all it can."""
        slurm, hook = self.world.slurm, f"on_{where}"

        def meanwhile() -> None:
            setattr(slurm, hook, lambda: None)
            for seconds in (held_up, held_up):
                self.world.time.now += seconds
                self.world.actors[1].resolve_open_records()
            self.world.ask(1, *second)

        setattr(slurm, hook, meanwhile)
        self.world.ask(0, *first)
        setattr(slurm, hook, lambda: None)

    def overwritten(self, request: tuple[str, str]) -> None:
        """Between proof and change Slurm gives the node another reason."""

        def meanwhile() -> None:
            self.world.slurm.on_list = lambda: None
            self.drained_by_slurm(request[1])

        self.world.slurm.on_list = meanwhile
        self.world.ask(0, *request)
        self.world.slurm.on_list = lambda: None

    def timed_out(self, name: str, seconds: float) -> None:
        """slurmctld hangs in a change, is asked after it, and then does it after all."""
        for action in ("drain", "undrain"):
            self.ask(0, action, name, "", Fault.LATE)
        self.wait(seconds)
        self.resolve(1)
        self.ask(1, "drain", name, "", Fault.NONE)
        self.wake()

    def wait(self, seconds: float) -> None:
        self.world.time.now += seconds

    def wake(self) -> None:
        self.world.slurm.wake()

    def resolve(self, actor: int) -> None:
        self.world.actors[actor].resolve_open_records()

    def observe(self, actor: int) -> None:
        if self.world.slurm.up:
            self.world.books.record_readings(self.world.slurm.nodes(), self._host(actor).now())

    def drained_by_slurm(self, name: str) -> None:
        """Never twice within a second, which is as fine as Slurm tells times: it drains a node for
        the same reason again only after it has waited for the next task (UnkillableStepTimeout)."""
        self.world.time.now += 1
        now = int(EPOCH + self.world.time.now)
        self.world.slurm.set(name, flags=DRAINED, reason="Kill task failed", reason_time=now)

    def slurmctld(self, up: bool) -> None:
        self.world.slurm.up = up

    def jump(self, actor: int, seconds: float) -> None:
        self._host(actor).skew += seconds

    def boot(self, actor: int) -> None:
        self._host(actor).skew = 0.0
        self._host(actor).boot()

    def _host(self, actor: int) -> Host:
        return self.world.hosts[actor % len(self.world.hosts)]


def in_memory() -> Callable[[], AuditLog]:
    state = BookState()
    return lambda: MemoryBooks(state)


def world(open_books: Callable[[], AuditLog], hosts: int) -> World:
    prod = [node(name, drained=name != "n5") for name in PROD]
    return World(open_books, [*prod, *(node(n, partition="debug") for n in DEBUG)], hosts=hosts)


def check(world: World, factor: int = 1) -> None:
    """All that must hold after any history."""
    assert world.doubts == []
    assert truth(world) == []
    for action in ("drain", "undrain"):
        assert busiest_hour(world, action) <= LIMITS.per_hour * factor
        assert busiest_hour(world, action, PROD) <= 2 * factor  # 40% of five
        assert busiest_hour(world, action, DEBUG) <= 1 * factor  # a share of two is one
        assert busiest_node(world, action, 7 * 86_400) <= LIMITS.per_node.times * factor
        commands = [c for c in world.slurm.changes if c.state == action.upper()]
        assert len(commands) <= len(tried(world, action))


def run(world: World, steps: list[tuple[Any, ...]]) -> World:
    history = History(world)
    for name, *values in steps:
        getattr(history, name)(*values)
    return world


AGAIN = [
    ("drained_by_slurm", "n1"),
    ("ask", 0, "undrain", "n1", "", Fault.BLIND),
    ("drained_by_slurm", "n1"),
    ("wait", 601.0),
    ("resolve", 0),
]
"""It was undrained and, unseen, drained again for the reason that it had."""


@given(st.lists(st.one_of(STEPS, STEPS, STEPS, JUMPS), max_size=40))
@example(AGAIN)
@settings(max_examples=400, deadline=None)
def test_two_sentinels_on_a_host_whose_clock_jumps(steps: list[tuple[Any, ...]]) -> None:
    """A service and a command, or two services: within one boot no jump loosens a cap."""
    check(run(world(in_memory(), hosts=1), steps))


@given(st.lists(st.one_of(STEPS, STEPS, BOOTS), max_size=40))
@settings(max_examples=200, deadline=None)
def test_two_hosts_that_reboot(steps: list[tuple[Any, ...]]) -> None:
    """With clocks that agree, caps hold over hosts and reboots."""
    check(run(world(in_memory(), hosts=2), steps))


@given(st.lists(st.one_of(STEPS, STEPS, BOOTS, JUMPS), max_size=40))
@settings(max_examples=400, deadline=None)
def test_two_hosts_whose_clocks_jump(steps: list[tuple[Any, ...]]) -> None:
    """Nobody can date another boot's records then: each boot still keeps every cap by itself,
    and nothing is ever done twice, for that rests on no wall clock."""
    found = run(world(in_memory(), hosts=2), steps)
    check(found, factor=sum(len(host.began) for host in found.hosts))


@given(st.lists(st.one_of(STEPS, STEPS, STEPS, JUMPS), max_size=20))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_same_over_a_state_directory(steps: list[tuple[Any, ...]]) -> None:
    """Each sentinel with a connection of its own."""
    with TemporaryDirectory() as folder:
        check(run(world(lambda: SqlAuditLog(SqliteBackend(folder)), hosts=1), steps))


@pytest.mark.parametrize("crash", ["before", "after"])
def test_a_crash_leaves_intended_then_unknown_then_the_truth(crash: str, tmp_path: Path) -> None:
    """Killed before or after the change: nothing more is done until it was read again."""
    found = world(lambda: SqlAuditLog(SqliteBackend(str(tmp_path))), hosts=1)
    found.ask(0, "undrain", "n1", crash)
    assert [r.outcome.value for r in found.records()] == ["intended"]
    again = found.ask(1, "undrain" if crash == "before" else "drain", "n1")
    assert again is not None
    assert again.rule == "unresolved"
    found.time.now += 121
    found.actors[1].resolve_open_records()
    found.time.now += 601
    found.actors[1].resolve_open_records()
    outcomes = [r.outcome.value for r in found.records()]
    assert outcomes == [{"before": "no effect", "after": "done"}[crash], "refused"]
    assert len(found.slurm.changes) == {"before": 0, "after": 1}[crash]
