"""The audit log of actions, the ledger of nodes, and the switches: from version 1 to 2."""

from sqlalchemy import Connection, text

_STATEMENTS = (
    "CREATE TABLE actions (seq {number} NOT NULL, id VARCHAR(32) NOT NULL, "
    "target VARCHAR(32) NOT NULL, tried BIGINT NOT NULL, unresolved BIGINT NOT NULL, "
    "at BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (seq), UNIQUE (id))",
    "CREATE INDEX actions_target ON actions (target)",
    "CREATE INDEX actions_tried ON actions (tried, seq)",
    "CREATE INDEX actions_unresolved ON actions (unresolved)",
    "CREATE TABLE readings (seq {number} NOT NULL, node VARCHAR(32) NOT NULL, "
    "at BIGINT NOT NULL, departure BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (seq))",
    "CREATE INDEX readings_node ON readings (node, seq)",
    "CREATE INDEX readings_departure ON readings (departure, seq)",
    'CREATE TABLE switches ("key" VARCHAR(32) NOT NULL, body TEXT NOT NULL, PRIMARY KEY ("key"))',
)


def step(connection: Connection) -> None:
    """Add the tables; there was nothing of the kind before."""
    number = "INTEGER" if connection.dialect.name == "sqlite" else "BIGSERIAL"
    for statement in _STATEMENTS:
        connection.execute(text(statement.format(number=number)))
