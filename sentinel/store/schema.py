"""The tables as they are now. A change here raises VERSION.

Every column is a number, a digest (see rows) or JSON of the noun it belongs to: a new
field of a noun needs no new schema.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

VERSION = 5
"""A state of another version is refused: none was ever released. Whoever changes the tables of a
released version brings the way from it to the new one."""

metadata = MetaData()
_Number = BigInteger().with_variant(Integer, "sqlite")  # only INTEGER is SQLite's row id


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _digest(name: str, primary_key: bool = False) -> Column[str]:
    return Column(name, String(32), primary_key=primary_key, nullable=False)


def _body() -> Column[str]:
    return Column("body", Text, nullable=False)


schema_version = Table("schema_version", metadata, _number("version"))

# One row. `seq`: the highest number of an outbox row. `expires` (µs UTC) is for standbys. Samples
# from before `thinned` (µs UTC) are one an hour already.
leader = Table(
    "leader",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    _number("token"),
    _number("seq"),
    _number("expires"),
    _body(),
    Column("thinned", BigInteger, nullable=False, server_default="0"),
)

alerts = Table("alerts", metadata, _digest("key", primary_key=True), _body())
runs = Table("runs", metadata, _digest("key", primary_key=True), _body())
memory = Table("memory", metadata, _digest("key", primary_key=True), _body())

transitions = Table(
    "transitions",
    metadata,
    Column("seq", _Number, primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    _digest("alert"),
    _number("at"),
    _body(),
    Index("transitions_alert", "alert"),
    Index("transitions_at", "at"),
)

# `done` is 0 while unsent, else µs UTC; `outcome` is JSON of what became of the row.
outbox = Table(
    "outbox",
    metadata,
    Column("seq", _Number, primary_key=True, autoincrement=False),
    _digest("alert"),
    _number("done"),
    Column("outcome", Text, nullable=False),
    _body(),
    Index("outbox_alert", "alert"),
    Index("outbox_done", "done", "seq"),
)

series = Table(
    "series",
    metadata,
    Column("id", _Number, primary_key=True),
    Column("key", String(32), nullable=False, unique=True),
    _body(),
)

# When samples were taken: one row a pass instead of a boot id in every sample.
moments = Table(
    "moments",
    metadata,
    Column("id", _Number, primary_key=True),
    Column("key", String(32), nullable=False, unique=True),
    _number("at"),
    _body(),
    Index("moments_at", "at"),
)

# The primary key is the table: about 16 bytes a sample in SQLite.
samples = Table(
    "samples",
    metadata,
    Column("series", _Number, primary_key=True, autoincrement=False),
    Column("moment", _Number, primary_key=True, autoincrement=False),
    Column("value", Double, nullable=False),
    sqlite_with_rowid=False,
)

# The audit log; `tried` and `unresolved` are 0 or 1. Written without leadership, see books.py.
actions = Table(
    "actions",
    metadata,
    Column("seq", _Number, primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    _digest("target"),
    _number("tried"),
    _number("unresolved"),
    _number("at"),
    _body(),
    Index("actions_target", "target"),
    Index("actions_tried", "tried", "seq"),
    Index("actions_unresolved", "unresolved"),
)

# The ledger of nodes; `departure` (µs UTC) is when a node left service, else 0.
readings = Table(
    "readings",
    metadata,
    Column("seq", _Number, primary_key=True),
    _digest("node"),
    _number("at"),
    _number("departure"),
    _body(),
    Index("readings_node", "node", "seq"),
    Index("readings_departure", "departure", "seq"),
)

switches = Table("switches", metadata, _digest("key", primary_key=True), _body())

# Silences and acknowledgements; `ends` (µs UTC) is when they no longer matter.
orders = Table("orders", metadata, _digest("key", primary_key=True), _number("ends"), _body())

# The ledger of GPUs. `seen` (µs UTC) changes with every pass and is no part of the body; `heat`
# and `marked` (0 or 1) find those that have a score or a mark, `recipe` those counted otherwise.
gpus = Table(
    "gpus",
    metadata,
    _digest("key", primary_key=True),
    _digest("node"),
    _number("seen"),
    Column("heat", Double, nullable=False),
    _digest("recipe"),
    _number("marked"),
    _body(),
    Index("gpus_node", "node"),
)

# The stays that are over and the one that lasts; `at` is when it began.
gpu_stays = Table(
    "gpu_stays",
    metadata,
    Column("seq", _Number, primary_key=True),
    _digest("gpu"),
    _number("at"),
    _body(),
    Index("gpu_stays_gpu", "gpu", "seq"),
)

gpu_events = Table(
    "gpu_events",
    metadata,
    Column("seq", _Number, primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    _digest("gpu"),
    _number("at"),
    _body(),
    Index("gpu_events_at", "at"),
    Index("gpu_events_gpu", "gpu", "at"),
)
