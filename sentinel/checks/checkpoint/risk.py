"""Describes in one line, for the messages of other checks, the work that would be lost if a
training ended now."""

from __future__ import annotations

from collections.abc import MutableMapping

from sentinel import proc
from sentinel.checks.checkpoint.files import CheckpointFolder
from sentinel.checks.checkpoint.judge import render_risk
from sentinel.checks.checkpoint.look import CheckpointLook, Memory
from sentinel.core.checkpoints import CheckpointPlace
from sentinel.core.clock import Instant
from sentinel.core.errors import CannotTell
from sentinel.user_files.files import UserFiles
from sentinel.user_files.whose import Whose

FIRST_LOOKS = 8
"""How many are looked into at first: the one that `latest` names, the highest and the last that were
changed. If none of these is complete, all are."""


def describe_work_at_risk(
    where: CheckpointPlace,
    now: Instant,
    ran: float | None,
    *,
    user: str,
    limit: float,
    ended: Instant | None = None,
    stuck: MutableMapping[str, proc.StuckProcess] | None = None,
) -> str:
    """For example `2h 14m of work since checkpoint global_step1200 at risk`. If this cannot be
    determined, the reason.

    It reads the folder once, for at most `limit` seconds, and uses the file server's times. `user`
    is the user of the job. `ran` is how many seconds the job has worked. `ended` is when it last
    worked, if not now. `stuck` are child processes that could not be killed, by path, which the
    caller remembers.
    """
    files = UserFiles(limit / 2, limit, stuck or {})
    folder = CheckpointFolder(where.path, where.match, files, Whose(user=user, literal=True))
    try:
        found = (
            CheckpointLook(folder, where.complete, Memory(), now, FIRST_LOOKS).complete
            or CheckpointLook(folder, where.complete, Memory(), now).complete
        )
        return render_risk(found, ended or now, ran)
    except CannotTell as error:
        return f"work at risk is not known: {error}"
    finally:
        if stuck is not None:
            stuck.update(files.hanging_by_path)
