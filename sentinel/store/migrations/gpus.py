"""The ledger of GPUs: subjects, their stays and their events: one version further."""

from sqlalchemy import Connection, text

_STATEMENTS = (
    'CREATE TABLE gpus ("key" VARCHAR(32) NOT NULL, node VARCHAR(32) NOT NULL, '
    "seen BIGINT NOT NULL, heat {real} NOT NULL, recipe VARCHAR(32) NOT NULL, "
    'marked BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY ("key"))',
    "CREATE INDEX gpus_node ON gpus (node)",
    "CREATE TABLE gpu_stays (seq {number} NOT NULL, gpu VARCHAR(32) NOT NULL, "
    "at BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (seq))",
    "CREATE INDEX gpu_stays_gpu ON gpu_stays (gpu, seq)",
    "CREATE TABLE gpu_events (seq {number} NOT NULL, id VARCHAR(32) NOT NULL, "
    "gpu VARCHAR(32) NOT NULL, at BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (seq), "
    "UNIQUE (id))",
    "CREATE INDEX gpu_events_at ON gpu_events (at)",
    "CREATE INDEX gpu_events_gpu ON gpu_events (gpu, at)",
)


def step(connection: Connection) -> None:
    """Add the tables; there was nothing of the kind before."""
    lite = connection.dialect.name == "sqlite"
    types = {
        "number": "INTEGER" if lite else "BIGSERIAL",
        "real": "DOUBLE" if lite else "DOUBLE PRECISION",
    }
    for statement in _STATEMENTS:
        connection.execute(text(statement.format(**types)))
