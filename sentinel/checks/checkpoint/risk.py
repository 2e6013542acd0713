"""What would be lost if a training died now, as one line for the messages of other checks."""

from __future__ import annotations

from collections.abc import MutableMapping

from sentinel import proc
from sentinel.checks.checkpoint.files import MAX_LOOKS, Folder
from sentinel.checks.checkpoint.judge import (
    Found,
    Known,
    incomplete,
    quiet_since,
    risk_text,
)
from sentinel.core.checkpoints import Where
from sentinel.core.clock import Instant, elapsed
from sentinel.core.errors import CannotTell
from sentinel.user_files.files import Files
from sentinel.user_files.whose import Whose


def work_at_risk(
    where: Where,
    now: Instant,
    ran: float | None,
    *,
    user: str,
    limit: float,
    ended: Instant | None = None,
    stuck: MutableMapping[str, proc.Stuck] | None = None,
) -> str:
    """`2h 14m of work since checkpoint global_step1200 at risk`; why not, where it cannot be
    told. One look of `limit` seconds, by the file server's times.

    `user`: of the job. `ran`: seconds the job has worked; `ended`: when it did so last, if not now. `stuck`: children
    that could not be killed, by path, as the caller remembers them (see Folder).
    """
    files = Files(limit / 2, limit, stuck or {})
    folder = Folder(where.path, where.match, files, Whose(user=user, literal=True))
    try:
        return risk_text(_newest_complete(folder, where, now), ended or now, ran)
    except CannotTell as error:
        return f"work at risk is not known: {error}"
    finally:
        if stuck is not None:
            stuck.update(files.stuck)


def _newest_complete(folder: Folder, where: Where, now: Instant) -> dict[str, Found]:
    entries, rule = folder.entries(), where.complete
    pointer = folder.pointer(rule.latest) if rule.latest else None
    highest = pointer.step(entries) if pointer else None
    order = sorted(entries, key=lambda e: e.changed, reverse=True)
    order.sort(key=lambda e: e.step != highest)
    for count, entry in enumerate(order[:MAX_LOOKS]):
        if count and folder.hurries:
            break
        inside = folder.look_into(entry, rule)
        since = quiet_since(inside, None, now, first=True)
        known = Known(
            pointer=pointer.shown if pointer else "",
            highest=highest,
            pointed=pointer.written if pointer else None,
        )
        if not incomplete(entry, inside, rule, known, elapsed(since, now)):
            return {entry.name: Found(step=entry.step, size=inside.size, since=since)}
    return {}
