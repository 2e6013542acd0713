"""Decides whether a training that no longer runs has finished."""

import re

from sentinel.checks.job.ends import is_completed, recency_key
from sentinel.checks.job.files import JobFiles
from sentinel.checks.job.memory import GoneJob, Memory
from sentinel.checks.job.rhythm import find_delays_after
from sentinel.checks.job.settings import DoneWhen
from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.user_files.whose import Whose

MAX_LOG_TAIL_BYTES = 2**20  # bytes of the log's end that are searched for the line


def find_proof_of_finish(when: DoneWhen, memory: Memory, files: JobFiles, *, one_shot: bool) -> str:
    """The proof that the training has finished, or "" if there is none. Raises CannotTell."""
    if when.file:
        there = files.path_exists(when.file, get_proof_viewer(memory))
        return f"{visible(when.file)} is there" if there else ""
    if when.log:
        text = files.read_tail(when.log, MAX_LOG_TAIL_BYTES, get_proof_viewer(memory)) or ""
        line = files.reader.ask(when.log, find_last_match, str, text, when.pattern)
        return f"its log says {shortened(visible(line.strip()), 120)!r}" if line else ""
    return _describe_success(last_run(memory), one_shot)


def get_proof_viewer(memory: Memory) -> Whose:
    """The user with whose rights the proof is read: the user of the last job. The operator wrote
    the path, so nobody else may see the content."""
    last = last_run(memory)
    return Whose(user=last.seen.user if last else "", literal=True)


def find_proof_of_success(memory: Memory) -> str:
    """Like `find_proof_of_finish` without `done_when`: the proof is that the last job COMPLETED.

    Raises CannotTell while the end of any job is not known.
    """
    unknown = next((g for g in memory.gone if not g.asked), None)
    return _describe_success(unknown or last_run(memory), one_shot=False)


def seems_finished(memory: Memory) -> bool:
    """Whether everything looks like a finished training, without `done_when`. The last job
    COMPLETED with exit code 0, its output shows progress and no problem, and no other job ever
    followed such an end."""
    last = last_run(memory)
    if last is None or not is_completed(last) or not last.clean_output:
        return False
    return not (
        find_delays_after(last, memory) or any(_may_have_led_to(g, last) for g in memory.gone)
    )


def _may_have_led_to(one: GoneJob, last: GoneJob) -> bool:
    """Whether the last job came after this one, and this one may have ended well too."""
    if one is last or not one.has_run or (one.end is not None and not is_completed(one)):
        return False
    ended = one.end.ended if one.end else None
    return ended is None or last.started_at_s is None or ended <= last.started_at_s


def last_run(memory: Memory) -> GoneJob | None:
    """The job that started last among those that ended. If several elements of an array ran side by
    side, one that failed counts."""
    ran = [g for g in memory.gone if g.has_run]
    last = max(ran, key=recency_key, default=None)
    if last is None or not is_completed(last):
        return last
    failed = [g for g in ran if g.end and not is_completed(g) and _ran_side_by_side(g, last)]
    return max(failed, key=recency_key, default=last)


def _ran_side_by_side(one: GoneJob, last: GoneJob) -> bool:
    """Whether both jobs are elements of one array, and the first ran until after the last one
    started."""
    ended = one.end.ended if one.end else None
    return one.seen.array_id == last.seen.array_id and (ended or 0) > (last.started_at_s or 0)


def find_last_match(text: str, pattern: "re.Pattern[str]") -> str:
    """The last line that matches the pattern. Empty if none does."""
    return next((one for one in reversed(text.splitlines()) if pattern.search(one)), "")


def _describe_success(last: GoneJob | None, one_shot: bool) -> str:
    if last is None:
        if one_shot:
            raise CannotTell(
                "nothing runs, and a single look cannot tell whether it has finished:"
                " `done_when: {state: completed}` needs the job to be seen before it ends"
            )
        return ""
    if not last.asked:
        raise CannotTell(
            f"nothing runs, and Slurm does not say yet how job {visible(last.seen.id)} ended"
        )
    return f"job {visible(last.seen.id)} COMPLETED with exit code 0" if is_completed(last) else ""
