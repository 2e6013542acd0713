"""Up to when the history of numbers is one an hour: from version 4 to 5."""

from sqlalchemy import Connection, text


def step(connection: Connection) -> None:
    """Add the column; nothing was thinned before."""
    connection.execute(text("ALTER TABLE leader ADD COLUMN thinned BIGINT DEFAULT 0 NOT NULL"))
