"""What a checkpoint check writes into the ledger of runs: which checkpoints are complete."""

from sentinel.checks.checkpoint.look import CheckpointLook, Memory
from sentinel.core.clock import SECOND, Instant
from sentinel.core.run_ledger import LedgerRow

SAVED_SPACING_US = 600 * SECOND
"""Of the checkpoints within this time the last one has a row, so that their number is limited."""


MAX_AGE_US = 8 * 86_400 * SECOND
"""An older checkpoint has no row: no job that runs made it under the eyes of this check."""


def list_saved_rows(
    run: str, before: Memory, look: CheckpointLook, now: Instant
) -> tuple[LedgerRow, ...]:
    """A row for each checkpoint that was not known to be complete before this look.

    The owner of a file chooses its time, and it may be one that no database can store."""
    known = before.complete
    new = [
        one
        for name, one in look.complete.items()
        if name not in known or known[name].written != one.written
    ]
    rows = dict[int, LedgerRow]()
    for one in sorted(new, key=lambda one: one.written):
        written = int(min(one.written * SECOND, now.wall))
        if written < now.wall - MAX_AGE_US:
            continue
        place = written // SAVED_SPACING_US * SAVED_SPACING_US
        rows[place] = LedgerRow(
            run=run, kind="saved", began=place, ended=written, last_step=one.step
        )
    return tuple(rows.values())
