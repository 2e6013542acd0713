"""What people say by hand, silences and acknowledgements: from version 2 to 3."""

from sqlalchemy import Connection, text


def step(connection: Connection) -> None:
    """Add the table; there was nothing of the kind before."""
    connection.execute(
        text(
            'CREATE TABLE orders ("key" VARCHAR(32) NOT NULL, ends BIGINT NOT NULL, '
            'body TEXT NOT NULL, PRIMARY KEY ("key"))'
        )
    )
