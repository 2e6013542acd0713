"""The deaths of a training: which ends of its jobs are told, each as an event. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sentinel.checks.job.done import last_run
from sentinel.checks.job.memory import GoneJob, Memory
from sentinel.checks.job.rhythm import SuccessorWait, get_end_state, is_death
from sentinel.core.clock import SECOND
from sentinel.core.model import Death
from sentinel.core.text import shortened


def list_deaths(memory: Memory, wait: SuccessorWait) -> tuple[Death, ...]:
    """The remembered runs that ended badly. An array whose elements started together is one.

    Without a known rhythm a death is due at once. With one, only the last run may be told, when its
    successor is late.
    """
    last, deaths = last_run(memory), dict[tuple[str, int | None], Death]()
    for gone in memory.gone:
        if not (gone.has_run and is_death(gone)):
            continue
        if wait.why and gone is not last and gone.followed:
            continue
        one = _make_death(gone, wait.seconds if wait.why else 0.0)
        deaths.setdefault(one.run, one)
    return tuple(deaths.values())


MAX_LINE_CHARS = 300
"""Characters of the command, and of the last lines, that are kept of each death."""

_LAST_LINES = 3


def _make_death(gone: GoneJob, wait_s: float) -> Death:
    end = gone.end
    ended = end.ended if end else None
    seen = gone.at.wall // SECOND
    whole = gone.seen.array_id if gone.seen.task else ""
    return Death(
        job=whole or gone.seen.id,
        started=None if whole else gone.started_at_s,
        ended=ended,
        end=get_end_state(gone) if end else "",
        exit=end.exit_code if end else None,
        noticed=gone.at,
        due=int(max(seen, ended or seen) + wait_s),
        line=_get_submit_line(gone),
        last_lines="\n".join(_quote_last_lines(gone.tail or "")),
    )


def _quote_last_lines(text: str) -> Iterator[str]:
    """The last lines, each cut at its end so that together they fit."""
    lines = text.splitlines()[-_LAST_LINES:]
    return (shortened(line, MAX_LINE_CHARS // len(lines)) for line in lines)


def _get_submit_line(gone: GoneJob) -> str:
    how = gone.how or gone.seen.how
    return shortened(how.line or how.command, MAX_LINE_CHARS) if how else ""
