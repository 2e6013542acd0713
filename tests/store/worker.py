"""Runs as a process of its own: `python -m tests.store.worker`, one task a line on stdin."""

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import IO

from sentinel.alerting.state import Store
from sentinel.core.errors import StoreBusy
from sentinel.core.model import Batch, Sample
from sentinel.store import statements
from sentinel.store.backend import Backend
from sentinel.store.buffered import BufferedStore
from sentinel.store.lease import get_host_name
from sentinel.store.memory import MemoryStore
from sentinel.store.opening import open_store
from sentinel.store.postgres import PostgresBackend
from sentinel.store.session import DatabaseSession
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.store.nouns import alert, at, outgoing, transition


def batch(number: int) -> Batch:
    """A batch of which every part says its number."""
    return Batch(
        at=at(number),
        alerts=tuple(alert(f"/{part}", runs=number) for part in range(20)),
        transitions=(transition(number),),
        outbox=(outgoing(str(number)),),
        memory={"count": {"value": number}},
        samples={"count": tuple(Sample(f"/{part}", "n", float(number)) for part in range(20))},
    )


def commit(store: Store, count: int, told: IO[str]) -> None:
    """Batches without end, each reported once it is written."""
    store.take_lead(f"worker, pid {os.getpid()} on {get_host_name()}", at())
    number = store.read_memory("count").get("value", 0)
    while True:
        number += 1
        store.commit(batch(number))
        print(number, file=told, flush=True)


def increment(store: Store, count: int, told: IO[str]) -> None:
    """Lead, add one, give up the lead; `count` times."""
    for _ in range(count):
        _lead(store)
        value = store.read_memory("count").get("value", 0) + 1
        store.commit(Batch(at=at(), memory={"count": {"value": value}}))
        store.release_lead()
        print(value, file=told, flush=True)


def number(backend: Backend, count: int, told: IO[str]) -> None:
    """Count up in transactions of one session, without leading."""
    session = DatabaseSession(backend)
    for _ in range(count):
        with session.write_transaction() as connection:
            value = connection.fetch_one(statements.LEADER_TOKEN)[1] + 1
            connection.run(statements.NOTE_LAST_SEQ, {"seq": value})
        print(value, file=told, flush=True)


def _lead(store: Store) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            store.take_lead(f"worker, pid {os.getpid()} on {get_host_name()}", at())
            return
        except StoreBusy:
            time.sleep(0.001)
    raise TimeoutError("never led")


TASKS: dict[str, Callable[[Store, int, IO[str]], None]] = {"commit": commit, "increment": increment}


def _opened(state: str) -> Store:
    if not state.startswith("network:"):
        return open_store(state, at()).store
    return BufferedStore(SqlStore(_backend(state)), MemoryStore())


def _backend(state: str) -> Backend:
    """`network:DIR` is a directory as on a network file system."""
    if "://" in state:
        return PostgresBackend(state)
    directory = state.removeprefix("network:")
    return SqliteBackend(directory, local=directory == state)


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        task, state, count, target = line.rstrip("\n").split("\t")
        if os.fork() == 0:
            with open(target, "w", encoding="ascii") as told:
                print(os.getpid(), file=told, flush=True)
                if task == "number":
                    number(_backend(state), int(count), told)
                else:
                    TASKS[task](_opened(state), int(count), told)
            os._exit(0)


if __name__ == "__main__":
    main()
