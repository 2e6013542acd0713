"""Every statement of the store, built once and compiled once per database."""

from typing import Any

from sqlalchemy import (
    Delete,
    Select,
    Table,
    Update,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from sentinel.store.schema import (
    alerts,
    leader,
    memory,
    moments,
    orders,
    outbox,
    runs,
    samples,
    series,
    transitions,
)

token: Select[Any] = select(leader.c.token, leader.c.seq).with_for_update()
lease = select(leader.c.body)
grant: Update = update(leader).values(
    token=bindparam("t"), expires=bindparam("e"), body=bindparam("b")
)
renew: Update = update(leader).values(expires=bindparam("e"))
ungrant: Update = update(leader).values(expires=0, body=bindparam("b"))
counted: Update = update(leader).values(seq=bindparam("s"))
last = select(leader.c.seq, leader.c.token)

all_alerts = select(alerts.c.body).order_by(alerts.c.key)
all_runs = select(runs.c.body).order_by(runs.c.key)
all_memory = select(memory.c.body)
memory_of = select(memory.c.body).where(memory.c.key == bindparam("k"))
close_alert: Delete = delete(alerts).where(alerts.c.key == bindparam("k"))

unsent = select(outbox.c.seq, outbox.c.body).where(outbox.c.done == 0).order_by(outbox.c.seq)
sent_since = (
    select(outbox.c.seq, outbox.c.body, outbox.c.outcome)
    .where(outbox.c.done > 0, outbox.c.done >= bindparam("t"))
    .order_by(outbox.c.done, outbox.c.seq)
)
rows_about = (
    select(outbox.c.seq, outbox.c.body, outbox.c.outcome)
    .where(outbox.c.alert == bindparam("a"))
    .order_by(outbox.c.seq)
)
_waiting = (outbox.c.seq == bindparam("s")) & (outbox.c.done == 0)
retry: Update = update(outbox).where(_waiting).values(body=bindparam("b"))
finish: Update = (
    update(outbox)
    .where(_waiting)
    .values(body=bindparam("b"), done=bindparam("d"), outcome=bindparam("o"))
)

_newest = transitions.c.seq.desc()
newest = select(transitions.c.body).order_by(_newest).limit(bindparam("n"))
newest_of = newest.where(transitions.c.alert == bindparam("a"))

series_ids = select(series.c.key, series.c.id)
series_id = select(series.c.id).where(series.c.key == bindparam("k"))
moment_id = select(moments.c.id).where(moments.c.key == bindparam("k"))
values_of = (
    select(moments.c.body, samples.c.value)
    .join_from(samples, moments, samples.c.moment == moments.c.id)
    .where(samples.c.series == bindparam("series"), moments.c.at >= bindparam("since"))
    .order_by(samples.c.moment)
)

forget_sent: Delete = delete(outbox).where(outbox.c.done > 0, outbox.c.done < bindparam("t"))
forget_transitions: Delete = delete(transitions).where(transitions.c.at < bindparam("t"))
first_kept = select(func.min(moments.c.id)).where(moments.c.at >= bindparam("t"))
# By series, so that the primary key finds the rows: a table scan would read gigabytes.
forget_samples: Delete = delete(samples).where(
    samples.c.series.in_(select(series.c.id)), samples.c.moment < bindparam("m")
)
moments_of = (
    select(moments.c.id, moments.c.at)
    .where(moments.c.at >= bindparam("since"), moments.c.at < bindparam("until"))
    .order_by(moments.c.id)
)
next_moment = select(func.min(moments.c.at)).where(moments.c.at >= bindparam("t"))
thinned = select(leader.c.thinned)
thin_until: Update = update(leader).values(thinned=bindparam("t"))
_later = samples.alias()
_within = (samples.c.series.in_(select(series.c.id))) & samples.c.moment.between(
    bindparam("first"), bindparam("last")
)
_newest_within = (
    select(func.max(_later.c.moment))
    .where(
        _later.c.series == samples.c.series,
        _later.c.moment.between(bindparam("first"), bindparam("last")),
    )
    .scalar_subquery()
)
keep_last: Delete = delete(samples).where(_within, samples.c.moment < _newest_within)
forget_empty: Delete = delete(moments).where(
    moments.c.id.between(bindparam("first"), bindparam("last")),
    moments.c.id.not_in(select(samples.c.moment).where(_within)),
)
forget_moments: Delete = delete(moments).where(moments.c.id < bindparam("m"))
forget_series: Delete = delete(series).where(~exists().where(samples.c.series == series.c.id))

all_orders = select(orders.c.body)
forget_orders = delete(orders).where(orders.c.ends < bindparam("t"))
close_order = delete(orders).where(orders.c.key == bindparam("k"))
add_order = insert(orders)


class Inserts:
    """The statements whose form depends on the database."""

    def __init__(self, dialect: str) -> None:
        insert = _insert_of(dialect)
        self.alerts = _replacing(insert, alerts)
        self.runs = _replacing(insert, runs)
        self.memory = _replacing(insert, memory)
        self.samples = _replacing(insert, samples)
        self.transitions = insert(transitions).on_conflict_do_nothing(index_elements=["id"])
        self.outbox = insert(outbox).on_conflict_do_nothing(index_elements=["seq"])
        self.series = insert(series).on_conflict_do_nothing(index_elements=["key"])
        self.moments = insert(moments).on_conflict_do_nothing(index_elements=["key"])


def replacing(dialect: str, table: Table) -> Any:
    """Insert, or replace the row of the same key."""
    return _replacing(_insert_of(dialect), table)


def _insert_of(dialect: str) -> Any:
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        return sqlite_insert
    from sqlalchemy.dialects.postgresql import insert as postgres_insert

    return postgres_insert


def _replacing(insert: Any, table: Table) -> Any:
    statement = insert(table)
    columns = {c.name: statement.excluded[c.name] for c in table.c if not c.primary_key}
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=columns)
