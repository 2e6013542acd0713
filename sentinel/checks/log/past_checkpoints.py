"""Finds the complete checkpoints of a past training that are still there, as the kind `checkpoint`
does."""

from __future__ import annotations

import os

from sentinel.core.checkpoints import CheckpointPlace
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import CannotTell
from sentinel.core.run_ledger import LedgerRow
from sentinel.core.settings import FilePath
from sentinel.core.text import visible
from sentinel.user_files.files import UserFiles
from sentinel.user_files.whose import Whose

LOOKUP_LIMIT_S, FOLDER_LIMIT_S = 10.0, 60.0


def list_saved_rows(path: str, now: int) -> list[LedgerRow]:
    """A row for each complete checkpoint in this folder. Rows have no run yet. Raises CannotTell,
    also if there is none."""
    try:
        from sentinel.checks.checkpoint.files import CheckpointFolder
        from sentinel.checks.checkpoint.look import CheckpointLook, Memory
    except ModuleNotFoundError:  # the kind `checkpoint` was taken out
        raise CannotTell(f"{visible(path)} is not read without the kind `checkpoint`") from None
    place = CheckpointPlace(path=FilePath(os.path.abspath(path)))
    files = UserFiles(LOOKUP_LIMIT_S, FOLDER_LIMIT_S, {})
    folder = CheckpointFolder(place.path, place.match, files, Whose(literal=True))
    found = CheckpointLook(folder, place.complete, Memory(), Instant(wall=now)).complete
    if not found:
        raise CannotTell(f"{visible(path)} holds no complete checkpoint")
    rows = list[LedgerRow]()
    for one in sorted(found.values(), key=lambda one: one.written):
        written = int(min(one.written * SECOND, now))
        rows.append(
            LedgerRow(run="", kind="saved", began=written, ended=written, last_step=one.step)
        )
    return rows
