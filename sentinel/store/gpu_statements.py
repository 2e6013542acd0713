"""Every statement of gpu_ledger.py, built once."""

from __future__ import annotations

from sqlalchemy import Delete, Update, bindparam, delete, insert, or_, select, update

from sentinel.store.schema import gpu_events, gpu_stays, gpus

_whole = select(gpus.c.key, gpus.c.seen, gpus.c.body)
everything = _whole.order_by(gpus.c.key)
of_node = _whole.where(gpus.c.node == bindparam("n")).order_by(gpus.c.key)
some = _whole.where(gpus.c.key.in_(bindparam("keys", expanding=True)))
telling = _whole.where(or_(gpus.c.heat > 0, gpus.c.marked == 1))
outdated = _whole.where(gpus.c.recipe.not_in(["", bindparam("r")]))

add_entry = insert(gpus)
still_there: Update = update(gpus).where(gpus.c.key == bindparam("k")).values(seen=bindparam("at"))
change_entry: Update = (
    update(gpus)
    .where(gpus.c.key == bindparam("k"))
    .values(
        {c: bindparam(f"new_{c}") for c in ("node", "seen", "heat", "recipe", "marked", "body")}
    )
)

add_stay = insert(gpu_stays)
stays_of = (
    select(gpu_stays.c.body).where(gpu_stays.c.gpu == bindparam("g")).order_by(gpu_stays.c.seq)
)
last_stay = (
    select(gpu_stays.c.seq, gpu_stays.c.body)
    .where(gpu_stays.c.gpu == bindparam("g"))
    .order_by(gpu_stays.c.seq.desc())
    .limit(1)
)
end_stay: Update = (
    update(gpu_stays).where(gpu_stays.c.seq == bindparam("s")).values(body=bindparam("b"))
)

add_event = insert(gpu_events)
known_events = select(gpu_events.c.id).where(gpu_events.c.id.in_(bindparam("ids", expanding=True)))
all_events_of = (
    select(gpu_events.c.body).where(gpu_events.c.gpu == bindparam("g")).order_by(gpu_events.c.at)
)
newest_events_of = (
    select(gpu_events.c.body)
    .where(gpu_events.c.gpu == bindparam("g"))
    .order_by(gpu_events.c.at.desc(), gpu_events.c.seq.desc())
    .limit(bindparam("n"))
)

forget_events: Delete = delete(gpu_events).where(gpu_events.c.at < bindparam("before"))
_later = gpu_stays.alias("later")
forget_stays: Delete = delete(gpu_stays).where(
    gpu_stays.c.at < bindparam("before"),
    select(_later.c.seq)
    .where(_later.c.gpu == gpu_stays.c.gpu, _later.c.seq > gpu_stays.c.seq)
    .exists(),
)
"""The stay that lasts is kept, however old."""
