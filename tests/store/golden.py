"""A state as this version writes it, kept for all later ones: `python -m tests.store.golden 0.1.0`.

Written once, when a release is made, to tests/store/states/RELEASE.sqlite.sql and RELEASE.postgresql.sql,
and never again: what is there is what sites have.
"""

import re
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from sentinel.alerting.settings import Match
from sentinel.alerting.silences import Ack, Silence
from sentinel.core.actions import ActionOutcome, ActionRecord, ActionSwitch, GuardDecision
from sentinel.core.cluster import Node
from sentinel.core.gpu_ledger import GpuEvent, GpuSighting
from sentinel.core.model import Batch, Receipt, Sample
from sentinel.core.run_ledger import LedgerRow
from sentinel.store.audit_log import SqlAuditLog
from sentinel.store.backend import Backend
from sentinel.store.gpu_ledger import SqlGpuLedger
from sentinel.store.postgres import PostgresBackend
from sentinel.store.retention import DAY_S
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.lab.postgres import Postgres, programs
from tests.store.nouns import alert, at, outgoing, run, transition

STATES = Path(__file__).parent / "states"
HOSTILE = "NUL \x00, lone \ud800, 'quote', %s :key ü😀"
LEDGER_ROW = LedgerRow(run=HOSTILE, kind="saved", began=at().wall, ended=at(1).wall)


def write_state(backend: Backend) -> None:
    """Something in every table; what tests/store/test_migrations.py reads again."""
    store = SqlStore(backend)
    store.take_lead("sentinel run", at())
    samples = (Sample("/scratch", "used", 1.0), Sample(HOSTILE, "used", 2.0))
    store.commit(
        Batch(
            at=at(),
            alerts=(alert(HOSTILE, summary=HOSTILE), alert("/b")),
            transitions=(transition(1), transition(2, HOSTILE)),
            outbox=(outgoing("sent"), outgoing("waits"), outgoing("given up")),
            memory={"fs": {"text": HOSTILE, "number": 1.5}},
            runs=(run(),),
            samples={"fs": samples},
        )
    )
    store.prune(at(DAY_S + 1))  # moves these samples to the older ones
    late = {"fs": (Sample("/scratch", "used", float("inf")),)}
    store.commit(Batch(at=at(1), samples=late, ledger=(LEDGER_ROW,)))
    sent, _, given_up = store.read_outbox()
    store.sent([sent], at(5), Receipt("250 ok"))
    store.dropped([given_up], at(6), "no such user")
    ends = at(100).wall
    silence = Silence(
        id="s1", match=Match(check=["fs"]), starts=1, ends=ends, who="alice", reason=HOSTILE
    )
    store.put_silence(silence)
    store.put_ack(Ack(alert="alert-/b", at=at(1), who="bob"))
    store.release_lead()
    store.close()
    _write_ledgers(backend)


def _write_ledgers(backend: Backend) -> None:
    books = SqlAuditLog(backend)
    action = ActionRecord(
        id="one",
        action="drain",
        target="n1",
        reason="bad",
        by="test",
        at=at(),
        outcome=ActionOutcome.INTENDED,
    )
    books.record_intent("n1", lambda past: GuardDecision(record=action))
    drained = Node(
        name="n1", state="IDLE", flags=frozenset({"DRAIN"}), reason="bad dimm, RMA 4711",
        reason_user="root", reason_time=1_700_000_000,
    )  # fmt: skip
    books.record_readings([drained], at())
    pause = ActionSwitch(since=at(), seconds=None, why=HOSTILE, by="alice")
    books.set_switch("maintenance", pause)
    books.close()
    gpus = SqlGpuLedger(backend)
    gpus.record_sightings(
        [GpuSighting(uuid="GPU-a", node="n1", slot="0"), GpuSighting(uuid="GPU-b", node="n1", slot="1")],
        at(),
    )  # fmt: skip
    gpus.record_sightings([GpuSighting(uuid="GPU-a", node="n2", slot="0")], at(60))
    happened = GpuEvent(id="e1", subject="GPU-a", what="xid 79", at=at(61), node="n2", text=HOSTILE)
    gpus.add_events([happened])
    gpus.set_mark("GPU-b", "lemon", HOSTILE, "alice", at(62))
    gpus.close()


def dump_sqlite(folder: str) -> str:
    """As SQL that makes it again; what is infinite has no other form there."""
    with closing(sqlite3.connect(f"{folder}/sentinel.db")) as connection:
        lines = [re.sub(r"\bInf\b", "9e999", line) for line in connection.iterdump()]
    return "\n".join(lines) + "\n"


def dump_postgres(url: str) -> str:
    """Without what says how it was dumped."""
    tool = programs()
    assert tool is not None
    command = [str(Path(tool) / "pg_dump"), "--inserts", "--no-owner", "--no-privileges", url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    dropped = re.compile(r"--|SET |SELECT pg_catalog\.set_config|\\(?:un)?restrict|$")
    return "".join(f"{line}\n" for line in text.splitlines() if not dropped.match(line))


def main(words: list[str]) -> int:
    (release,) = words
    with tempfile.TemporaryDirectory() as folder, Postgres() as server, server.database() as url:
        for kind in ("sqlite", "postgresql"):
            path = STATES / f"{release}.{kind}.sql"
            if path.exists():
                print(f"{path} is there; a state of a release is written once", file=sys.stderr)
                return 1
            write_state(SqliteBackend(folder) if kind == "sqlite" else PostgresBackend(url))
            text = dump_sqlite(folder) if kind == "sqlite" else dump_postgres(url)
            path.write_text(text, encoding="utf-8")
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
